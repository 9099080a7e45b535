/// Actors as kernels see them.
#ifndef TROUPE_KERNELS_ACTORS_TENSOR_ACTOR_H_
#define TROUPE_KERNELS_ACTORS_TENSOR_ACTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/tensor.h"

namespace troupe {

/// Somebody who answers tensors with tensors. Thread-safe; no function waits.
class TensorActor {
 public:
  using Answer = std::function<void(absl::StatusOr<std::vector<Tensor>>)>;

  virtual ~TensorActor() = default;
  /// `answer` is called once, on any thread, perhaps before this returns: with what the actor
  /// answers, its error, Unavailable if it has ended, DeadlineExceeded if `timeout` is over (which
  /// may be infinite). Whatever this throws is the answer. The result identifies the request.
  virtual uint64_t Ask(std::vector<Tensor> inputs, absl::Duration timeout, Answer answer) = 0;
  /// Nobody waits for the answer any more. It may have been called, or be called just now.
  virtual void Forget(uint64_t request) = 0;
  /// ResourceExhausted if too much that it was told before has not been handled yet.
  virtual absl::Status Tell(std::vector<Tensor> inputs) = 0;
};

/// The actors of this process, by the names under which they are published. Thread-safe.
class TensorActors {
 public:
  static TensorActors* Global();

  /// AlreadyExists, InvalidArgument if the name is empty.
  absl::Status Add(const std::string& name, std::shared_ptr<TensorActor> actor);
  void Remove(const std::string& name);
  /// NotFound.
  absl::StatusOr<std::shared_ptr<TensorActor>> Find(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<TensorActor>> actors_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_ACTORS_TENSOR_ACTOR_H_
