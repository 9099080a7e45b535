/// Messages between actors, as plain values. How CAF carries them is said in `caf_types.h`.
#ifndef TROUPE_ACTORS_MESSAGES_H_
#define TROUPE_ACTORS_MESSAGES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "devices/tensor.h"

namespace troupe {

/// To a session: run a step.
struct RunRequest {
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

/// From a session: the fetched tensors, or why there are none.
struct RunReply {
  absl::Status status;
  std::vector<Tensor> values;
};

/// To a device: the value of a variable. Answered by VariableReply.
struct ReadVariableRequest {
  std::string container;
  std::string name;
};

/// To a device: a new value for a variable, which is made if there is none. Answered by
/// VariableReply.
struct AssignVariableRequest {
  std::string container;
  std::string name;
  Tensor value;
};

struct VariableReply {
  absl::Status status;
  Tensor value;  ///< The variable's value after the request.
};

/// To a device: what its containers hold. Answered by a list of descriptions.
struct ListResourcesRequest {};

/// To a device: empty a container. Answered by the list of what is left.
struct ResetContainerRequest {
  std::string container;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_MESSAGES_H_
