/// Tensors that sessions keep between steps, under handles.
#ifndef TROUPE_KERNELS_STATE_SESSION_TENSORS_H_
#define TROUPE_KERNELS_STATE_SESSION_TENSORS_H_

#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// The tensors of all sessions of a process: a step may ask on another device than the one that
/// keeps them. Handles are never used twice, also not by another process. Thread-safe.
class SessionTensors {
 public:
  static SessionTensors* Global();

  /// Keeps a tensor; its handle: "NODE;NUMBER;DEVICE", as TensorFlow has it.
  std::string Keep(std::string_view node, std::string_view device, const Tensor& value);
  /// InvalidArgument, as from TensorFlow, if there is none.
  absl::StatusOr<Tensor> Find(const std::string& handle) const;
  absl::Status Forget(const std::string& handle);
  bool Has(const std::string& handle) const;
  /// That are kept now.
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, Tensor> tensors_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_STATE_SESSION_TENSORS_H_
