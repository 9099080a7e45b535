/// Shells: the CAF behaviours that feed messages to roles and carry their answers back.
#ifndef TROUPE_ACTORS_SHELLS_H_
#define TROUPE_ACTORS_SHELLS_H_

#include <memory>

#include "actors/caf_types.h"
#include "actors/runtime.h"
#include "actors/session/session_role.h"

namespace troupe {

/// An actor that hands each request to a worker of its own, so that steps run concurrently. `role`
/// must outlive its requests.
SessionActor SpawnSession(caf::actor_system& system, SessionRole* role);

/// An actor that answers for a device, which must outlive it.
DeviceActor SpawnDevice(caf::actor_system& system, DeviceRole* device);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SHELLS_H_
