// Queues of tuples of tensors. The first versions of the ops have references to strings as handles,
// the second ones resources.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The handle of the first versions is, by its static shape, a vector of 2, as TensorFlow has it.
absl::Status NameShape(InferenceContext* c) {
  c->set_output(0, C::VectorOf(2));
  return absl::OkStatus();
}

absl::Status DequeueShape(InferenceContext* c) {
  const HandleShapes& components = c->input_handle(0);
  const bool known = static_cast<int>(components.size()) == c->num_outputs();
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, known ? components[i].second : PartialShape());
  }
  return absl::OkStatus();
}

/// `size` tuples (-1: any number), stacked.
absl::Status StackedShape(InferenceContext* c, int64_t size) {
  const HandleShapes& components = c->input_handle(0);
  const bool known = static_cast<int>(components.size()) == c->num_outputs();
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i,
                  known ? PartialShape({size}).Concatenate(components[i].second) : PartialShape());
  }
  return absl::OkStatus();
}

absl::Status DequeueManyShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, c->InputAsDim(1));
  return StackedShape(c, n);
}

/// There may be fewer than asked for.
absl::Status DequeueUpToShape(InferenceContext* c) { return StackedShape(c, -1); }

}  // namespace

REGISTER_OP("FIFOQueue")
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(NameShape)
    .Doc("Makes a queue that gives tuples out in the order in which they were put in.");

REGISTER_OP("FIFOQueueV2")
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Makes a queue that gives tuples out in the order in which they were put in.");

REGISTER_OP("PaddingFIFOQueue")
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(NameShape)
    .Doc(
        "Makes a queue of tuples in order, whose components may vary in size: batches are padded.");

REGISTER_OP("PaddingFIFOQueueV2")
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(
        "Makes a queue of tuples in order, whose components may vary in size: batches are padded.");

REGISTER_OP("PriorityQueue")
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 0 = []")
    .Attr("shapes: list(shape) >= 0")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(NameShape)
    .Doc(
        "Makes a queue that gives out first the tuple whose first component, an int64, is "
        "smallest.");

REGISTER_OP("PriorityQueueV2")
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 0 = []")
    .Attr("shapes: list(shape) >= 0")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(
        "Makes a queue that gives out first the tuple whose first component, an int64, is "
        "smallest.");

REGISTER_OP("QueueClose")
    .Input("handle: Ref(string)")
    .Attr("cancel_pending_enqueues: bool = false")
    .SetShapeFn(NoOutputs)
    .Doc("Closes a queue: nothing more can be put in; what it holds can still be taken.");

REGISTER_OP("QueueCloseV2")
    .Input("handle: resource")
    .Attr("cancel_pending_enqueues: bool = false")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Closes a queue: nothing more can be put in; what it holds can still be taken.");

REGISTER_OP("QueueDequeue")
    .Input("handle: Ref(string)")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(UnknownShape)
    .Doc("Takes a tuple from a queue; waits for one while there is none.");

REGISTER_OP("QueueDequeueV2")
    .Input("handle: resource")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetIsStateful()
    .SetShapeFn(DequeueShape)
    .Doc("Takes a tuple from a queue; waits for one while there is none.");

REGISTER_OP("QueueDequeueMany")
    .Input("handle: Ref(string)")
    .Input("n: int32")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(UnknownShape)
    .Doc("Takes `n` tuples, stacked along a new first dimension; waits until there are as many.");

REGISTER_OP("QueueDequeueManyV2")
    .Input("handle: resource")
    .Input("n: int32")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetIsStateful()
    .SetShapeFn(DequeueManyShape)
    .Doc("Takes `n` tuples, stacked along a new first dimension; waits until there are as many.");

REGISTER_OP("QueueDequeueUpTo")
    .Input("handle: Ref(string)")
    .Input("n: int32")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(UnknownShape)
    .Doc("Takes `n` tuples, stacked; from a closed queue the rest if that is fewer.");

REGISTER_OP("QueueDequeueUpToV2")
    .Input("handle: resource")
    .Input("n: int32")
    .Output("components: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetIsStateful()
    .SetShapeFn(DequeueUpToShape)
    .Doc("Takes `n` tuples, stacked; from a closed queue the rest if that is fewer.");

REGISTER_OP("QueueEnqueue")
    .Input("handle: Ref(string)")
    .Input("components: Tcomponents")
    .Attr("Tcomponents: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(NoOutputs)
    .Doc("Puts a tuple into a queue; waits while the queue is full.");

REGISTER_OP("QueueEnqueueV2")
    .Input("handle: resource")
    .Input("components: Tcomponents")
    .Attr("Tcomponents: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Puts a tuple into a queue; waits while the queue is full.");

REGISTER_OP("QueueEnqueueMany")
    .Input("handle: Ref(string)")
    .Input("components: Tcomponents")
    .Attr("Tcomponents: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetShapeFn(NoOutputs)
    .Doc("Puts tuples, stacked along the first dimension, into a queue; waits while it is full.");

REGISTER_OP("QueueEnqueueManyV2")
    .Input("handle: resource")
    .Input("components: Tcomponents")
    .Attr("Tcomponents: list(type) >= 1")
    .Attr("timeout_ms: int = -1")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Puts tuples, stacked along the first dimension, into a queue; waits while it is full.");

REGISTER_OP("QueueIsClosed")
    .Input("handle: Ref(string)")
    .Output("is_closed: bool")
    .SetShapeFn(ScalarShape)
    .Doc("Tells whether a queue is closed.");

REGISTER_OP("QueueIsClosedV2")
    .Input("handle: resource")
    .Output("is_closed: bool")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Tells whether a queue is closed.");

REGISTER_OP("QueueSize")
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Number of tuples in a queue.");

REGISTER_OP("QueueSizeV2")
    .Input("handle: resource")
    .Output("size: int32")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Number of tuples in a queue.");

REGISTER_OP("RandomShuffleQueue")
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("min_after_dequeue: int = 0")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(NameShape)
    .Doc(
        "Makes a queue that gives tuples out at random, chosen from more than "
        "`min_after_dequeue`.");

REGISTER_OP("RandomShuffleQueueV2")
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("min_after_dequeue: int = 0")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(
        "Makes a queue that gives tuples out at random, chosen from more than "
        "`min_after_dequeue`.");

}  // namespace troupe
