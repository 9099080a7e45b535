/// Attributes and shapes of depthwise convolutions: those with one group for each channel.
#ifndef TROUPE_KERNELS_NN_DEPTHWISE_SHAPE_H_
#define TROUPE_KERNELS_NN_DEPTHWISE_SHAPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_shape.h"
#include "kernels/nn/window.h"

namespace troupe {

class DepthwiseAttributes {
 public:
  /// InvalidArgument or Unimplemented for what TensorFlow's kernels do not accept; if `only_nhwc`,
  /// for NCHW too.
  absl::Status Read(const KernelConstruction& construction, bool only_nhwc);
  /// The sizes for an input and a filter [rows, columns, depth, multiplier]. InvalidArgument if
  /// they do not fit each other.
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const;

 private:
  bool channels_first_ = false;
  int64_t stride_ = 1, row_dilation_ = 1, column_dilation_ = 1;
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_DEPTHWISE_SHAPE_H_
