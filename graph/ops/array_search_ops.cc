// Looking for places in what is sorted, for elements of a rank, for differences of sequences.
#include <algorithm>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status BoundShape(InferenceContext* c) {
  // As in TensorFlow, numbers of rows that differ are left to the kernel, which refuses them.
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 2).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 2).status());
  c->set_output(0, c->input(1));
  return absl::OkStatus();
}

absl::Status NthElementShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, c->InputAsDim(1));
  const int64_t row = C::DimOf(input, -1);
  if (n != -1 && row != -1 && row <= n) {
    return InvalidArgument("There is no element ", n, " in rows of ", row, " elements");
  }
  return SetShape(c, C::Subshape(input, 0, -1));
}

/// InvalidArgument unless inputs i, i + 1 and i + 2 may be indices, values and shape of a sparse
/// tensor.
absl::Status CheckSparse(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(i), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::WithRank(c->input(i + 1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(i + 2), 1));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(indices.dim(0), values.dim(0)).status());
  return C::MergeDim(indices.dim(1), shape.dim(0)).status();
}

absl::Status EditDistanceShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSparse(c, 0));
  TROUPE_RETURN_IF_ERROR(CheckSparse(c, 3));
  const Tensor &hypothesis = c->input_tensor(2), &truth = c->input_tensor(5);
  if (!hypothesis.valid() || !truth.valid()) return UnknownShape(c);
  if (hypothesis.num_elements() != truth.num_elements()) {
    return InvalidArgument("Hypotheses and truths must have the same rank, not ",
                           hypothesis.num_elements(), " and ", truth.num_elements());
  }
  if (truth.num_elements() == 0) return InvalidArgument("Sequences must have a dimension");
  std::vector<int64_t> sizes = IntegerValues(hypothesis);
  const std::vector<int64_t> others = IntegerValues(truth);
  sizes.pop_back();
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], others[i]);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, PartialShape::Create(sizes));
  return SetShape(c, shape);
}

absl::Status UnravelIndexShape(InferenceContext* c) {
  const PartialShape& indices = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape dims, C::WithRank(c->input(1), 1));
  if (indices.unknown_rank()) return UnknownShape(c);
  if (indices.rank() == 0) return SetShape(c, dims);
  return SetShape(c, PartialShape({dims.dim(0), C::NumElements(indices)}));
}

}  // namespace

REGISTER_OP("Bucketize")
    .Signature("input: T -> output: int32")
    .Attr("T: {int32, int64, float, double}")
    .Attr("boundaries: list(float)")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives for each number of `input` how many of `boundaries`, which must not fall, are not "
        "larger.");

REGISTER_OP("EditDistance")
    .Signature(
        "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: "
        "int64, truth_values: T, truth_shape: int64 -> output: float")
    .Attr("normalize: bool = true")
    .Attr("T: type")
    .SetShapeFn(EditDistanceShape)
    .Doc(
        "Gives how many elements must be inserted, removed or replaced at least to make a sequence "
        "of another: of those along the last dimension of a sparse tensor with `hypothesis_values` "
        "at `hypothesis_indices` and the shape `hypothesis_shape` those of the one with "
        "`truth_values` at `truth_indices` and the shape `truth_shape`. If `normalize`, each "
        "distance is divided by the length of the true sequence. `output` has a number for each "
        "sequence.");

REGISTER_OP("LowerBound")
    .Signature("sorted_inputs: T, values: T -> output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(BoundShape)
    .Doc(
        "Gives for each of `values` how many numbers of the same row of `sorted_inputs`, in which "
        "they rise, are smaller. Both are matrices with the same number of rows.");

REGISTER_OP("NthElement")
    .Signature("input: T, n: int32 -> values: T")
    .Attr("reverse: bool = false")
    .Attr("T: realnumbertype")
    .SetShapeFn(NthElementShape)
    .Doc(
        "Gives element `n` of each last-dimension row of `input` as if it were sorted, in falling "
        "order if `reverse`. The last dimension is dropped.");

REGISTER_OP("UnravelIndex")
    .Signature("indices: Tidx, dims: Tidx -> output: Tidx")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(UnravelIndexShape)
    .Doc(
        "Gives the coordinates of the elements that `indices`, a scalar or a vector, numbers in a "
        "row-major tensor of shape `dims`: a row for each dimension.");

REGISTER_OP("UpperBound")
    .Signature("sorted_inputs: T, values: T -> output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(BoundShape)
    .Doc(
        "Gives for each of `values` how many numbers of the same row of `sorted_inputs`, in which "
        "they rise, are not larger. Both are matrices with the same number of rows.");

}  // namespace troupe
