// Slices of variables that are replaced.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

OpDefBuilder Assign(bool resource) {
  OpDefBuilder op(resource ? "ResourceStridedSliceAssign" : "StridedSliceAssign");
  op.Signature(StrCat(resource ? "ref: resource" : "ref: Ref(T)",
                      ", begin: Index, end: Index, strides: Index, value: T",
                      resource ? "" : " -> output_ref: Ref(T)"))
      .Attr("T: type")
      .Attr("Index: {int32, int64}")
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0")
      .SetShapeFn(resource ? NoOutputs : UnchangedShape)
      .Doc(StrCat(
          "Replaces the part of the variable `ref` that StridedSlice would take with `begin`, "
          "`end`, `strides` and the masks by `value`, which is broadcast to its shape.",
          resource ? "" : " Gives the variable."));
  if (resource) op.SetIsStateful();
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kOps[] = {Assign(false), Assign(true)};

}  // namespace
}  // namespace troupe
