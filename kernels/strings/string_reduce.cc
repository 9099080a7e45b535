// ReduceJoin, UnsortedSegmentJoin: many strings to few.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Dimensions with the distances between their elements, gone through like an odometer.
class Odometer {
 public:
  void AddDim(int64_t size, int64_t stride) {
    dims_.push_back({size, stride, 0});
    num_elements_ *= size;
  }
  int64_t num_elements() const { return num_elements_; }
  int64_t offset() const { return offset_; }
  /// To the next element; after the last one to the first.
  void Advance() {
    for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim) {
      offset_ += dim->stride;
      if (++dim->index < dim->size) return;
      offset_ -= dim->size * dim->stride;
      dim->index = 0;
    }
  }

 private:
  struct Dim {
    int64_t size, stride, index;
  };
  absl::InlinedVector<Dim, 8> dims_;
  int64_t num_elements_ = 1, offset_ = 0;
};

absl::Status ReduceJoin(KernelContext& ctx, bool keep_dims, const std::string& separator) {
  const Tensor& input = ctx.input(0);
  const Shape& shape = input.shape();
  if (ctx.input(1).rank() > 1) {
    return InvalidArgument("reduction_indices must be a vector or a scalar, got shape ",
                           ctx.input(1).shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegers(ctx.input(1), "reduction_indices"));
  std::vector<int64_t> strides(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape.dim(i + 1);
  std::vector<bool> reduced(shape.rank());
  Odometer joined, kept;
  // The dimension that is named first changes fastest.
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    int64_t axis = *it;
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return absl::OutOfRangeError(StrCat("the dimension ", axis,
                                          " of reduction_indices is not one of the shape ",
                                          shape.ToString()));
    }
    if (axis < 0) axis += shape.rank();
    if (reduced[axis]) {
      return InvalidArgument("reduction_indices names the dimension ", axis, " twice");
    }
    reduced[axis] = true;
    joined.AddDim(shape.dim(static_cast<int>(axis)), strides[axis]);
  }
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[i]) {
      kept.AddDim(shape.dim(i), strides[i]);
      result.AddDim(shape.dim(i));
    } else if (keep_dims) {
      result.AddDim(1);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kString, result));
  const std::string* in = input.unchecked_data<std::string>();
  for (std::string& text : output->mutable_values<std::string>()) {
    for (int64_t i = 0; i < joined.num_elements(); ++i) {
      if (i > 0) text += separator;
      text += in[kept.offset() + joined.offset()];
      joined.Advance();
    }
    kept.Advance();
  }
  return absl::OkStatus();
}

absl::Status UnsortedSegmentJoin(KernelContext& ctx, const std::string& separator) {
  const Tensor &input = ctx.input(0), &ids = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const int64_t segments, ReadIntegerScalar(ctx.input(2), "num_segments"));
  if (segments < 0) return InvalidArgument("num_segments must not be negative, got ", segments);
  if (ids.rank() == 0) return InvalidArgument("segment_ids must not be a scalar");
  DimVector sizes = {segments};
  bool fits = ids.rank() <= input.rank();
  for (int i = 0; fits && i < input.rank(); ++i) {
    if (i < ids.rank()) {
      fits = ids.dim(i) == input.dim(i);
    } else {
      sizes.push_back(input.dim(i));
    }
  }
  if (!fits) {
    return InvalidArgument("the shape ", ids.shape().ToString(),
                           " of segment_ids is not the first dimensions of the shape ",
                           input.shape().ToString(), " of inputs");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  const int64_t row = ids.num_elements() == 0 ? 0 : input.num_elements() / ids.num_elements();
  return SwitchType<int32_t, int64_t>(ids.type(), [&]<typename T>() -> absl::Status {
    const auto segment = ids.unchecked_values<T>();
    for (size_t i = 0; i < segment.size(); ++i) {
      if (segment[i] < 0 || segment[i] >= segments) {
        return InvalidArgument("segment_ids[", i, "] = ", segment[i], " is not in [0, ", segments,
                               ")");
      }
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kString, shape));
    const std::string* in = input.unchecked_data<std::string>();
    std::string* out = output->mutable_data<std::string>();
    for (size_t i = 0; i < segment.size(); ++i) {
      for (int64_t k = 0; k < row; ++k) {
        std::string& text = out[segment[i] * row + k];
        // TensorFlow's rule: nothing separates empty strings at the beginning.
        if (!text.empty()) text += separator;
        text += in[static_cast<int64_t>(i) * row + k];
      }
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("ReduceJoin"), (MakeAttrKernel<ReduceJoin, "keep_dims", "separator">));
REGISTER_KERNEL(KernelSpec("UnsortedSegmentJoin"),
                (MakeAttrKernel<UnsortedSegmentJoin, "separator">));

}  // namespace
}  // namespace troupe
