/// What resources hold, as values and as messages: what a training keeps beside its checkpoints.
#ifndef TROUPE_ACTORS_STATE_RESOURCE_STATE_H_
#define TROUPE_ACTORS_STATE_RESOURCE_STATE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/queues/queue.h"
#include "kernels/sync/barrier.h"
#include "kernels/sync/staging_area.h"
#include "kernels/sync/staging_map.h"

namespace troupe {

class ResourceStateDef;
class TupleDef;

/// Where a reader is: the message `ReaderState`.
struct ReaderPosition {
  std::string message;
};
/// A variable's value; invalid if it has none.
struct VariableValue {
  Tensor value;
};

/// What a resource holds: another one of its kind that is given it goes on from there. A value;
/// tensors are shared.
using ResourceState = std::variant<QueueState, ReaderPosition, VariableValue, StagingAreaState,
                                   StagingMapState, BarrierState>;

/// Where a resource is, and a node that names it.
struct ResourcePlace {
  std::string node;
  std::string device;  ///< Empty: not known.
  std::string container, name;

  bool operator==(const ResourcePlace&) const = default;
};

/// A resource, and what it holds.
struct KeptResource {
  ResourcePlace place;
  ResourceState state;
};

/// Calls `done` once, maybe on another thread, as the resource does. Unimplemented: it is none of
/// these kinds.
void SaveResource(Resource* resource, SaveDone<ResourceState> done);
/// InvalidArgument, and nothing has changed: `state` is that of something else.
void RestoreResource(Resource* resource, ResourceState state, RestoreDone done);

// As messages.

void PlaceToDef(const ResourcePlace& place, ResourceStateDef* def);
ResourcePlace PlaceFromDef(const ResourceStateDef& def);

/// Fills all of a message but the place and the tuples, which are the result, in the message's
/// order.
std::vector<Tuple> StateToDef(ResourceState state, ResourceStateDef* def);
/// The reverse. InvalidArgument: there are not as many tuples as the message says, or it has no
/// kind.
absl::StatusOr<ResourceState> StateFromDef(const ResourceStateDef& def, std::vector<Tuple> tuples);

/// Components that are not there are invalid, and tensors of no type in the message. Unimplemented:
/// a component is of resources or variants, or not in the host's memory.
absl::Status TupleToDef(const Tuple& tuple, TupleDef* def);
/// Memory grows with the message, not with what it claims. InvalidArgument: it is no tuple of
/// plain tensors and strings. `def` is left empty.
absl::StatusOr<Tuple> TupleFromDef(TupleDef* def);

/// The same with the tuples in the message; what `TupleToDef` says.
absl::Status ResourceToDef(KeptResource resource, ResourceStateDef* def);
absl::StatusOr<KeptResource> ResourceFromDef(ResourceStateDef* def);

}  // namespace troupe

#endif  // TROUPE_ACTORS_STATE_RESOURCE_STATE_H_
