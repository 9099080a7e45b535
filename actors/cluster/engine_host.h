/// What the engines of a task need from the shell that plays its node.
#ifndef TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_
#define TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "devices/tensor.h"

namespace troupe {

/// True on a thread that waits for the result of what it has the node do, and so may be held by a
/// kernel: a client's, not one that brings messages.
inline thread_local bool thread_may_play = false;

/// All functions are thread-safe, and none waits.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  /// For what jobs take: the simulator has a clock of its own.
  virtual std::chrono::steady_clock::time_point JobClock() {
    return std::chrono::steady_clock::now();
  }
  /// Runs `job` soon on a thread of the actor system.
  virtual void Post(std::function<void()> job) = 0;
  /// From within an event: runs `job` on this thread when the event is over.
  virtual void Defer(std::function<void()> job) = 0;
  /// Handles `event` as the node: one at a time, with what roles want sent being sent afterwards.
  /// Not from within an event.
  virtual void Enter(std::function<void()> event) = 0;
  /// Runs `job`; what it has sent goes out when it returns, in as few pieces as possible.
  virtual void Together(absl::FunctionRef<void()> job) = 0;
  /// Brings a value to a task. If that fails, the step is told.
  virtual void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                          bool dead, Tensor value) = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_
