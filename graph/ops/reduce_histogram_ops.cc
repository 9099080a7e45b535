// Counts of numbers and of what lies in intervals.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status BincountShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, c->InputAsDim(1));
  return SetShape(c, C::VectorOf(size));
}

absl::Status DenseBincountShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtMost(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, c->InputAsDim(1));
  if (size == -1) return SetShape(c, C::UnknownOfRank(input.rank()));
  if (input.unknown_rank()) return UnknownShape(c);
  return SetShape(c, input.rank() == 2 ? PartialShape({input.dim(0), size}) : C::VectorOf(size));
}

absl::Status HistogramShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(1), C::VectorOf(2)).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  int64_t bins = -1;
  if (const Tensor& value = c->input_tensor(2); value.valid()) {
    TROUPE_ASSIGN_OR_RETURN(bins, ScalarValue(value));
    if (bins <= 0) return InvalidArgument("nbins must be positive but is ", bins);
  }
  return SetShape(c, C::VectorOf(bins));
}

}  // namespace

REGISTER_OP("Bincount")
    .Signature("arr: int32, size: int32, weights: T -> bins: T")
    .Attr("T: {int32, int64, float, double}")
    .SetShapeFn(BincountShape)
    .Doc(
        "Counts for each number below the scalar `size` how often it is in `arr`, or adds up what "
        "`weights`, of the shape of `arr` or empty, has where it is. Larger numbers are left out; "
        "negative ones are an error.");

REGISTER_OP("DenseBincount")
    .Signature("input: Tidx, size: Tidx, weights: T -> output: T")
    .Attr("Tidx: {int32, int64}")
    .Attr("T: {int32, int64, float, double}")
    .Attr("binary_output: bool = false")
    .SetShapeFn(DenseBincountShape)
    .Doc(
        "Counts for each number below the scalar `size` how often it is in the vector `input`, or "
        "in each row of the matrix `input`. If `weights` is not empty, it has the shape of `input` "
        "and is added up instead. With `binary_output`, tells by 1 or 0 whether a number is there. "
        "Larger numbers are left out; negative ones are an error.");

REGISTER_OP("HistogramFixedWidth")
    .Signature("values: T, value_range: T, nbins: int32 -> out: dtype")
    .Attr("T: {int32, int64, float, double}")
    .Attr("dtype: {int32, int64} = DT_INT32")
    .SetShapeFn(HistogramShape)
    .Doc(
        "Cuts the interval between the two numbers of `value_range` into `nbins` intervals of one "
        "width and counts what of `values` lies in each. What lies outside counts for the first or "
        "the last one.");

}  // namespace troupe
