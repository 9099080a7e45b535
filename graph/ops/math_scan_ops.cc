// CumulativeLogsumexp, CheckNumericsV2, Timestamp.
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("CumulativeLogsumexp")
    .Signature("x: T, axis: Tidx -> out: T")
    .Attr("exclusive: bool = false")
    .Attr("reverse: bool = false")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Each element of `out` is the logarithm of the sum of exp(x) of the elements up to it "
        "along "
        "`axis`, itself left out if `exclusive`, from the end if `reverse`. NaN counts for "
        "nothing. "
        "`out` has the shape of `x`.");

REGISTER_OP("CheckNumericsV2")
    .Signature("tensor: T -> output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("message: string")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Passes `tensor` through if all its elements are finite; fails with `message` if one is "
        "infinite or not a number, and says which signs the infinities have.");

REGISTER_OP("Timestamp")
    .Signature("-> ts: double")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Gives the seconds since the beginning of 1970, in UTC, when it runs.");

}  // namespace troupe
