// The primitive ops of control flow: branches, merges, loops' frames and iterations.
#include <algorithm>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// Every output has the shape of input 0, and what is behind its handle.
absl::Status PassedOnShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, c->input(0));
    c->set_output_handle(i, c->input_handle(0));
  }
  return absl::OkStatus();
}

absl::Status SwitchShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(1), 0).status());
  return PassedOnShape(c);
}

absl::Status EnterShape(InferenceContext* c) {
  // A value that enters a loop may have another shape in later iterations; an invariant has not.
  return PassedOnShape(c);
}

absl::Status LoopCondShape(InferenceContext* c) {
  return SetShape(c, InferenceContext::WithRank(c->input(0), 0));
}

/// What all inputs have in common: any of them may come.
absl::Status MergeShape(InferenceContext* c) {
  PartialShape common = c->input(0);
  HandleShapes handle = c->input_handle(0);
  for (int i = 1; i < c->num_inputs() && !common.unknown_rank(); ++i) {
    const PartialShape& other = c->input(i);
    if (other.unknown_rank() || other.rank() != common.rank()) {
      common = PartialShape();
      break;
    }
    for (int d = 0; d < common.rank(); ++d) {
      if (common.dim(d) != other.dim(d)) {
        common = InferenceContext::ReplaceDim(common, d, PartialShape::kUnknown);
      }
    }
  }
  for (int i = 1; i < c->num_inputs(); ++i) {
    if (c->input_handle(i) != handle) handle.clear();
  }
  c->set_output(0, common);
  c->set_output_handle(0, handle);
  c->set_output(1, InferenceContext::Scalar());
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("ControlTrigger")
    .SetShapeFn(NoOutputs)
    .Doc(
        "Does nothing, and runs whether what it waits for was dead or alive: ends the deadness "
        "that "
        "control edges pass on.");

REGISTER_OP("Enter")
    .Signature("data: T -> output: T")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .SetShapeFn(EnterShape)
    .Doc(
        "Passes `data` into the loop frame `frame_name`: into its first iteration, or with "
        "`is_constant` into all of them. At most `parallel_iterations` iterations run at once.");

REGISTER_OP("Exit")
    .Signature("data: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(PassedOnShape)
    .Doc("Passes `data` out of a loop, to the frame around it.");

REGISTER_OP("LoopCond")
    .Signature("input: bool -> output: bool")
    .SetShapeFn(LoopCondShape)
    .Doc(
        "Passes the scalar condition of a loop on; marks where the loop decides whether to go on.");

REGISTER_OP("Merge")
    .Signature("inputs: N * T -> output: T, value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .SetShapeFn(MergeShape)
    .Doc(
        "Passes on the first of `inputs` that comes alive, and as the scalar `value_index` which "
        "one it was. Dead if all are.");

REGISTER_OP("NextIteration")
    .Signature("data: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(PassedOnShape)
    .Doc("Passes `data` to the next iteration of the loop.");

REGISTER_OP("RefEnter")
    .Signature("data: Ref(T) -> output: Ref(T)")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .SetShapeFn(EnterShape)
    .Doc("Passes the reference `data` into the loop frame `frame_name`, as Enter does values.");

REGISTER_OP("RefExit")
    .Signature("data: Ref(T) -> output: Ref(T)")
    .Attr("T: type")
    .SetShapeFn(PassedOnShape)
    .Doc("Passes the reference `data` out of a loop, to the frame around it.");

REGISTER_OP("RefIdentity")
    .Signature("input: Ref(T) -> output: Ref(T)")
    .Attr("T: type")
    .SetAllowsUninitializedInput()
    .SetShapeFn(PassedOnShape)
    .Doc("Passes the reference `input` on.");

REGISTER_OP("RefMerge")
    .Signature("inputs: Ref(N * T) -> output: Ref(T), value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .SetShapeFn(MergeShape)
    .Doc("Passes on the first of the references `inputs` that comes alive, as Merge does values.");

REGISTER_OP("RefNextIteration")
    .Signature("data: Ref(T) -> output: Ref(T)")
    .Attr("T: type")
    .SetShapeFn(PassedOnShape)
    .Doc("Passes the reference `data` to the next iteration of the loop.");

REGISTER_OP("RefSwitch")
    .Signature("data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)")
    .Attr("T: type")
    .SetAllowsUninitializedInput()
    .SetShapeFn(SwitchShape)
    .Doc("Passes the reference `data` to the output that the scalar `pred` names, as Switch does.");

REGISTER_OP("Switch")
    .Signature("data: T, pred: bool -> output_false: T, output_true: T")
    .Attr("T: type")
    .SetShapeFn(SwitchShape)
    .Doc("Passes `data` to the output that the scalar `pred` names; the other output is dead.");

}  // namespace troupe
