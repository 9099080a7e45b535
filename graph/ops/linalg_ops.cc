// Matrix products.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("BatchMatMul")
    .Input("x: T")
    .Input("y: T")
    .Output("output: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Attr("grad_x: bool = false")
    .Attr("grad_y: bool = false")
    .SetShapeFn(BatchMatMulShape)
    .Doc(
        "Multiplies matrices, the last two dimensions of `x` [..., r, k] and `y` [..., k, c], "
        "pair by pair; `adj_x` and `adj_y` take the conjugate transpose first. The other "
        "dimensions are equal. Gives [..., r, c].");

REGISTER_OP("BatchMatMulV2")
    .Input("x: T")
    .Input("y: T")
    .Output("output: T")
    .Attr(
        "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
        "uint64, complex64, complex128}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Attr("grad_x: bool = false")
    .Attr("grad_y: bool = false")
    .SetShapeFn(BatchMatMulV2Shape)
    .Doc(
        "Multiplies matrices, the last two dimensions of `x` [..., r, k] and `y` [..., k, c], "
        "pair by pair; `adj_x` and `adj_y` take the conjugate transpose first. The other "
        "dimensions are broadcast. Gives [..., r, c].");

REGISTER_OP("MatMul")
    .Input("a: T")
    .Input("b: T")
    .Output("product: T")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, "
        "complex64, complex128}")
    .Attr("grad_a: bool = false")
    .Attr("grad_b: bool = false")
    .SetShapeFn(MatMulShape)
    .Doc(
        "Multiplies the matrices `a` [r, k] and `b` [k, c], each transposed first if "
        "`transpose_a` or `transpose_b`. Gives [r, c].");

}  // namespace troupe
