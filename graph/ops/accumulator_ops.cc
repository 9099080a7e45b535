// Conditional accumulators: gradients are added up until there are enough.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// Input 1, a number of steps or gradients, is a scalar; of the outputs nothing is known.
absl::Status ScalarInputShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(1), 0).status());
  return UnknownShape(c);
}

OpDefBuilder Accumulator(const char* name, bool resource, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(StrCat("-> ", HandleSpec(resource)))
      .Attr("dtype: numbertype")
      .Attr("shape: shape")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
      .SetIsStateful()
      .SetShapeFn(HandlePairShape)
      .Doc(doc);
  return op;
}

void Register(bool resource) {
  auto define = [resource](OpVersions names, const char* rest) {
    return OnHandle(names.Name(resource), resource, rest);
  };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      define({"AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient"},
             ", local_step: int64, gradient: dtype")
          .Attr("dtype: numbertype")
          .SetShapeFn(ScalarInputShape)
          .Doc("Adds a gradient to an accumulator, unless `local_step` is before its global step."),
      define({"AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated"},
             " -> num_accumulated: int32")
          .SetShapeFn(ScalarShape)
          .Doc("Number of gradients that an accumulator has added up since it was last emptied."),
      define({"AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep"},
             ", new_global_step: int64")
          .SetShapeFn(ScalarInputShape)
          .Doc("Sets the step before which gradients are stale."),
      define({"AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient"},
             ", num_required: int32 -> average: dtype")
          .Attr("dtype: numbertype")
          .SetShapeFn(ScalarInputShape)
          .Doc("Takes the mean (or sum) of the gradients once there are `num_required`; the step "
               "goes on."),
  };
}

[[maybe_unused]] const bool kRegistered = (Register(false), Register(true), true);

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Accumulator("ConditionalAccumulator", false,
                "Makes an accumulator of gradients of shape `shape`."),
    Accumulator("ResourceConditionalAccumulator", true,
                "Makes an accumulator of gradients of shape `shape`."),
    Accumulator("SparseConditionalAccumulator", false,
                "Makes an accumulator of sparse gradients of shape `shape`."),
    OnHandle("SparseAccumulatorApplyGradient", false,
             ", local_step: int64, gradient_indices: int64, gradient_values: dtype, "
             "gradient_shape: int64")
        .Attr("dtype: numbertype")
        .Attr("has_known_shape: bool")
        .SetShapeFn(ScalarInputShape)
        .Doc("Adds a gradient, rows at indices, unless `local_step` is before the global step."),
    OnHandle("SparseAccumulatorTakeGradient", false,
             ", num_required: int32 -> indices: int64, values: dtype, shape: int64")
        .Attr("dtype: numbertype")
        .SetShapeFn(ScalarInputShape)
        .Doc("Takes the mean (or sum) of each row once there are `num_required` gradients."),
};

}  // namespace
}  // namespace troupe
