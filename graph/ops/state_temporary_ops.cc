// Variables that live within a step, and changes of tensors in place.
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

OpDefBuilder InPlace(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("x: T, i: int32, v: T -> y: T").Attr("T: type").SetShapeFn(UnchangedShape).Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kInPlace[] = {
    InPlace("InplaceAdd",
            "Gives `x` with the rows of `v` added to the rows `i` (a vector, modulo their number), "
            "in place if nobody else reads `x`."),
    InPlace("InplaceSub",
            "Gives `x` with the rows of `v` subtracted from the rows `i` (a vector, modulo their "
            "number), in place if nobody else reads `x`."),
    InPlace("InplaceUpdate",
            "Gives `x` with the rows `i` (a vector, modulo their number) replaced by those of `v`, "
            "in place if nobody else reads `x`."),
};

}  // namespace

REGISTER_OP("DeepCopy")
    .Signature("x: T -> y: T")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc("Copies `x` to memory of its own.");

REGISTER_OP("DestroyTemporaryVariable")
    .Signature("ref: Ref(T) -> value: T")
    .Attr("T: type")
    .Attr("var_name: string")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Ends the temporary variable `ref` called `var_name` and gives its last value. Every other "
        "use of the variable must come before.");

REGISTER_OP("TemporaryVariable")
    .Signature("-> ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("var_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ShapeAttrShape)
    .Doc(
        "A variable of type `dtype` and shape `shape` that lives until DestroyTemporaryVariable or "
        "the end of the step: gives a reference to it. It is called `var_name`, or like the node.");

}  // namespace troupe
