// The primitive ops of control flow: branches, merges, loops' frames and iterations.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/op_versions.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status SwitchShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(1), 0).status());
  return UnchangedShape(c);
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

/// The ops that pass values on, or those that pass references on, whose names begin with Ref.
void Register(bool references) {
  const std::string type = references ? "Ref(T)" : "T";
  const std::string data = references ? "the reference `data`" : "`data`";
  auto define = [&](OpVersions names, const std::string& signature, ShapeFn shape_fn) {
    OpDefBuilder op(names.Name(references));
    op.Signature(signature).Attr("T: type").SetShapeFn(shape_fn);
    return op;
  };
  auto pass_on = [&](OpVersions names, const char* where) {
    OpDefBuilder op = define(names, StrCat("data: ", type, " -> output: ", type), UnchangedShape);
    op.Doc(StrCat("Passes ", data, where));
    return op;
  };
  OpDefBuilder choice = define(
      {"Switch", "RefSwitch"},
      StrCat("data: ", type, ", pred: bool -> output_false: ", type, ", output_true: ", type),
      SwitchShape);
  if (references) choice.SetAllowsUninitializedInput();
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      // A value that enters may have another shape in later iterations; an invariant has not.
      pass_on({"Enter", "RefEnter"},
              references ? " into the loop frame `frame_name`, as Enter does values."
                         : " into the loop frame `frame_name`: into its first iteration, or with "
                           "`is_constant` into all of them. At most `parallel_iterations` "
                           "iterations run at once.")
          .Attr("frame_name: string")
          .Attr("is_constant: bool = false")
          .Attr("parallel_iterations: int = 10"),
      pass_on({"Exit", "RefExit"}, " out of a loop, to the frame around it."),
      pass_on({"NextIteration", "RefNextIteration"}, " to the next iteration of the loop."),
      define({"Merge", "RefMerge"},
             StrCat("inputs: ", references ? "Ref(N * T)" : "N * T", " -> output: ", type,
                    ", value_index: int32"),
             MergeShape)
          .Attr("N: int >= 1")
          .Doc(references
                   ? "Passes on the first of the references `inputs` that comes alive, as Merge "
                     "does values."
                   : "Passes on the first of `inputs` that comes alive, and as the scalar "
                     "`value_index` which one it was. Dead if all are."),
      choice.Doc(StrCat("Passes ", data, " to the output that the scalar `pred` names",
                        references ? ", as Switch does." : "; the other output is dead.")),
  };
}

[[maybe_unused]] const bool kRegistered = (Register(false), Register(true), true);

}  // namespace

REGISTER_OP("ControlTrigger")
    .SetShapeFn(NoOutputs)
    .Doc(
        "Does nothing, and runs whether what it waits for was dead or alive: ends the deadness "
        "that control edges pass on.");

REGISTER_OP("LoopCond")
    .Signature("input: bool -> output: bool")
    .SetShapeFn(LoopCondShape)
    .Doc(
        "Passes the scalar condition of a loop on; marks where the loop decides whether to go on.");

REGISTER_OP("RefIdentity")
    .Signature("input: Ref(T) -> output: Ref(T)")
    .Attr("T: type")
    .SetAllowsUninitializedInput()
    .SetShapeFn(UnchangedShape)
    .Doc("Passes the reference `input` on.");

}  // namespace troupe
