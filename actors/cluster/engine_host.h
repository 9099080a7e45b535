/// What the engines of a task need from the shell that plays its node.
#ifndef TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_
#define TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

/// All functions are thread-safe, and none waits.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  /// False: there is one thread for all, and steps must not be handed to a pool.
  virtual bool has_threads() const { return true; }
  /// Runs `job` soon on a thread of the actor system.
  virtual void Post(std::function<void()> job) = 0;
  /// From within an event: what the thread that handles it may play.
  virtual Player event_player() const { return Player::kQuick; }
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
