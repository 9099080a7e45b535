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

/// Calls functions when a time is over. Thread-safe.
class ActorTimer {
 public:
  virtual ~ActorTimer() = default;
  /// The result identifies the deadline. `over` must not throw.
  virtual uint64_t Add(absl::Duration after, std::function<void()> over) = 0;
  /// Afterwards the function is not running, unless it calls this itself, and will not run.
  virtual void Remove(uint64_t id) = 0;
};

/// The actors of this process, by the names under which they are published. Thread-safe.
class TensorActors {
 public:
  /// Of this process, or of the one that is simulated just now.
  static TensorActors* Global();
  /// While it lives, `Global` gives `actors`, on all threads: for several processes in one.
  class Scope {
   public:
    explicit Scope(TensorActors* actors);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TensorActors* const before_;
  };

  /// `timer`: of those who wait for an answer, outlives them; nullptr: real time.
  explicit TensorActors(ActorTimer* timer = nullptr) : timer_(timer) {}
  ActorTimer* timer() const { return timer_; }

  /// AlreadyExists, InvalidArgument if the name is empty.
  absl::Status Add(const std::string& name, std::shared_ptr<TensorActor> actor);
  void Remove(const std::string& name);
  /// NotFound.
  absl::StatusOr<std::shared_ptr<TensorActor>> Find(const std::string& name) const;

 private:
  ActorTimer* const timer_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<TensorActor>> actors_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_ACTORS_TENSOR_ACTOR_H_
