/// What resources hold, as values and as messages: what a training keeps beside its checkpoints.
#ifndef TROUPE_ACTORS_STATE_RESOURCE_STATE_H_
#define TROUPE_ACTORS_STATE_RESOURCE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/queues/accumulator.h"
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
                                   StagingMapState, BarrierState, AccumulatorState>;

/// Where a resource is, and a node that names it.
struct ResourcePlace {
  static constexpr char kAnyDevice[] = "*";

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

/// The tensors in it.
std::vector<Tensor*> TensorsOf(ResourceState* state);

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

/// What a resource holds as messages that each have a part of the tuples.
class ResourceParts {
 public:
  explicit ResourceParts(KeptResource resource);
  ~ResourceParts();

  int64_t size() const { return static_cast<int64_t>(tuples_.size()); }
  /// The tuples from `first` on that fit into so many bytes, one at least; if there are no bytes,
  /// none. What `TupleToDef` says.
  absl::Status Get(int64_t first, int64_t max_bytes, ResourceStateDef* part) const;

 private:
  const ResourcePlace place_;
  const std::unique_ptr<ResourceStateDef> kind_;
  std::vector<Tuple> tuples_;
  uint32_t kind_crc_ = 0;
};

/// Puts such parts together again.
class JoinedResource {
 public:
  JoinedResource();
  ~JoinedResource();
  JoinedResource(JoinedResource&&) noexcept;
  JoinedResource& operator=(JoinedResource&&) noexcept;

  bool IsNext(const ResourceStateDef& part) const;
  /// The next part, of which the tuples are taken. InvalidArgument: it is not, or is no part at
  /// all.
  absl::Status Add(ResourceStateDef* part);
  bool complete() const;
  /// How many tuples have come.
  int64_t size() const { return static_cast<int64_t>(tuples_.size()); }
  /// Once it is complete. InvalidArgument: what has come is no state.
  absl::StatusOr<KeptResource> Take();

 private:
  std::unique_ptr<ResourceStateDef> first_;  ///< The first part, without its tuples.
  std::vector<Tuple> tuples_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_STATE_RESOURCE_STATE_H_
