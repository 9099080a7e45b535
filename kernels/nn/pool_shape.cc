#include "kernels/nn/pool_shape.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status PoolAttributes::Read(const KernelConstruction& construction, bool takes_nchw) {
  const std::string format = construction.attrs().GetOr<std::string>("data_format", "NHWC");
  if (format != "NHWC" && (!takes_nchw || format != "NCHW")) {
    return InvalidArgument(construction.op(), " takes the data format NHWC ",
                           takes_nchw ? "or NCHW " : "", "only on this device, got ", format);
  }
  channels_first_ = format == "NCHW";
  TROUPE_RETURN_IF_ERROR(ReadPadding(construction, &padding_, &paddings_));
  from_inputs_ = !construction.attrs().Has("ksize");
  if (from_inputs_) return absl::OkStatus();
  std::vector<int64_t> window, stride;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("ksize", &window));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &stride));
  if (window.size() != 4 || stride.size() != 4) {
    return InvalidArgument("ksize and strides must have 4 elements, got ", window.size(), " and ",
                           stride.size());
  }
  std::copy_n(window.begin(), 4, window_.begin());
  std::copy_n(stride.begin(), 4, stride_.begin());
  window_ = InOrder(window_);
  stride_ = InOrder(stride_);
  return Check(window_, stride_);
}

absl::StatusOr<PoolShape> PoolAttributes::Resolve(const KernelContext& ctx, const Shape& input,
                                                  bool allows_depth) const {
  if (input.rank() != 4) {
    return InvalidArgument("pooling takes tensors of rank 4, got shape ", input.ToString());
  }
  Sizes window = window_, stride = stride_;
  if (from_inputs_) {
    TROUPE_RETURN_IF_ERROR(ReadPoolSizes(ctx.input(num_inputs_ - 2), "ksize", &window));
    TROUPE_RETURN_IF_ERROR(ReadPoolSizes(ctx.input(num_inputs_ - 1), "strides", &stride));
    window = InOrder(window);
    stride = InOrder(stride);
    TROUPE_RETURN_IF_ERROR(Check(window, stride));
  }
  const Sizes sizes = InOrder({input.dim(0), input.dim(1), input.dim(2), input.dim(3)});
  PoolShape s;
  s.channels_first = channels_first_;
  s.batch = sizes[0];
  s.depth = sizes[3];
  s.rows = {.input = sizes[1], .size = window[1], .stride = stride[1]};
  s.columns = {.input = sizes[2], .size = window[2], .stride = stride[2]};
  if (padding_ == PaddingMode::kExplicit) {
    for (int d = 1; d < 3; ++d) {
      if (paddings_[2 * d] >= window[d] || paddings_[2 * d + 1] >= window[d]) {
        return InvalidArgument("explicit paddings must be smaller than the window, got ",
                               paddings_[2 * d], " and ", paddings_[2 * d + 1], " for a window of ",
                               window[d]);
      }
    }
  }
  if (window[3] != 1) {
    const char* wrong =
        !allows_depth                      ? "this op does not pool over depth on this device"
        : window[1] != 1 || window[2] != 1 ? "pooling over depth and space at once is not supported"
        : s.depth % window[3] != 0         ? "the depth must be a multiple of the window's"
        : stride[3] != window[3] ? "the stride of pooling over depth must be the window's depth"
        : channels_first_        ? "pooling over depth takes the data format NHWC only"
                                 : nullptr;
    if (wrong != nullptr) {
      return absl::UnimplementedError(absl::StrCat(wrong, " (ksize [", window[0], ",", window[1],
                                                   ",", window[2], ",", window[3], "], input ",
                                                   input.ToString(), ")"));
    }
    s.depth_window = window[3];
  }
  TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, paddings_, s.batch, s.depth, &s.rows, &s.columns));
  return s;
}

PoolAttributes::Sizes PoolAttributes::InOrder(const Sizes& sizes) const {
  return channels_first_ ? Sizes{sizes[0], sizes[2], sizes[3], sizes[1]} : sizes;
}

absl::Status PoolAttributes::Check(const Sizes& window, const Sizes& stride) {
  if (window[0] != 1 || stride[0] != 1) {
    return absl::UnimplementedError("pooling over the batch is not supported");
  }
  for (int d = 0; d < 4; ++d) {
    if (window[d] <= 0 || stride[d] <= 0) {
      return InvalidArgument("ksize and strides must be positive, got ", window[d], " and ",
                             stride[d]);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPoolSizes(const Tensor& sizes, const char* name, std::array<int64_t, 4>* out) {
  if (sizes.rank() != 1 || sizes.dim(0) != 4) {
    return InvalidArgument(name, " must be a vector of 4 elements, got shape ",
                           sizes.shape().ToString());
  }
  std::copy_n(sizes.unchecked_data<int32_t>(), 4, out->begin());
  return absl::OkStatus();
}

absl::Status CheckPoolShape(const char* name, const Shape& got, const Shape& want) {
  if (got == want) return absl::OkStatus();
  return InvalidArgument(name, " has shape ", got.ToString(), ", expected ", want.ToString());
}

}  // namespace troupe
