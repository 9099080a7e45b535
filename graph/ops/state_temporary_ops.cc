// Variables that live within a step, and changes of tensors in place.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("DeepCopy")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc("Copies `x` to memory of its own.");

REGISTER_OP("DestroyTemporaryVariable")
    .Input("ref: Ref(T)")
    .Output("value: T")
    .Attr("T: type")
    .Attr("var_name: string")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Ends the temporary variable `ref` called `var_name` and gives its last value. Every other "
        "use of the variable must come before.");

REGISTER_OP("InplaceAdd")
    .Input("x: T")
    .Input("i: int32")
    .Input("v: T")
    .Output("y: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives `x` with the rows of `v` added to the rows `i` (a vector, modulo their number), in "
        "place if nobody else reads `x`.");

REGISTER_OP("InplaceSub")
    .Input("x: T")
    .Input("i: int32")
    .Input("v: T")
    .Output("y: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives `x` with the rows of `v` subtracted from the rows `i` (a vector, modulo their "
        "number), in place if nobody else reads `x`.");

REGISTER_OP("InplaceUpdate")
    .Input("x: T")
    .Input("i: int32")
    .Input("v: T")
    .Output("y: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives `x` with the rows `i` (a vector, modulo their number) replaced by those of `v`, in "
        "place if nobody else reads `x`.");

REGISTER_OP("TemporaryVariable")
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("var_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(ShapeAttrShape)
    .Doc(
        "A variable of type `dtype` and shape `shape` that lives until DestroyTemporaryVariable or "
        "the end of the step: gives a reference to it. It is called `var_name`, or like the node.");

}  // namespace troupe
