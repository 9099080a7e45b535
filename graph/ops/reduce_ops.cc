// Reductions, scans and number sequences.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "devices/match_type.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status ArgShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  const PartialShape& input = c->input(0);
  if (input.unknown_rank()) return UnknownShape(c);
  if (input.rank() <= 1) return ScalarShape(c);
  const Tensor& axis_value = c->input_tensor(1);
  if (!axis_value.valid()) return SetShape(c, C::UnknownOfRank(input.rank() - 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t value, ScalarValue(axis_value));
  TROUPE_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "The axis"));
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  sizes.erase(sizes.begin() + axis);
  return SetShape(c, PartialShape(sizes));
}

absl::Status LinSpaceShape(InferenceContext* c) {
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  int64_t num = -1;
  if (const Tensor& value = c->input_tensor(2); value.valid()) {
    TROUPE_ASSIGN_OR_RETURN(num, ScalarValue(value));
    if (num <= 0) return InvalidArgument("`num` must be positive but is ", num);
  }
  return SetShape(c, C::VectorOf(num));
}

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

absl::StatusOr<int64_t> RangeSize(const Tensor& a, const Tensor& b, const Tensor& d) {
  return MatchType<int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, bfloat16, float,
                   double>(
      a.type(),
      absl::StatusOr<int64_t>(
          InvalidArgument("A range of ", ElementTypeName(a.type()), " is not supported")),
      [&]<typename T>() {
        const T start = a.unchecked_scalar<T>(), limit = b.unchecked_scalar<T>(),
                delta = d.unchecked_scalar<T>();
        if constexpr (std::is_integral_v<T>) {
          return IntegerRangeSize<T>(start, limit, delta);
        } else {
          return FloatRangeSize<T, std::conditional_t<std::is_same_v<T, double>, double, float>>(
              start, limit, delta);
        }
      });
}

absl::Status RangeShape(InferenceContext* c) {
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  int64_t size = -1;
  if (c->input_tensor(0).valid() && c->input_tensor(1).valid() && c->input_tensor(2).valid()) {
    TROUPE_ASSIGN_OR_RETURN(size,
                            RangeSize(c->input_tensor(0), c->input_tensor(1), c->input_tensor(2)));
  }
  return SetShape(c, C::VectorOf(size));
}

constexpr char kOrdered[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, qint16, quint16}";

constexpr char kBools[] = "";

OpDefBuilder Reduction(const char* name, const char* type, const char* doc) {
  OpDefBuilder op(name);
  op.Attr("keep_dims: bool = false");
  if (type == kBools) {
    op.Signature("input: bool, reduction_indices: Tidx -> output: bool");
  } else {
    op.Signature("input: T, reduction_indices: Tidx -> output: T").Attr(type);
  }
  op.Attr("Tidx: {int32, int64} = DT_INT32")
      .SetShapeFn(ReductionShape)
      .Doc(
          StrCat(doc, " The axes are dropped from the shape, or kept with size 1 if `keep_dims`."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kReductions[] = {
    Reduction("All", kBools,
              "Tells whether all elements along the axes `reduction_indices` are true."),
    Reduction("Any", kBools,
              "Tells whether any element along the axes `reduction_indices` is true."),
    Reduction("EuclideanNorm", "T: numbertype",
              "Gives the square root of the sum of the squared magnitudes along the axes "
              "`reduction_indices`."),
    Reduction("Max", kOrdered, "Gives the largest element along the axes `reduction_indices`."),
    Reduction("Mean", "T: numbertype",
              "Gives the mean of the elements along the axes `reduction_indices`."),
    Reduction("Min", kOrdered, "Gives the smallest element along the axes `reduction_indices`."),
    Reduction("Prod", "T: numbertype",
              "Multiplies the elements along the axes `reduction_indices`."),
    Reduction("Sum", "T: numbertype", "Adds the elements along the axes `reduction_indices`."),
};

OpDefBuilder Arg(const char* name, const char* index_type, const char* output_type,
                 const char* which) {
  OpDefBuilder op(name);
  op.Signature("input: T, dimension: Tidx -> output: output_type")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64, qint8, quint8, qint32, qint16, quint16, bool}")
      .Attr(index_type)
      .Attr(output_type)
      .SetShapeFn(ArgShape)
      .Doc(StrCat("Gives the index of the ", which,
                  " element along the axis `dimension`, the first of several. The axis is dropped "
                  "from the shape."));
  return op;
}

OpDefBuilder Scan(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("x: T, axis: Tidx -> out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr("T: numbertype")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .SetShapeFn(UnchangedShape)
      .Doc(StrCat(doc,
                  " of those up to it, itself left out if `exclusive`, from the end if `reverse`. "
                  "`out` has the shape of `x`."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kArgsAndScans[] = {
    Arg("ArgMax", "Tidx: {int16, int32, int64} = DT_INT32",
        "output_type: {int16, uint16, int32, int64} = DT_INT64", "largest"),
    Arg("ArgMin", "Tidx: {int32, int64} = DT_INT32", "output_type: {int32, int64} = DT_INT64",
        "smallest"),
    Scan("Cumprod", "Multiplies up along `axis`: each element becomes the product"),
    Scan("Cumsum", "Adds up along `axis`: each element becomes the sum"),
};

}  // namespace

REGISTER_OP("LinSpace")
    .Signature("start: T, stop: T, num: Tidx -> output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(LinSpaceShape)
    .Doc(
        "Gives `num` numbers from `start` to `stop`, both included, at equal distances: a "
        "vector.");

REGISTER_OP("Range")
    .Signature("start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx")
    .Attr(
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
        "uint64} = DT_INT32")
    .SetShapeFn(RangeShape)
    .Doc(
        "Gives the numbers `start`, start + delta, ... as far as they do not reach `limit`: a "
        "vector. All inputs are scalars.");

}  // namespace troupe
