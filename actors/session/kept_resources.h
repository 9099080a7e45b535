/// What the nodes of a session have left in the containers of this process.
#ifndef TROUPE_ACTORS_SESSION_KEPT_RESOURCES_H_
#define TROUPE_ACTORS_SESSION_KEPT_RESOURCES_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/runtime.h"
#include "actors/session/compile.h"
#include "actors/state/resource_state.h"

namespace troupe {

/// Tells which of the places that are wanted are here: the container has something of the name, on
/// the device of the node's kernel, or, if it has none, on the device that is given, which may be
/// `ResourcePlace::kAnyDevice`. Gives each
/// resource once, and what it holds. Calls `done` once, maybe on another thread. What
/// `SaveResource` says, with the node's name.
void SaveResources(const Runtime& runtime, const StatefulKernels& kernels,
                   const std::vector<ResourcePlace>& wanted,
                   SaveDone<std::vector<KeptResource>> done);
/// The same without what they hold.
std::vector<ResourcePlace> FindResources(const Runtime& runtime, const StatefulKernels& kernels,
                                         const std::vector<ResourcePlace>& wanted);

/// Has the resource at a place, whose device is known, go on from a state. A staging area or map is
/// made if it is not there. NotFound: there is nothing; else what `RestoreResource` says.
void RestoreKeptResource(const Runtime& runtime, KeptResource resource, RestoreDone done);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_KEPT_RESOURCES_H_
