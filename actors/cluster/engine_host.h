/// What the engines of a task need from the shell that plays its node.
#ifndef TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_
#define TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_

#include <cstdint>
#include <functional>
#include <string>

#include "devices/tensor.h"

namespace troupe {

/// All functions are thread-safe, and none waits.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  /// Runs `job` soon on a thread of the actor system.
  virtual void Post(std::function<void()> job) = 0;
  /// Handles `event` as the node: one at a time, with what roles want sent being sent afterwards.
  /// Not from within an event.
  virtual void Enter(std::function<void()> event) = 0;
  /// Brings a value to a task. If that fails, the step is told.
  virtual void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                          bool dead, Tensor value) = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_ENGINE_HOST_H_
