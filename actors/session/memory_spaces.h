/// On a device that has a memory of its own: which values of a plan live there, and the copies.
#ifndef TROUPE_ACTORS_SESSION_MEMORY_SPACES_H_
#define TROUPE_ACTORS_SESSION_MEMORY_SPACES_H_

#include "absl/status/status.h"
#include "actors/executor/plan.h"
#include "devices/device.h"

namespace troupe {

/// Has both ends of every edge agree. What only moves values (Switch, Merge, loops) takes them
/// where they are produced, else where they are wanted; where ends still differ there is a copy,
/// one for each output, shared by its consumers. Constants are copied now, once. What crosses to
/// other partitions is on the host, and so are feeds and fetches unless their spaces say otherwise.
/// Of variants what they hold is copied to the host with them, and left there the other way.
absl::Status MakeSpacesAgree(Device* device, PlanSpec* spec);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_MEMORY_SPACES_H_
