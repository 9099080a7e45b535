// Conditional accumulators: gradients are added up until there are enough. With references to
// strings as handles, or resources.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status AccumulatorShape(InferenceContext* c) {
  c->set_output(0, C::VectorOf(2));
  return absl::OkStatus();
}

/// Input 1, a number of steps or gradients, is a scalar; of the outputs nothing is known.
absl::Status ScalarInputShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  return UnknownShape(c);
}

}  // namespace

REGISTER_OP("AccumulatorApplyGradient")
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Input("gradient: dtype")
    .Attr("dtype: numbertype")
    .SetShapeFn(ScalarInputShape)
    .Doc("Adds a gradient to an accumulator, unless `local_step` is before its global step.");

REGISTER_OP("AccumulatorNumAccumulated")
    .Input("handle: Ref(string)")
    .Output("num_accumulated: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Number of gradients that an accumulator has added up since it was last emptied.");

REGISTER_OP("AccumulatorSetGlobalStep")
    .Input("handle: Ref(string)")
    .Input("new_global_step: int64")
    .SetShapeFn(ScalarInputShape)
    .Doc("Sets the step before which gradients are stale.");

REGISTER_OP("AccumulatorTakeGradient")
    .Input("handle: Ref(string)")
    .Input("num_required: int32")
    .Output("average: dtype")
    .Attr("dtype: numbertype")
    .SetShapeFn(ScalarInputShape)
    .Doc(
        "Takes the mean (or sum) of the gradients once there are `num_required`; the step goes "
        "on.");

REGISTER_OP("ConditionalAccumulator")
    .Output("handle: Ref(string)")
    .Attr("dtype: numbertype")
    .Attr("shape: shape")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
    .SetIsStateful()
    .SetShapeFn(AccumulatorShape)
    .Doc("Makes an accumulator of gradients of shape `shape`.");

REGISTER_OP("ResourceAccumulatorApplyGradient")
    .Input("handle: resource")
    .Input("local_step: int64")
    .Input("gradient: dtype")
    .Attr("dtype: numbertype")
    .SetIsStateful()
    .SetShapeFn(ScalarInputShape)
    .Doc("Adds a gradient to an accumulator, unless `local_step` is before its global step.");

REGISTER_OP("ResourceAccumulatorNumAccumulated")
    .Input("handle: resource")
    .Output("num_accumulated: int32")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Number of gradients that an accumulator has added up since it was last emptied.");

REGISTER_OP("ResourceAccumulatorSetGlobalStep")
    .Input("handle: resource")
    .Input("new_global_step: int64")
    .SetIsStateful()
    .SetShapeFn(ScalarInputShape)
    .Doc("Sets the step before which gradients are stale.");

REGISTER_OP("ResourceAccumulatorTakeGradient")
    .Input("handle: resource")
    .Input("num_required: int32")
    .Output("average: dtype")
    .Attr("dtype: numbertype")
    .SetIsStateful()
    .SetShapeFn(ScalarInputShape)
    .Doc(
        "Takes the mean (or sum) of the gradients once there are `num_required`; the step goes "
        "on.");

REGISTER_OP("ResourceConditionalAccumulator")
    .Output("handle: resource")
    .Attr("dtype: numbertype")
    .Attr("shape: shape")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
    .SetIsStateful()
    .SetShapeFn(AccumulatorShape)
    .Doc("Makes an accumulator of gradients of shape `shape`.");

REGISTER_OP("SparseAccumulatorApplyGradient")
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Input("gradient_indices: int64")
    .Input("gradient_values: dtype")
    .Input("gradient_shape: int64")
    .Attr("dtype: numbertype")
    .Attr("has_known_shape: bool")
    .SetShapeFn(ScalarInputShape)
    .Doc("Adds a gradient, rows at indices, unless `local_step` is before the global step.");

REGISTER_OP("SparseAccumulatorTakeGradient")
    .Input("handle: Ref(string)")
    .Input("num_required: int32")
    .Output("indices: int64")
    .Output("values: dtype")
    .Output("shape: int64")
    .Attr("dtype: numbertype")
    .SetShapeFn(ScalarInputShape)
    .Doc("Takes the mean (or sum) of each row once there are `num_required` gradients.");

REGISTER_OP("SparseConditionalAccumulator")
    .Output("handle: Ref(string)")
    .Attr("dtype: numbertype")
    .Attr("shape: shape")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
    .SetIsStateful()
    .SetShapeFn(AccumulatorShape)
    .Doc("Makes an accumulator of sparse gradients of shape `shape`.");

}  // namespace troupe
