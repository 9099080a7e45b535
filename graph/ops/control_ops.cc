// Control: assertions, printing, ending the step, choosing references, optionals, and the op that
// does nothing.
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status PrintV2Shape(InferenceContext* c) {
  return InferenceContext::WithRank(c->input(0), 0).status();
}

/// The shape of the references if all have the same, which is completely known.
absl::Status RefSelectShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(0), 0).status());
  const PartialShape& first = c->input(1);
  for (int i = 1; i < c->num_inputs(); ++i) {
    if (!c->input(i).fully_known() || !(c->input(i) == first)) return absl::OkStatus();
  }
  return SetShape(c, first);
}

absl::Status OptionalGetValueShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(0), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes,
                          c->attrs().Get<std::vector<PartialShape>>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c->num_outputs()) {
    return InvalidArgument("`output_types` and `output_shapes` must be the same length, got ",
                           c->num_outputs(), " and ", shapes.size());
  }
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, shapes[i]);
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("Abort")
    .Attr("error_msg: string = ''")
    .Attr("exit_without_error: bool = false")
    .SetShapeFn(NoOutputs)
    .Doc(
        "Fails with ABORTED and the message `error_msg`, which ends the step. Unlike TensorFlow's, "
        "never ends the process, whatever `exit_without_error`.");

REGISTER_OP("Assert")
    .Signature("condition: bool, data: T")
    .Attr("T: list(type) >= 1")
    .Attr("summarize: int = 3")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Fails with the first `summarize` elements of each tensor of `data` if the scalar "
        "`condition` is false.");

REGISTER_OP("NoOp").SetShapeFn(NoOutputs).Doc("Does nothing; stands for its control inputs.");

REGISTER_OP("OptionalFromValue")
    .Signature("components: Toutput_types -> optional: variant")
    .Attr("Toutput_types: list(type) >= 1")
    .SetShapeFn(ScalarShape)
    .Doc("Gives an optional that holds `components`.");

REGISTER_OP("OptionalGetValue")
    .Signature("optional: variant -> components: output_types")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .SetShapeFn(OptionalGetValueShape)
    .Doc("Gives the tensors that an optional holds; INVALID_ARGUMENT if it holds none.");

REGISTER_OP("OptionalHasValue")
    .Signature("optional: variant -> has_value: bool")
    .SetShapeFn(ScalarShape)
    .Doc("Tells whether an optional holds tensors.");

REGISTER_OP("OptionalNone")
    .Signature("-> optional: variant")
    .SetShapeFn(ScalarShape)
    .Doc("Gives an optional that holds nothing.");

REGISTER_OP("Print")
    .Signature("input: T, data: U -> output: T")
    .Attr("T: type")
    .Attr("U: list(type) >= 0")
    .Attr("message: string = ''")
    .Attr("first_n: int = -1")
    .Attr("summarize: int = 3")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Passes `input` on and writes `message` and the first `summarize` elements of each tensor "
        "of `data` to standard error, the first `first_n` times (negative: always).");

REGISTER_OP("PrintV2")
    .Signature("input: string")
    .Attr("output_stream: string = 'stderr'")
    .Attr("end: string = '\n'")
    .SetIsStateful()
    .SetShapeFn(PrintV2Shape)
    .Doc(
        "Writes the scalar `input` and `end` to `output_stream`: stdout, stderr, log(info), "
        "log(warning), log(error) or file://PATH, to which it is appended.");

REGISTER_OP("RefSelect")
    .Signature("index: int32, inputs: Ref(N * T) -> output: Ref(T)")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .SetShapeFn(RefSelectShape)
    .Doc("Passes on the reference of `inputs` that the scalar `index` names.");

}  // namespace troupe
