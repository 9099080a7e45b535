#include "graph/ops/shape_helpers.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "devices/match_type.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a == -1 || b == -1) return -1;
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum < 0) {
    return InvalidArgument("The sum of the sizes ", a, " and ", b, " is no size of a dimension");
  }
  return sum;
}

absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (a == -1 || b == -1) return -1;
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference) || difference < 0) {
    return InvalidArgument("A size would be negative: ", b, " subtracted from ", a);
  }
  return difference;
}

absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == 1) return b;
  if (b == 1) return a;
  if (a == -1 || b == -1) return -1;
  const int64_t product = a < 0 || b < 0 ? -1 : MultiplyWithoutOverflow(a, b);
  if (product < 0) {
    return InvalidArgument("The product of the sizes ", a, " and ", b,
                           " is no size of a dimension");
  }
  return product;
}

absl::StatusOr<int64_t> DivideDim(int64_t a, int64_t b, bool exact) {
  if (b == 1) return a;
  if (a == -1) return -1;
  if (b <= 0) return InvalidArgument("A size cannot be divided by ", b);
  if (exact && a % b != 0) return InvalidArgument("The size ", a, " is no multiple of ", b);
  return a / b;
}

absl::StatusOr<int64_t> WithValue(int64_t size, int64_t value) {
  if (size != -1 && size != value) {
    return InvalidArgument("A dimension must have size ", value, " but has ", size);
  }
  return value;
}

absl::StatusOr<int64_t> KnownElements(const PartialShape& shape, int* unknown) {
  *unknown = -1;
  if (absl::c_linear_search(shape.dims(), 0)) return 0;
  int64_t elements = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == -1) {
      *unknown = *unknown == -1 ? i : -2;
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(elements, MultiplyDims(elements, shape.dim(i)));
  }
  return elements;
}

absl::StatusOr<int> CanonicalAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(what, " ", axis, " must be in the range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::Status MergePrefix(const PartialShape& shape, const PartialShape& prefix,
                         PartialShape* merged) {
  *merged = shape;
  if (shape.unknown_rank() || prefix.unknown_rank()) return absl::OkStatus();
  if (shape.rank() < prefix.rank()) {
    return InvalidArgument("The shape ", shape.ToString(), " does not begin with ",
                           prefix.ToString());
  }
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  for (int i = 0; i < prefix.rank(); ++i) {
    auto size = InferenceContext::MergeDim(sizes[i], prefix.dim(i));
    if (!size.ok()) {
      return InvalidArgument("The shape ", shape.ToString(), " does not begin with ",
                             prefix.ToString(), ": dimension ", i, " differs");
    }
    sizes[i] = *size;
  }
  *merged = PartialShape(sizes);
  return absl::OkStatus();
}

absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b,
                                             bool tolerant) {
  if (a.unknown_rank() || b.unknown_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> sizes(rank);
  for (int i = 0; i < rank; ++i) {
    const int at_a = i - (rank - a.rank()), at_b = i - (rank - b.rank());
    const int64_t x = at_a < 0 ? 1 : a.dim(at_a), y = at_b < 0 ? 1 : b.dim(at_b);
    if (x == -1 || y == -1) {
      if (x > 1 || y > 1) {
        // The unknown size may contradict the known one, which is no error here.
        if (tolerant) return PartialShape();
        sizes[i] = std::max(x, y);
      } else {
        if (tolerant && (x == 0 || y == 0)) return PartialShape();
        sizes[i] = -1;
      }
    } else if (x == 1 || y == 1) {
      sizes[i] = x == 1 ? y : x;
    } else if (x == y) {
      sizes[i] = x;
    } else {
      if (tolerant) return InferenceContext::Scalar();
      return InvalidArgument("Dimensions must be equal, but are ", x, " and ", y, "; shapes ",
                             a.ToString(), " and ", b.ToString(),
                             " cannot be broadcast against each other");
    }
  }
  return PartialShape(sizes);
}

std::vector<int64_t> IntegerValues(const Tensor& tensor) {
  return MatchType<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      tensor.type(), std::vector<int64_t>(), [&]<typename T>() {
        const auto values = tensor.unchecked_values<T>();
        return std::vector<int64_t>(values.begin(), values.end());
      });
}

std::optional<std::vector<int64_t>> IndexValues(const Tensor& tensor) {
  const ElementType type = tensor.type();
  if (type != ElementType::kInt32 && type != ElementType::kInt64) return std::nullopt;
  return IntegerValues(tensor);
}

absl::StatusOr<int64_t> ScalarValue(const Tensor& tensor) {
  if (tensor.rank() != 0) {
    return InvalidArgument("A scalar is needed, not a tensor of shape ", tensor.shape().ToString());
  }
  const std::vector<int64_t> values = IntegerValues(tensor);
  if (values.empty()) {
    return InvalidArgument("An integer is needed, not ", ElementTypeName(tensor.type()));
  }
  return values[0];
}

absl::StatusOr<int64_t> AxisInput(InferenceContext* c, int i, int rank) {
  const Tensor& tensor = c->input_tensor(i);
  if (!tensor.valid()) return -1;
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, ScalarValue(tensor));
  if (rank >= 0) return CanonicalAxis(axis, rank, "The axis");
  return axis < 0 ? -1 : axis;
}

PartialShape HandleShape(InferenceContext* c, int i) {
  const HandleShapes& shapes = c->input_handle(i);
  if (shapes.empty() || shapes[0].first == ElementType::kInvalid) return PartialShape();
  return shapes[0].second;
}

absl::StatusOr<ImageLayout> ImageLayoutOf(InferenceContext* c) {
  const std::string format = c->attrs().GetOr<std::string>("data_format", "NHWC");
  ImageLayout layout;
  if (format == "NHWC") return layout;
  if (format == "NCHW") {
    layout.channels = 1;
    layout.height = 2;
    layout.width = 3;
    return layout;
  }
  return InvalidArgument("data_format is ", format, " but must be NHWC or NCHW");
}

absl::StatusOr<Padding> PaddingOf(InferenceContext* c, const ImageLayout& layout,
                                  std::vector<int64_t>* explicit_paddings) {
  TROUPE_ASSIGN_OR_RETURN(const std::string padding, c->attrs().Get<std::string>("padding"));
  explicit_paddings->clear();
  if (c->attrs().Has("explicit_paddings")) {
    TROUPE_RETURN_IF_ERROR(c->GetAttr("explicit_paddings", explicit_paddings));
  }
  if (padding != "EXPLICIT") {
    if (!explicit_paddings->empty()) {
      return InvalidArgument("explicit_paddings must be empty when padding is ", padding,
                             " but has ", explicit_paddings->size(), " numbers");
    }
    explicit_paddings->assign(8, 0);
    return padding == "SAME" ? Padding::kSame : Padding::kValid;
  }
  if (explicit_paddings->size() != 8) {
    return InvalidArgument("explicit_paddings must have 8 numbers but has ",
                           explicit_paddings->size());
  }
  for (int d = 0; d < 4; ++d) {
    for (int side = 0; side < 2; ++side) {
      const int64_t value = (*explicit_paddings)[2 * d + side];
      if (value < 0) return InvalidArgument("explicit_paddings has a negative number: ", value);
      if (value != 0 && (d == layout.batch || d == layout.channels)) {
        return InvalidArgument("explicit_paddings must be 0 for batch and channels, not ", value);
      }
    }
  }
  return Padding::kExplicit;
}

absl::StatusOr<std::vector<int64_t>> FourIntegers(InferenceContext* c, std::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> values, c->attrs().Get<std::vector<int64_t>>(name));
  if (values.size() != 4) {
    return InvalidArgument("The attribute ", name, " must have 4 numbers but has ", values.size());
  }
  return values;
}

absl::StatusOr<int64_t> WindowPositions(int64_t input, int64_t window, int64_t dilation,
                                        int64_t stride, Padding padding, int64_t before,
                                        int64_t after) {
  if (stride <= 0) return InvalidArgument("A stride must be positive but is ", stride);
  if (dilation < 1) return InvalidArgument("A dilation must be at least 1 but is ", dilation);
  if (padding == Padding::kSame) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t rounded, AddDims(input, stride - 1));
    return DivideDim(rounded, stride, false);
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t padding_size, AddDims(before, after));
  TROUPE_ASSIGN_OR_RETURN(int64_t size, AddDims(input, padding_size));
  if (dilation > 1) {
    TROUPE_ASSIGN_OR_RETURN(window, SubtractDims(window, 1));
    TROUPE_ASSIGN_OR_RETURN(window, MultiplyDims(window, dilation));
    TROUPE_ASSIGN_OR_RETURN(window, AddDims(window, 1));
  }
  TROUPE_ASSIGN_OR_RETURN(size, SubtractDims(size, window));
  TROUPE_ASSIGN_OR_RETURN(size, AddDims(size, stride));
  return DivideDim(size, stride, false);
}

absl::StatusOr<PartialShape> CheckedHandleShape(InferenceContext* c) {
  const HandleShapes& shapes = c->input_handle(0);
  if (shapes.empty()) return PartialShape();
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, c->attrs().Get<ElementType>("dtype"));
  if (shapes[0].first != type) {
    return InvalidArgument("The variable is of type ", ElementTypeName(shapes[0].first),
                           " but is used as one of ", ElementTypeName(type));
  }
  return shapes[0].second;
}

absl::Status SetShape(InferenceContext* c, absl::StatusOr<PartialShape> shape) {
  TROUPE_RETURN_IF_ERROR(shape.status());
  c->set_output(0, *std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeAttrShape(InferenceContext* c) {
  return SetShape(c, c->attrs().Get<PartialShape>("shape"));
}

absl::Status ShapesOfAttr(InferenceContext* c, std::string_view name) {
  std::vector<PartialShape> shapes;
  TROUPE_RETURN_IF_ERROR(c->attrs().Get(name, &shapes));
  if (!shapes.empty() && static_cast<int>(shapes.size()) != c->num_outputs()) {
    return InvalidArgument("there are ", c->num_outputs(), " outputs, but ", shapes.size(),
                           " shapes");
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, shapes.empty() ? PartialShape() : shapes[i]);
  }
  return absl::OkStatus();
}

absl::Status FirstInputAsShape(InferenceContext* c) { return SetShape(c, c->InputAsShape(0)); }

absl::Status ReductionShape(InferenceContext* c) {
  const PartialShape& input = c->input(0);
  // Old graphs may give the axes as a tensor of any rank.
  if (c->graph_version() >= 21) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRankAtMost(c->input(1), 1).status());
  }
  TROUPE_ASSIGN_OR_RETURN(const bool keep_dims, c->attrs().Get<bool>("keep_dims"));
  const Tensor& axes = c->input_tensor(1);
  if (!axes.valid() || input.unknown_rank()) {
    return SetShape(c, keep_dims ? InferenceContext::UnknownOfRank(input.rank()) : PartialShape());
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
  return SetShape(c, PartialShape(sizes));
}

}  // namespace troupe
