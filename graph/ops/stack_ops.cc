// Stacks of tensors, which live as long as a step.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status StackPushShape(InferenceContext* c) {
  c->set_output(0, c->input(1));
  c->set_output_handle(0, c->input_handle(1));
  return absl::OkStatus();
}

void Register(bool resource) {
  auto define = [resource](OpVersions names, const char* rest) {
    return OnHandle(names.Name(resource), resource, rest);
  };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      define({"StackClose", "StackCloseV2"}, "")
          .SetShapeFn(NoOutputs)
          .Doc("Lets go of the tensors of a stack; using it afterwards is an error."),
      define({"StackPop", "StackPopV2"}, " -> elem: elem_type")
          .Attr("elem_type: type")
          .SetShapeFn(UnknownShape)
          .Doc("Takes the tensor on top of a stack."),
      define({"StackPush", "StackPushV2"}, ", elem: T -> output: T")
          .Attr("T: type")
          .Attr("swap_memory: bool = false")
          .SetShapeFn(StackPushShape)
          .Doc("Puts `elem` on top of a stack, and passes it on."),
  };
}

[[maybe_unused]] const bool kRegistered = (Register(false), Register(true), true);

}  // namespace

REGISTER_OP("Stack")
    .Signature("-> handle: Ref(string)")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(HandlePairShape)
    .Doc("Makes a stack of tensors of type `elem_type`, which lives as long as the step.");

REGISTER_OP("StackV2")
    .Signature("max_size: int32 -> handle: resource")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(HandlePairShape)
    .Doc(
        "Makes a stack of tensors of type `elem_type`, at most `max_size` of them (negative: any "
        "number), which lives as long as its handle.");

}  // namespace troupe
