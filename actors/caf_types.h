/// CAF's view of our messages. Include it in shells only: CAF's headers are heavy.
#ifndef TROUPE_ACTORS_CAF_TYPES_H_
#define TROUPE_ACTORS_CAF_TYPES_H_

#include <caf/all.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace troupe {
/// What is called with the answer to a request from this process.
using RunDone = std::function<void(RunReply)>;
}  // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_actors, first_custom_type_id)
CAF_ADD_TYPE_ID(troupe_actors, (troupe::RunRequest))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::RunReply))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::ReadVariableRequest))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::AssignVariableRequest))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::VariableReply))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::ListResourcesRequest))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::ResetContainerRequest))
CAF_ADD_TYPE_ID(troupe_actors, (troupe::RunDone))
CAF_END_TYPE_ID_BLOCK(troupe_actors)

// Inside one process messages travel by reference; none of these has a wire form yet.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunReply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ReadVariableRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AssignVariableRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::VariableReply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ListResourcesRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ResetContainerRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunDone)

namespace troupe {

/// A session as a CAF actor.
using SessionActor = caf::typed_actor<caf::replies_to<RunRequest>::with<RunReply>>;

/// A device, with its variables, as a CAF actor.
using DeviceActor =
    caf::typed_actor<caf::replies_to<ReadVariableRequest>::with<VariableReply>,
                     caf::replies_to<AssignVariableRequest>::with<VariableReply>,
                     caf::replies_to<ListResourcesRequest>::with<std::vector<std::string>>,
                     caf::replies_to<ResetContainerRequest>::with<std::vector<std::string>>>;

}  // namespace troupe

#endif  // TROUPE_ACTORS_CAF_TYPES_H_
