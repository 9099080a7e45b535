// Queues of tuples of tensors. The first versions of the ops have references to strings as handles,
// the second ones resources.
#include <vector>

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

/// An op that makes a queue.
struct Maker {
  const char* name;
  const char* component_types;
  const char* shapes;
  std::vector<const char*> attrs;
  const char* doc;
};

/// An op on a queue, whose handle is the first input.
struct QueueOp {
  const char* name;
  std::vector<const char*> inputs, outputs, attrs;
  absl::Status (*first_shape)(InferenceContext*);
  absl::Status (*second_shape)(InferenceContext*);
  const char* doc;
};

OpDefBuilder Define(const Maker& maker, bool second) {
  OpDefBuilder op(StrCat(maker.name, second ? "V2" : ""));
  op.Output(second ? "handle: resource" : "handle: Ref(string)");
  op.Attr(maker.component_types).Attr(maker.shapes).Attr("capacity: int = -1");
  for (const char* attr : maker.attrs) op.Attr(attr);
  op.Attr("container: string = ''").Attr("shared_name: string = ''");
  op.SetIsStateful();
  op.SetShapeFn(second ? ScalarShape : NameShape);
  op.Doc(maker.doc);
  return op;
}

OpDefBuilder Define(const QueueOp& on_queue, bool second) {
  OpDefBuilder op(StrCat(on_queue.name, second ? "V2" : ""));
  op.Input(second ? "handle: resource" : "handle: Ref(string)");
  for (const char* input : on_queue.inputs) op.Input(input);
  for (const char* output : on_queue.outputs) op.Output(output);
  for (const char* attr : on_queue.attrs) op.Attr(attr);
  if (second) op.SetIsStateful();
  op.SetShapeFn(second ? on_queue.second_shape : on_queue.first_shape);
  op.Doc(on_queue.doc);
  return op;
}

[[maybe_unused]] const bool kRegistered = [] {
  constexpr char kTypes[] = "component_types: list(type) >= 1";
  constexpr char kShapes[] = "shapes: list(shape) >= 0 = []";
  constexpr char kPut[] = "Tcomponents: list(type) >= 1";
  constexpr char kTimeout[] = "timeout_ms: int = -1";
  constexpr char kTuple[] = "components: component_types";
  const std::vector<Maker> makers = {
      {"FIFOQueue",
       kTypes,
       kShapes,
       {},
       "Makes a queue that gives tuples out in the order in which they were put in."},
      {"PaddingFIFOQueue",
       kTypes,
       kShapes,
       {},
       "Makes a queue of tuples in order, whose components may vary in size: batches are padded."},
      {"PriorityQueue",
       "component_types: list(type) >= 0 = []",
       "shapes: list(shape) >= 0",
       {},
       "Makes a queue that gives out first the tuple whose first component, an int64, is "
       "smallest."},
      {"RandomShuffleQueue",
       kTypes,
       kShapes,
       {"min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"},
       "Makes a queue that gives tuples out at random, chosen from more than "
       "`min_after_dequeue`."},
  };
  const std::vector<QueueOp> ops = {
      {"QueueClose",
       {},
       {},
       {"cancel_pending_enqueues: bool = false"},
       NoOutputs,
       NoOutputs,
       "Closes a queue: nothing more can be put in; what it holds can still be taken."},
      {"QueueDequeue",
       {},
       {kTuple},
       {kTypes, kTimeout},
       UnknownShape,
       DequeueShape,
       "Takes a tuple from a queue; waits for one while there is none."},
      {"QueueDequeueMany",
       {"n: int32"},
       {kTuple},
       {kTypes, kTimeout},
       UnknownShape,
       DequeueManyShape,
       "Takes `n` tuples, stacked along a new first dimension; waits until there are as many."},
      {"QueueDequeueUpTo",
       {"n: int32"},
       {kTuple},
       {kTypes, kTimeout},
       UnknownShape,
       DequeueUpToShape,
       "Takes `n` tuples, stacked; from a closed queue the rest if that is fewer."},
      {"QueueEnqueue",
       {"components: Tcomponents"},
       {},
       {kPut, kTimeout},
       NoOutputs,
       NoOutputs,
       "Puts a tuple into a queue; waits while the queue is full."},
      {"QueueEnqueueMany",
       {"components: Tcomponents"},
       {},
       {kPut, kTimeout},
       NoOutputs,
       NoOutputs,
       "Puts tuples, stacked along the first dimension, into a queue; waits while it is full."},
      {"QueueIsClosed",
       {},
       {"is_closed: bool"},
       {},
       ScalarShape,
       ScalarShape,
       "Tells whether a queue is closed."},
      {"QueueSize",
       {},
       {"size: int32"},
       {},
       ScalarShape,
       ScalarShape,
       "Number of tuples in a queue."},
  };
  for (const bool second : {false, true}) {
    for (const Maker& maker : makers) OpRegistry::Global()->Register(Define(maker, second));
    for (const QueueOp& op : ops) OpRegistry::Global()->Register(Define(op, second));
  }
  return true;
}();

}  // namespace
}  // namespace troupe
