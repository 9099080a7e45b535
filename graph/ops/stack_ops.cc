// Stacks of tensors, which live as long as a step. The first version has references to strings as
// handles; version 2 has resources.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// The handle is, by its static shape, a vector of 2, as TensorFlow has it.
absl::Status StackShape(InferenceContext* c) {
  c->set_output(0, InferenceContext::VectorOf(2));
  return absl::OkStatus();
}

absl::Status StackPushShape(InferenceContext* c) {
  c->set_output(0, c->input(1));
  c->set_output_handle(0, c->input_handle(1));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("Stack")
    .Output("handle: Ref(string)")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(StackShape)
    .Doc("Makes a stack of tensors of type `elem_type`, which lives as long as the step.");

REGISTER_OP("StackClose")
    .Input("handle: Ref(string)")
    .SetShapeFn(NoOutputs)
    .Doc("Lets go of the tensors of a stack; using it afterwards is an error.");

REGISTER_OP("StackCloseV2")
    .Input("handle: resource")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Lets go of the tensors of a stack; using it afterwards is an error.");

REGISTER_OP("StackPop")
    .Input("handle: Ref(string)")
    .Output("elem: elem_type")
    .Attr("elem_type: type")
    .SetShapeFn(UnknownShape)
    .Doc("Takes the tensor on top of a stack.");

REGISTER_OP("StackPopV2")
    .Input("handle: resource")
    .Output("elem: elem_type")
    .Attr("elem_type: type")
    .SetIsStateful()
    .SetShapeFn(UnknownShape)
    .Doc("Takes the tensor on top of a stack.");

REGISTER_OP("StackPush")
    .Input("handle: Ref(string)")
    .Input("elem: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("swap_memory: bool = false")
    .SetShapeFn(StackPushShape)
    .Doc("Puts `elem` on top of a stack, and passes it on.");

REGISTER_OP("StackPushV2")
    .Input("handle: resource")
    .Input("elem: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("swap_memory: bool = false")
    .SetIsStateful()
    .SetShapeFn(StackPushShape)
    .Doc("Puts `elem` on top of a stack, and passes it on.");

REGISTER_OP("StackV2")
    .Input("max_size: int32")
    .Output("handle: resource")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(StackShape)
    .Doc(
        "Makes a stack of tensors of type `elem_type`, at most `max_size` of them (negative: any "
        "number), which lives as long as its handle.");

}  // namespace troupe
