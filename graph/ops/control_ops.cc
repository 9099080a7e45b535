// Control: assertions and the op that does nothing.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("Assert")
    .Input("condition: bool")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Attr("summarize: int = 3")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Fails with the first `summarize` elements of each tensor of `data` if the scalar "
        "`condition` is false.");

REGISTER_OP("NoOp").SetShapeFn(NoOutputs).Doc("Does nothing; stands for its control inputs.");

}  // namespace troupe
