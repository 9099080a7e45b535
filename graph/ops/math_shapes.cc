// Shapes of comparisons, selection, reductions, sequences and matrix products.
#include <cmath>
#include <limits>
#include <string>

#include "devices/status_macros.h"
#include "graph/ops/shape_functions.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {

using C = InferenceContext;

absl::Status EqualShape(InferenceContext* c) {
  bool strict;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("incompatible_shape_error", &strict));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape,
                          BroadcastShapes(c->input(0), c->input(1), !strict));
  c->set_output(0, shape);
  return absl::OkStatus();
}

absl::Status SelectShape(InferenceContext* c) {
  const PartialShape& condition = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape data, C::Merge(c->input(1), c->input(2)));
  if (!condition.unknown_rank() && !data.unknown_rank() && condition.rank() != 0) {
    if (condition.rank() == 1 && data.rank() != 0) {
      TROUPE_RETURN_IF_ERROR(C::MergeDim(condition.dim(0), data.dim(0)).status());
    } else {
      TROUPE_ASSIGN_OR_RETURN(data, C::Merge(data, condition));
    }
  }
  c->set_output(0, data);
  return absl::OkStatus();
}

absl::Status SelectV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, BroadcastShapes(c->input(1), c->input(2), false));
  TROUPE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c->input(0), shape, false));
  c->set_output(0, shape);
  return absl::OkStatus();
}

absl::Status ReductionShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  // Old graphs may give the axes as a tensor of any rank.
  if (c->graph_version() >= 21) {
    TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(1), 1).status());
  }
  bool keep_dims;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("keep_dims", &keep_dims));
  const Tensor& axes = c->input_tensor(1);
  if (!axes.valid() || input.unknown_rank()) {
    c->set_output(0, keep_dims ? C::UnknownOfRank(input.rank()) : PartialShape());
    return absl::OkStatus();
  }
  std::vector<bool> reduced(input.rank());
  for (const int64_t value : IntegerValues(axes)) {
    TROUPE_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "The axis"));
    reduced[axis] = true;
  }
  std::vector<int64_t> sizes;
  for (int i = 0; i < input.rank(); ++i) {
    if (!reduced[i]) {
      sizes.push_back(input.dim(i));
    } else if (keep_dims) {
      sizes.push_back(1);
    }
  }
  c->set_output(0, PartialShape(sizes));
  return absl::OkStatus();
}

absl::Status ArgShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  if (input.rank() <= 1) return ScalarShape(c);
  const Tensor& axis_value = c->input_tensor(1);
  if (!axis_value.valid()) {
    c->set_output(0, C::UnknownOfRank(input.rank() - 1));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t value, ScalarValue(axis_value));
  TROUPE_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "The axis"));
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  sizes.erase(sizes.begin() + axis);
  c->set_output(0, PartialShape(sizes));
  return absl::OkStatus();
}

absl::Status LinSpaceShape(InferenceContext* c) {
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  int64_t num = -1;
  if (const Tensor& value = c->input_tensor(2); value.valid()) {
    TROUPE_ASSIGN_OR_RETURN(num, ScalarValue(value));
    if (num <= 0) return InvalidArgument("`num` must be positive but is ", num);
  }
  c->set_output(0, C::VectorOf(num));
  return absl::OkStatus();
}

namespace {

/// Numbers of an integer range; differences are taken modulo 2^64, so that none overflows.
template <typename T>
absl::StatusOr<int64_t> IntegerRangeSize(T start, T limit, T delta) {
  if (delta == 0) return InvalidArgument("`delta` must not be 0");
  if ((start > limit && delta > 0) || (start < limit && delta < 0)) {
    return InvalidArgument("A range from ", start, " to ", limit, " cannot have the step ", delta);
  }
  const bool up = limit >= start;
  const uint64_t distance = up ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                               : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
  if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidArgument("A range from ", start, " to ", limit, " is too long");
  }
  return static_cast<int64_t>(size);
}

/// Numbers of a floating range; `Wide` is the type in which the division is made.
template <typename T, typename Wide>
absl::StatusOr<int64_t> FloatRangeSize(T start_value, T limit_value, T delta_value) {
  const Wide start = static_cast<Wide>(start_value), limit = static_cast<Wide>(limit_value),
             delta = static_cast<Wide>(delta_value);
  if (delta == 0) return InvalidArgument("`delta` must not be 0");
  if ((start > limit && delta > 0) || (start < limit && delta < 0)) {
    return InvalidArgument("A range from ", start, " to ", limit, " cannot have the step ", delta);
  }
  const Wide distance = static_cast<Wide>(static_cast<T>(limit - start));
  const Wide steps = std::ceil(std::abs(static_cast<Wide>(static_cast<T>(distance / delta))));
  // Also false for NaN.
  if (!(steps < static_cast<Wide>(std::numeric_limits<int64_t>::max()))) {
    return InvalidArgument("A range from ", start, " to ", limit, " by ", delta,
                           " has no usable length");
  }
  return static_cast<int64_t>(steps);
}

template <typename T>
absl::StatusOr<int64_t> IntegerRange(const Tensor& a, const Tensor& b, const Tensor& d) {
  return IntegerRangeSize<T>(a.unchecked_scalar<T>(), b.unchecked_scalar<T>(),
                             d.unchecked_scalar<T>());
}

template <typename T, typename Wide>
absl::StatusOr<int64_t> FloatRange(const Tensor& a, const Tensor& b, const Tensor& d) {
  return FloatRangeSize<T, Wide>(a.unchecked_scalar<T>(), b.unchecked_scalar<T>(),
                                 d.unchecked_scalar<T>());
}

absl::StatusOr<int64_t> RangeSize(const Tensor& a, const Tensor& b, const Tensor& d) {
  switch (a.type()) {
    case ElementType::kInt8:
      return IntegerRange<int8_t>(a, b, d);
    case ElementType::kInt16:
      return IntegerRange<int16_t>(a, b, d);
    case ElementType::kInt32:
      return IntegerRange<int32_t>(a, b, d);
    case ElementType::kInt64:
      return IntegerRange<int64_t>(a, b, d);
    case ElementType::kUint16:
      return IntegerRange<uint16_t>(a, b, d);
    case ElementType::kUint32:
      return IntegerRange<uint32_t>(a, b, d);
    case ElementType::kUint64:
      return IntegerRange<uint64_t>(a, b, d);
    case ElementType::kBfloat16:
      return FloatRange<bfloat16, float>(a, b, d);
    case ElementType::kFloat:
      return FloatRange<float, float>(a, b, d);
    case ElementType::kDouble:
      return FloatRange<double, double>(a, b, d);
    default:
      return InvalidArgument("A range of ", ElementTypeName(a.type()), " is not supported");
  }
}

/// Output 0: matrices [rows, columns] below the dimensions `batch`.
void SetMatrices(InferenceContext* c, const PartialShape& batch, int64_t rows, int64_t columns) {
  c->set_output(
      0, batch.unknown_rank() ? PartialShape() : batch.Concatenate(PartialShape({rows, columns})));
}

absl::Status BatchMatMul(InferenceContext* c, bool broadcast) {
  bool adj_x, adj_y;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("adj_x", &adj_x));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("adj_y", &adj_y));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape y, C::WithRankAtLeast(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape batch_x, C::Subshape(x, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape batch_y, C::Subshape(y, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, broadcast
                                                        ? BroadcastShapes(batch_x, batch_y, false)
                                                        : C::Merge(batch_x, batch_y));
  TROUPE_RETURN_IF_ERROR(
      C::MergeDim(C::DimOf(x, adj_x ? -2 : -1), C::DimOf(y, adj_y ? -1 : -2)).status());
  SetMatrices(c, batch, C::DimOf(x, adj_x ? -1 : -2), C::DimOf(y, adj_y ? -2 : -1));
  return absl::OkStatus();
}

}  // namespace

absl::Status RangeShape(InferenceContext* c) {
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  int64_t size = -1;
  if (c->input_tensor(0).valid() && c->input_tensor(1).valid() && c->input_tensor(2).valid()) {
    TROUPE_ASSIGN_OR_RETURN(size,
                            RangeSize(c->input_tensor(0), c->input_tensor(1), c->input_tensor(2)));
  }
  c->set_output(0, C::VectorOf(size));
  return absl::OkStatus();
}

absl::Status UnsortedSegmentShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  const PartialShape& ids = c->input(1);
  if (ids.unknown_rank()) return UnknownShape(c);
  PartialShape data;
  TROUPE_RETURN_IF_ERROR(MergePrefix(c->input(0), ids, &data));
  TROUPE_ASSIGN_OR_RETURN(const int64_t segments, c->InputAsDim(2));
  if (data.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape slice, C::Subshape(data, ids.rank()));
  c->set_output(0, C::VectorOf(segments).Concatenate(slice));
  return absl::OkStatus();
}

absl::Status MatMulShape(InferenceContext* c) {
  bool transpose_a, transpose_b;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("transpose_a", &transpose_a));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("transpose_b", &transpose_b));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape a, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape b, C::WithRank(c->input(1), 2));
  const int64_t inner_a = a.dim(transpose_a ? 0 : 1), inner_b = b.dim(transpose_b ? 1 : 0);
  if (!C::MergeDim(inner_a, inner_b).ok()) {
    return InvalidArgument("Matrices of shapes ", a.ToString(), " and ", b.ToString(),
                           " cannot be multiplied: the inner sizes are ", inner_a, " and ", inner_b,
                           " (transpose_a: ", transpose_a, ", transpose_b: ", transpose_b, ")");
  }
  SetMatrices(c, C::Scalar(), a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1));
  return absl::OkStatus();
}

absl::Status BatchMatMulShape(InferenceContext* c) { return BatchMatMul(c, false); }
absl::Status BatchMatMulV2Shape(InferenceContext* c) { return BatchMatMul(c, true); }

}  // namespace troupe
