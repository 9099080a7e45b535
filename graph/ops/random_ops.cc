// Random numbers. The generator is Philox 4x32-10, keyed by `seed` and `seed2`.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("RandomShuffle")
    .Input("value: T")
    .Output("output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc("Shuffles the rows of `value` at random. `output` has its shape.");

REGISTER_OP("RandomStandardNormal")
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(FirstInputAsShape)
    .Doc(
        "Draws numbers of mean 0 and standard deviation 1 from the normal distribution. "
        "`output` has the shape `shape`.");

REGISTER_OP("RandomUniform")
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(FirstInputAsShape)
    .Doc("Draws numbers from the uniform distribution on [0, 1). `output` has the shape `shape`.");

REGISTER_OP("RandomUniformInt")
    .Input("shape: T")
    .Input("minval: Tout")
    .Input("maxval: Tout")
    .Output("output: Tout")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("Tout: {int32, int64}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(RandomUniformIntShape)
    .Doc(
        "Draws integers from the uniform distribution on [minval, maxval), two scalars. "
        "`output` has the shape `shape`.");

REGISTER_OP("TruncatedNormal")
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(FirstInputAsShape)
    .Doc(
        "Draws numbers from the standard normal distribution, again and again while they are "
        "further than 2 from 0. `output` has the shape `shape`.");

}  // namespace troupe
