// Slicing, joining, padding and permuting.
#include <algorithm>
#include <cstdlib>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/ops/strided_slice_shape.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// Inputs [begin, end) joined along the axis that is input `axis_input`.
absl::Status JoinedShape(InferenceContext* c, int begin, int end, int axis_input) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(axis_input), 0).status());
  const Tensor& axis_value = c->input_tensor(axis_input);
  if (!axis_value.valid()) {
    int rank = -1;
    for (int i = begin; i < end && rank == -1; ++i) rank = c->input(i).rank();
    if (rank == 0) return InvalidArgument("Scalars cannot be concatenated; pack them instead");
    for (int i = begin; i < end && rank != -1; ++i) {
      TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), rank).status());
    }
    return SetShape(c, C::UnknownOfRank(rank));
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, ScalarValue(axis_value));
  if (std::abs(axis) > Shape::kMaxRank) return InvalidArgument("There is no axis ", axis);
  const int min_rank = static_cast<int>(axis < 0 ? -axis : axis + 1);
  PartialShape before, after;
  int64_t size = 0;
  for (int i = end - 1; i >= begin; --i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(i), min_rank));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape input_before, C::Subshape(input, 0, axis));
    PartialShape input_after = C::Scalar();
    if (axis != -1) {
      TROUPE_ASSIGN_OR_RETURN(input_after, C::Subshape(input, axis + 1));
    }
    TROUPE_ASSIGN_OR_RETURN(before, C::Merge(input_before, before));
    TROUPE_ASSIGN_OR_RETURN(after, C::Merge(input_after, after));
    TROUPE_ASSIGN_OR_RETURN(size, AddDims(size, C::DimOf(input, static_cast<int>(axis))));
  }
  return SetShape(c, before.Concatenate(C::VectorOf(size)).Concatenate(after));
}

/// The attribute `axis` for a shape of rank `rank`, counted from the front.
absl::StatusOr<int> AxisAttr(InferenceContext* c, int rank) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t axis, c->attrs().Get<int32_t>("axis"));
  return CanonicalAxis(axis, rank, "The axis");
}

void SetAllOutputs(InferenceContext* c, const PartialShape& shape) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, shape);
}

absl::Status ConcatShape(InferenceContext* c) { return JoinedShape(c, 1, c->num_inputs(), 0); }

/// Like Concat's or ConcatV2's, with the minimum and the maximum of each value behind.
template <bool kAxisLast>
absl::Status QuantizedConcatShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const auto values, c->InputRange("values"));
  const int axis = kAxisLast ? values.second : 0;
  TROUPE_RETURN_IF_ERROR(JoinedShape(c, values.first, values.second, axis));
  for (int i = values.second + (kAxisLast ? 1 : 0); i < c->num_inputs(); ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  }
  c->set_output(1, C::Scalar());
  c->set_output(2, C::Scalar());
  return absl::OkStatus();
}

absl::Status ConcatV2Shape(InferenceContext* c) {
  return JoinedShape(c, 0, c->num_inputs() - 1, c->num_inputs() - 1);
}

absl::Status ConcatOffsetShape(InferenceContext* c) {
  for (int i = 1; i < c->num_inputs(); ++i) c->set_output(i - 1, c->input(i));
  return absl::OkStatus();
}

absl::Status InvertPermutationShape(InferenceContext* c) {
  return SetShape(c, C::WithRank(c->input(0), 1));
}

absl::Status PackShape(InferenceContext* c) {
  PartialShape merged;
  for (int i = c->num_inputs() - 1; i >= 0; --i) {
    TROUPE_ASSIGN_OR_RETURN(merged, C::Merge(c->input(i), merged));
  }
  if (merged.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const int axis, AxisAttr(c, merged.rank() + 1));
  std::vector<int64_t> sizes(merged.dims().begin(), merged.dims().end());
  sizes.insert(sizes.begin() + axis, c->num_inputs());
  return SetShape(c, PartialShape(sizes));
}

absl::Status UnpackShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const int axis, AxisAttr(c, input.rank()));
  TROUPE_RETURN_IF_ERROR(WithValue(input.dim(axis), c->num_outputs()).status());
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  sizes.erase(sizes.begin() + axis);
  SetAllOutputs(c, PartialShape(sizes));
  return absl::OkStatus();
}

absl::Status PadShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape paddings, C::WithRank(c->input(1), 2));
  TROUPE_RETURN_IF_ERROR(WithValue(paddings.dim(1), 2).status());
  PartialShape input = c->input(0);
  int64_t rank = paddings.dim(0);
  if (rank > Shape::kMaxRank) return InvalidArgument("`paddings` has too many rows: ", rank);
  if (rank != -1) {
    TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, static_cast<int>(rank)));
  } else {
    rank = input.rank();
  }
  const Tensor& value = c->input_tensor(1);
  if (!value.valid()) return SetShape(c, C::UnknownOfRank(static_cast<int>(rank)));
  const std::vector<int64_t> amounts = IntegerValues(value);
  TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, static_cast<int>(amounts.size() / 2)));
  std::vector<int64_t> sizes(input.rank());
  for (int i = 0; i < input.rank(); ++i) {
    int64_t amount;
    if (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0) {
      return InvalidArgument("The paddings of dimension ", i, " are negative: ", amounts[2 * i],
                             " and ", amounts[2 * i + 1]);
    }
    if (__builtin_add_overflow(amounts[2 * i], amounts[2 * i + 1], &amount)) {
      return InvalidArgument("The paddings of dimension ", i, " are too large");
    }
    TROUPE_ASSIGN_OR_RETURN(sizes[i], AddDims(input.dim(i), amount));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status MirrorPadGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape paddings, C::WithRank(c->input(1), 2));
  const int64_t rank = paddings.dim(0);
  if (rank == -1) return UnknownShape(c);
  if (rank > Shape::kMaxRank) return InvalidArgument("`paddings` has too many rows: ", rank);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input,
                          C::WithRank(c->input(0), static_cast<int>(rank)));
  TROUPE_RETURN_IF_ERROR(WithValue(paddings.dim(1), 2).status());
  const Tensor& value = c->input_tensor(1);
  if (!value.valid()) return SetShape(c, C::UnknownOfRank(static_cast<int>(rank)));
  const std::vector<int64_t> amounts = IntegerValues(value);
  std::vector<int64_t> sizes(rank);
  for (int i = 0; i < rank; ++i) {
    if (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0) {
      return InvalidArgument("The paddings of dimension ", i, " are negative: ", amounts[2 * i],
                             " and ", amounts[2 * i + 1]);
    }
    TROUPE_ASSIGN_OR_RETURN(sizes[i], SubtractDims(input.dim(i), amounts[2 * i]));
    TROUPE_ASSIGN_OR_RETURN(sizes[i], SubtractDims(sizes[i], amounts[2 * i + 1]));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status ReverseV2Shape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  if (input.rank() > 8) {
    return InvalidArgument("A tensor to be reversed has at most 8 dimensions, not ", input.rank());
  }
  const Tensor& axes = c->input_tensor(1);
  if (axes.valid() && !input.unknown_rank()) {
    std::vector<bool> seen(input.rank());
    for (const int64_t value : IntegerValues(axes)) {
      TROUPE_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "The axis"));
      if (seen[axis]) return InvalidArgument("The axis ", axis, " is named twice");
      seen[axis] = true;
    }
  }
  return SetShape(c, input);
}

absl::Status SliceShape(InferenceContext* c) {
  PartialShape input = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape spec, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes_shape, C::WithRank(c->input(2), 1));
  TROUPE_ASSIGN_OR_RETURN(spec, C::Merge(spec, sizes_shape));
  if (spec.dim(0) > Shape::kMaxRank) return InvalidArgument("`begin` is too long");
  if (spec.dim(0) != -1) {
    TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, static_cast<int>(spec.dim(0))));
  }
  // A partly known `begin` is read like a shape, a begin of -1 hence as an unknown one.
  TROUPE_ASSIGN_OR_RETURN(PartialShape begin, c->InputAsShape(1));
  const Tensor& sizes_value = c->input_tensor(2);
  if (!sizes_value.valid()) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes, c->InputAsShape(2));
    if (!sizes.unknown_rank()) {
      TROUPE_RETURN_IF_ERROR(C::WithRank(begin, sizes.rank()).status());
    }
    return SetShape(c, sizes.unknown_rank() ? C::UnknownOfRank(input.rank()) : sizes);
  }
  std::vector<int64_t> sizes = IntegerValues(sizes_value);
  TROUPE_ASSIGN_OR_RETURN(begin, C::WithRank(begin, static_cast<int>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) {
      return InvalidArgument("The size of dimension ", i, " is ", sizes[i],
                             " but must be at least -1");
    }
    if (sizes[i] != -1) continue;
    const int at = static_cast<int>(i);
    TROUPE_ASSIGN_OR_RETURN(sizes[i], SubtractDims(C::DimOf(input, at), begin.dim(at)));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status SplitShape(InferenceContext* c) {
  PartialShape input = c->input(1);
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, AxisInput(c, 0, input.rank()));
  if (axis == -1) {
    SetAllOutputs(c, C::UnknownOfRank(input.rank()));
    return absl::OkStatus();
  }
  if (!input.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t size,
                            DivideDim(input.dim(static_cast<int>(axis)), c->num_outputs(), true));
    input = C::ReplaceDim(input, static_cast<int>(axis), size);
  }
  SetAllOutputs(c, input);
  return absl::OkStatus();
}

absl::Status SplitVShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t known_axis, AxisInput(c, 2, input.rank()));
  if (input.unknown_rank()) return UnknownShape(c);
  if (input.rank() == 0) return InvalidArgument("A scalar cannot be split");
  const Tensor& sizes_value = c->input_tensor(1);
  if (!sizes_value.valid()) {
    SetAllOutputs(c, known_axis == -1 ? C::UnknownOfRank(input.rank())
                                      : C::ReplaceDim(input, static_cast<int>(known_axis), -1));
    return absl::OkStatus();
  }
  if (sizes_value.rank() != 1) {
    return InvalidArgument("`size_splits` must be a vector, but its shape is ",
                           sizes_value.shape().ToString());
  }
  // TensorFlow takes an unknown axis for the last one as soon as it knows the parts' sizes.
  const int axis = static_cast<int>(known_axis == -1 ? input.rank() - 1 : known_axis);
  const std::vector<int64_t> sizes = IntegerValues(sizes_value);
  if (static_cast<int>(sizes.size()) != c->num_outputs()) {
    return InvalidArgument("`size_splits` has ", sizes.size(), " numbers for ", c->num_outputs(),
                           " outputs");
  }
  const int64_t whole = input.dim(axis);
  int64_t total = 0;
  bool rest = false;
  for (const int64_t size : sizes) {
    if (size == -1) {
      if (rest) return InvalidArgument("Only one number of `size_splits` can be -1");
      rest = true;
    } else if (__builtin_add_overflow(total, size, &total)) {
      return InvalidArgument("The numbers of `size_splits` are too large");
    }
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    int64_t size = sizes[i];
    if (size == -1 && whole != -1) size = whole - total;
    if (size < -1 || (size == -1 && whole != -1)) {
      return InvalidArgument("Part ", i, " would have the size ", size);
    }
    c->set_output(i, C::ReplaceDim(input, axis, size));
  }
  if (whole != -1 && (rest ? total > whole : total != whole)) {
    return InvalidArgument("The parts have ", total, " elements together, dimension ", axis,
                           " has ", whole);
  }
  return absl::OkStatus();
}

absl::Status StridedSliceShape(InferenceContext* c) {
  PartialShape spec;
  for (int i = 1; i < 4; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(i), 1));
    TROUPE_ASSIGN_OR_RETURN(spec, C::Merge(spec, vector));
  }
  const PartialShape& input = c->input(0);
  if (input.unknown_rank() || spec.dim(0) == -1 || !c->input_tensor(3).valid()) {
    return UnknownShape(c);
  }
  StridedSliceSpec slice;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("begin_mask", &slice.begin_mask));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("end_mask", &slice.end_mask));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("ellipsis_mask", &slice.ellipsis_mask));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("new_axis_mask", &slice.new_axis_mask));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shrink_axis_mask", &slice.shrink_axis_mask));
  if (c->input_tensor(1).valid()) slice.begin = IntegerValues(c->input_tensor(1));
  if (c->input_tensor(2).valid()) slice.end = IntegerValues(c->input_tensor(2));
  slice.strides = IntegerValues(c->input_tensor(3));
  return SetShape(c, StridedSliceOutputShape(slice, input));
}

absl::Status TileShape(InferenceContext* c) {
  PartialShape input = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape multiples, c->InputAsShape(1));
  if (!input.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(multiples, C::WithRank(multiples, input.rank()));
  }
  if (multiples.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, multiples.rank()));
  std::vector<int64_t> sizes(input.rank());
  for (int i = 0; i < input.rank(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(sizes[i], MultiplyDims(input.dim(i), multiples.dim(i)));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status TransposeShape(InferenceContext* c) {
  const PartialShape& perm_shape = c->input(1);
  const Tensor& perm = c->input_tensor(1);
  int64_t perm_elements = C::NumElements(perm_shape);
  PartialShape input = c->input(0);
  if (input.unknown_rank() && perm_elements == -1 && !perm.valid()) return UnknownShape(c);
  int64_t rank = input.rank();
  if (rank == -1) rank = perm_elements != -1 ? perm_elements : perm.num_elements();
  if (rank > Shape::kMaxRank) return InvalidArgument("`perm` is too long");
  // One number may stand for a vector or a scalar, which are transposed alike.
  if (input.unknown_rank() && rank < 2) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(input, C::WithRank(input, static_cast<int>(rank)));
  TROUPE_RETURN_IF_ERROR(C::WithRank(perm_shape, 1).status());
  TROUPE_RETURN_IF_ERROR(WithValue(perm_elements, rank).status());
  std::vector<int64_t> sizes(rank, -1);
  if (perm.valid()) {
    const std::vector<int64_t> order = IntegerValues(perm);
    for (int i = 0; i < rank; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const int axis,
                              CanonicalAxis(order[i], static_cast<int>(rank), "perm: axis"));
      sizes[i] = input.dim(axis);
    }
  }
  return SetShape(c, PartialShape(sizes));
}

}  // namespace

REGISTER_OP("Concat")
    .Signature("concat_dim: int32, values: N * T -> output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .SetShapeFn(ConcatShape)
    .Doc("Joins `values` along the dimension `concat_dim`; the other sizes are equal.");

REGISTER_OP("QuantizedConcat")
    .Signature(
        "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float -> "
        "output: T, output_min: float, output_max: float")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .SetShapeFn(QuantizedConcatShape<false>)
    .Doc(
        "Joins `values` along the dimension `concat_dim`, requantized to a range that holds all "
        "of theirs.");

REGISTER_OP("QuantizedConcatV2")
    .Signature(
        "values: N * T, axis: Tidx, input_mins: N * float, input_maxes: N * float -> output: T, "
        "output_min: float, output_max: float")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(QuantizedConcatShape<true>)
    .Doc(
        "Joins `values` along the dimension `axis`, counted from the end if it is negative, "
        "requantized to a range that holds all of theirs.");

REGISTER_OP("ConcatOffset")
    .Signature("concat_dim: int32, shape: N * shape_type -> offset: N * shape_type")
    .Attr("N: int >= 2")
    .Attr("shape_type: {int32, int64} = DT_INT32")
    .SetShapeFn(ConcatOffsetShape)
    .Doc(
        "Gives, for tensors of the sizes in `shape`, where each begins once they are joined "
        "along `concat_dim`.");

REGISTER_OP("ConcatV2")
    .Signature("values: N * T, axis: Tidx -> output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ConcatV2Shape)
    .Doc("Joins `values` along `axis` (negative: from the end); the other sizes are equal.");

REGISTER_OP("InvertPermutation")
    .Signature("x: T -> y: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(InvertPermutationShape)
    .Doc("Gives the inverse of the permutation `x` of 0 ... n-1: y[x[i]] = i.");

REGISTER_OP("Pack")
    .Signature("values: N * T -> output: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .SetShapeFn(PackShape)
    .Doc("Stacks `values`, which have one shape, along a new dimension `axis`.");

REGISTER_OP("ConjugateTranspose")
    .Signature("x: T, perm: Tperm -> y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .SetShapeFn(TransposeShape)
    .Doc("Permutes dimensions and conjugates: dimension i of `y` is dimension perm[i] of `x`.");

REGISTER_OP("MirrorPad")
    .Signature("input: T, paddings: Tpaddings -> output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .SetShapeFn(PadShape)
    .Doc(
        "Adds mirror images around `input`: paddings[d, 0] elements before and paddings[d, 1] "
        "after in dimension d. The mirror is the first or last element itself if `mode` is "
        "REFLECT, the edge beyond it if SYMMETRIC.");

REGISTER_OP("MirrorPadGrad")
    .Signature("input: T, paddings: Tpaddings -> output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .SetShapeFn(MirrorPadGradShape)
    .Doc(
        "Gradient of `MirrorPad`: adds what `input`, of the padded shape, has in the mirror images "
        "to the elements that they show, and cuts them off: paddings[d, 0] elements before and "
        "paddings[d, 1] after in dimension d, mirrored as `mode` says.");

REGISTER_OP("Pad")
    .Signature("input: T, paddings: Tpaddings -> output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .SetShapeFn(PadShape)
    .Doc(
        "Adds zeros around `input`: paddings[d, 0] before and paddings[d, 1] after in dimension "
        "d.");

REGISTER_OP("PadV2")
    .Signature("input: T, paddings: Tpaddings, constant_values: T -> output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .SetShapeFn(PadShape)
    .Doc(
        "Adds `constant_values` around `input`: paddings[d, 0] before and paddings[d, 1] after "
        "in dimension d.");

REGISTER_OP("ReverseV2")
    .Signature("tensor: T, axis: Tidx -> output: T")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr(
        "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, "
        "float, double, complex64, complex128, string}")
    .SetShapeFn(ReverseV2Shape)
    .Doc(
        "Reverses the order of the elements along the dimensions in `axis`. `output` has the "
        "shape of `tensor`.");

REGISTER_OP("Slice")
    .Signature("input: T, begin: Index, size: Index -> output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .SetShapeFn(SliceShape)
    .Doc(
        "Cuts out the block that starts at `begin` and has the sizes `size` (-1: up to the "
        "end), one for each dimension of `input`.");

REGISTER_OP("Split")
    .Signature("split_dim: int32, value: T -> output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .SetShapeFn(SplitShape)
    .Doc("Cuts `value` along `split_dim` into `num_split` equal parts.");

REGISTER_OP("SplitV")
    .Signature("value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .Attr("Tlen: {int8, int32, int64} = DT_INT64")
    .SetShapeFn(SplitVShape)
    .Doc(
        "Cuts `value` along `split_dim` into parts of the sizes `size_splits`, one of which may "
        "be -1: the rest.");

REGISTER_OP("StridedSlice")
    .Signature("input: T, begin: Index, end: Index, strides: Index -> output: T")
    .Attr("T: type")
    .Attr("Index: {int16, int32, int64}")
    .Attr("begin_mask: int = 0")
    .Attr("end_mask: int = 0")
    .Attr("ellipsis_mask: int = 0")
    .Attr("new_axis_mask: int = 0")
    .Attr("shrink_axis_mask: int = 0")
    .SetShapeFn(StridedSliceShape)
    .Doc(
        "Takes elements begin, begin + stride, ... before end in each dimension of `input`. "
        "Bits of the masks say for each position: leave out a bound, stand for all remaining "
        "dimensions, insert a new one, or take one element and drop the dimension.");

REGISTER_OP("StridedSliceGrad")
    .Signature("shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Attr("begin_mask: int = 0")
    .Attr("end_mask: int = 0")
    .Attr("ellipsis_mask: int = 0")
    .Attr("new_axis_mask: int = 0")
    .Attr("shrink_axis_mask: int = 0")
    .SetShapeFn(FirstInputAsShape)
    .Doc(
        "Gradient of `StridedSlice`: puts `dy` where the slice of a tensor of shape `shape` was "
        "taken, zeros elsewhere.");

REGISTER_OP("Tile")
    .Signature("input: T, multiples: Tmultiples -> output: T")
    .Attr("T: type")
    .Attr("Tmultiples: {int32, int64} = DT_INT32")
    .SetShapeFn(TileShape)
    .Doc("Repeats `input` multiples[d] times along each dimension d.");

REGISTER_OP("Transpose")
    .Signature("x: T, perm: Tperm -> y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .SetShapeFn(TransposeShape)
    .Doc("Permutes dimensions: dimension i of `y` is dimension perm[i] of `x`.");

REGISTER_OP("Unpack")
    .Signature("value: T -> output: num * T")
    .Attr("num: int >= 0")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .SetShapeFn(UnpackShape)
    .Doc("Cuts `value` along `axis` into `num` tensors without that dimension.");

}  // namespace troupe
