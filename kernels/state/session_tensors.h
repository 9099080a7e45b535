/// Tensors that sessions keep between steps, under handles, where their devices have them.
#ifndef TROUPE_KERNELS_STATE_SESSION_TENSORS_H_
#define TROUPE_KERNELS_STATE_SESSION_TENSORS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

class Device;

/// The device of a session that keeps tensors, for readers on other devices: it must not go while
/// they copy. Thread-safe.
class TensorLender {
 public:
  explicit TensorLender(Device* device) : device_(device) {}

  /// nullptr: the device's memory is the host's.
  Device* device() const { return device_; }
  /// Somebody copies from the device until this object goes.
  static std::shared_ptr<void> Borrow(const std::shared_ptr<TensorLender>& lender);
  /// Returns when nobody copies. Nobody may come any more.
  void WaitForReaders();

 private:
  Device* const device_;
  std::mutex mutex_;
  std::condition_variable gone_;
  int readers_ = 0;
};

/// The tensors of all sessions of a process: a step may ask on another device than the one that
/// keeps them. Handles are never used twice, also not by another process. Thread-safe.
class SessionTensors {
 public:
  static SessionTensors* Global();

  /// A tensor where its device has it, which stays while `borrowed` is held.
  struct Kept {
    Tensor value;
    Device* device;
    std::shared_ptr<void> borrowed;
  };

  /// Keeps a tensor; its handle: "NODE;NUMBER;DEVICE", as TensorFlow has it.
  std::string Keep(std::string_view node, std::string_view device, const Tensor& value,
                   std::shared_ptr<TensorLender> lender);
  /// InvalidArgument, as from TensorFlow, if there is none.
  absl::StatusOr<Kept> Find(const std::string& handle) const;
  absl::Status Forget(const std::string& handle);
  bool Has(const std::string& handle) const;
  /// That are kept now.
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  struct Entry {
    Tensor value;
    std::shared_ptr<TensorLender> lender;
  };
  absl::flat_hash_map<std::string, Entry> tensors_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_STATE_SESSION_TENSORS_H_
