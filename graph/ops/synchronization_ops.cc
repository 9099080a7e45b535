// Mutexes, barriers, staging areas and maps.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status CheckPair(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape handle, InferenceContext::WithRank(c->input(0), 1));
  return InferenceContext::MergeDim(handle.dim(0), 2).status();
}

absl::Status InsertManyShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckPair(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape keys, InferenceContext::WithRank(c->input(1), 1));
  if (c->input(2).unknown_rank()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values,
                          InferenceContext::WithRankAtLeast(c->input(2), 1));
  return InferenceContext::MergeDim(keys.dim(0), values.dim(0)).status();
}

REGISTER_OP("MutexV2")
    .Signature("-> resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Makes a mutex.");

REGISTER_OP("MutexLock")
    .Signature("mutex: resource -> mutex_lock: variant")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Waits for a mutex and holds it for as long as the output lives.");

REGISTER_OP("ConsumeMutexLock")
    .Signature("mutex_lock: variant")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Gives a mutex back. The lock must have no other user.");

REGISTER_OP("Barrier")
    .Signature("-> handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(HandlePairShape)
    .Doc("Makes a barrier, which gives out tuples once all their components have come.");

REGISTER_OP("BarrierInsertMany")
    .Signature("handle: Ref(string), keys: string, values: T")
    .Attr("T: type")
    .Attr("component_index: int")
    .SetShapeFn(InsertManyShape)
    .Doc("Gives keys their values for one component.");

REGISTER_OP("BarrierTakeMany")
    .Signature(
        "handle: Ref(string), num_elements: int32 -> indices: int64, keys: string, "
        "values: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("allow_small_batch: bool = false")
    .Attr("wait_for_incomplete: bool = false")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(UnknownShape)
    .Doc(
        "Takes `num_elements` complete tuples, stacked, in the order in which their keys were "
        "first seen; waits until there are as many.");

REGISTER_OP("BarrierClose")
    .Signature("handle: Ref(string)")
    .Attr("cancel_pending_enqueues: bool = false")
    .SetShapeFn(NoOutputs)
    .Doc("Closes a barrier to new keys, or (`cancel_pending_enqueues`) to all values.");

REGISTER_OP("BarrierReadySize")
    .Signature("handle: Ref(string) -> size: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Number of complete tuples in a barrier.");

REGISTER_OP("BarrierIncompleteSize")
    .Signature("handle: Ref(string) -> size: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Number of keys in a barrier that lack components.");

REGISTER_OP("FakeQueue")
    .Signature("resource: resource -> handle: Ref(string)")
    .SetIsStateful()
    .SetShapeFn(HandlePairShape)
    .Doc("The handle of a queue, a resource, as ops of the first version take it.");

/// Nodes of staging areas and maps find theirs by name, and have its limits.
OpDefBuilder Staged(std::string name, const char* signature, const char* types, ShapeFn shape_fn,
                    const char* doc, const char* more = nullptr) {
  OpDefBuilder op(std::move(name));
  op.Signature(signature)
      .Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr(types);
  if (more != nullptr) op.Attr(more);
  op.Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .SetIsStateful()
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

constexpr char kSome[] = "dtypes: list(type) >= 1", kAny[] = "dtypes: list(type)";

[[maybe_unused]] const internal::OpRegistrar kStage[] = {
    Staged("Stage", "values: dtypes", kSome, NoOutputs,
           "Leaves a tuple in a staging area; waits while it is full."),
    Staged("Unstage", "-> values: dtypes", kSome, UnknownShape,
           "Takes the first tuple from a staging area; waits while there is none."),
    Staged("StagePeek", "index: int32 -> values: dtypes", kSome, UnknownShape,
           "Looks at a tuple of a staging area, which stays; waits until it is there."),
    Staged("StageSize", "-> size: int32", kAny, ScalarShape, "Number of tuples in a staging area."),
    Staged("StageClear", "", kAny, NoOutputs, "Drops all tuples of a staging area."),
};

void RegisterMap(bool ordered) {
  auto named = [ordered](OpVersions names) { return names.Name(ordered); };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      Staged(named({"MapStage", "OrderedMapStage"}),
             "key: int64, indices: int32, values: fake_dtypes", kAny, NoOutputs,
             "Leaves components of a tuple under a key in a staging map; waits while it is full.",
             "fake_dtypes: list(type) >= 1"),
      Staged(named({"MapUnstage", "OrderedMapUnstage"}),
             "key: int64, indices: int32 -> values: dtypes", kSome, UnknownShape,
             "Takes components of a key's tuple; waits until the tuple is complete."),
      Staged(named({"MapUnstageNoKey", "OrderedMapUnstageNoKey"}),
             "indices: int32 -> key: int64, values: dtypes", kSome, UnknownShape,
             "Takes components of the tuple with the smallest key; waits while there is none."),
      Staged(named({"MapPeek", "OrderedMapPeek"}), "key: int64, indices: int32 -> values: dtypes",
             kSome, UnknownShape,
             "Looks at components of a key's tuple, which stay; waits until it is complete."),
      Staged(named({"MapSize", "OrderedMapSize"}), "-> size: int32", kAny, ScalarShape,
             "Number of complete tuples in a staging map."),
      Staged(named({"MapIncompleteSize", "OrderedMapIncompleteSize"}), "-> size: int32", kAny,
             ScalarShape, "Number of incomplete tuples in a staging map."),
      Staged(named({"MapClear", "OrderedMapClear"}), "", kAny, NoOutputs,
             "Drops all tuples of a staging map."),
  };
}

[[maybe_unused]] const bool kMaps = (RegisterMap(false), RegisterMap(true), true);

}  // namespace
}  // namespace troupe
