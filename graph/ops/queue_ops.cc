// Queues of tuples of tensors.
#include <initializer_list>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// The outputs are a tuple's components, with the dimensions `stacked` before theirs.
absl::Status ComponentsShape(InferenceContext* c, const PartialShape& stacked) {
  const HandleShapes& components = c->input_handle(0);
  const bool known = static_cast<int>(components.size()) == c->num_outputs();
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, known ? stacked.Concatenate(components[i].second) : PartialShape());
  }
  return absl::OkStatus();
}

absl::Status DequeueShape(InferenceContext* c) {
  return ComponentsShape(c, InferenceContext::Scalar());
}

absl::Status DequeueManyShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, c->InputAsDim(1));
  return ComponentsShape(c, InferenceContext::VectorOf(n));
}

/// There may be fewer than asked for.
absl::Status DequeueUpToShape(InferenceContext* c) {
  return ComponentsShape(c, InferenceContext::VectorOf(-1));
}

constexpr char kTypes[] = "component_types: list(type) >= 1";
constexpr char kShapes[] = "shapes: list(shape) >= 0 = []";
constexpr char kTuples[] = "Tcomponents: list(type) >= 1";
constexpr char kTimeout[] = "timeout_ms: int = -1";

/// The first versions of the ops, or the second ones, which have resources as handles.
void Register(bool second) {
  auto maker = [&](OpVersions names, const char* types, const char* shapes,
                   std::initializer_list<const char*> attrs, const char* doc) {
    OpDefBuilder op(names.Name(second));
    op.Signature(StrCat("-> ", HandleSpec(second))).Attr(types).Attr(shapes);
    op.Attr("capacity: int = -1");
    for (const char* attr : attrs) op.Attr(attr);
    op.Attr("container: string = ''").Attr("shared_name: string = ''").SetIsStateful();
    op.SetShapeFn(second ? ScalarShape : HandlePairShape).Doc(doc);
    return op;
  };
  auto on_queue = [&](OpVersions names, const char* rest) {
    return OnHandle(names.Name(second), second, rest);
  };
  auto dequeue = [&](OpVersions names, const char* rest, ShapeFn shape_fn) {
    OpDefBuilder op = on_queue(names, rest);
    op.Attr(kTypes).Attr(kTimeout).SetShapeFn(second ? shape_fn : UnknownShape);
    return op;
  };
  auto enqueue = [&](OpVersions names, const char* doc) {
    OpDefBuilder op = on_queue(names, ", components: Tcomponents");
    op.Attr(kTuples).Attr(kTimeout).SetShapeFn(NoOutputs).Doc(doc);
    return op;
  };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      maker({"FIFOQueue", "FIFOQueueV2"}, kTypes, kShapes, {},
            "Makes a queue that gives tuples out in the order in which they were put in."),
      maker({"PaddingFIFOQueue", "PaddingFIFOQueueV2"}, kTypes, kShapes, {},
            "Makes a queue of tuples in order, whose components may vary in size: batches are "
            "padded."),
      maker({"PriorityQueue", "PriorityQueueV2"}, "component_types: list(type) >= 0 = []",
            "shapes: list(shape) >= 0", {},
            "Makes a queue that gives out first the tuple whose first component, an int64, is "
            "smallest."),
      maker({"RandomShuffleQueue", "RandomShuffleQueueV2"}, kTypes, kShapes,
            {"min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"},
            "Makes a queue that gives tuples out at random, chosen from more than "
            "`min_after_dequeue`."),
      on_queue({"QueueClose", "QueueCloseV2"}, "")
          .Attr("cancel_pending_enqueues: bool = false")
          .SetShapeFn(NoOutputs)
          .Doc("Closes a queue: nothing more can be put in; what it holds can still be taken."),
      dequeue({"QueueDequeue", "QueueDequeueV2"}, " -> components: component_types", DequeueShape)
          .Doc("Takes a tuple from a queue; waits for one while there is none."),
      dequeue({"QueueDequeueMany", "QueueDequeueManyV2"},
              ", n: int32 -> components: component_types", DequeueManyShape)
          .Doc("Takes `n` tuples, stacked along a new first dimension; waits until there are as "
               "many."),
      dequeue({"QueueDequeueUpTo", "QueueDequeueUpToV2"},
              ", n: int32 -> components: component_types", DequeueUpToShape)
          .Doc("Takes `n` tuples, stacked; from a closed queue the rest if that is fewer."),
      enqueue({"QueueEnqueue", "QueueEnqueueV2"},
              "Puts a tuple into a queue; waits while the queue is full."),
      enqueue({"QueueEnqueueMany", "QueueEnqueueManyV2"},
              "Puts tuples, stacked along the first dimension, into a queue; waits while it is "
              "full."),
      on_queue({"QueueIsClosed", "QueueIsClosedV2"}, " -> is_closed: bool")
          .SetShapeFn(ScalarShape)
          .Doc("Tells whether a queue is closed."),
      on_queue({"QueueSize", "QueueSizeV2"}, " -> size: int32")
          .SetShapeFn(ScalarShape)
          .Doc("Number of tuples in a queue."),
  };
}

[[maybe_unused]] const bool kRegistered = (Register(false), Register(true), true);

}  // namespace
}  // namespace troupe
