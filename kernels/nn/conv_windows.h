/// Convolutions whose number of spatial dimensions is that of their input: 2 or 3.
#ifndef TROUPE_KERNELS_NN_CONV_WINDOWS_H_
#define TROUPE_KERNELS_NN_CONV_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {

/// How windows slide over an input whose channels are last; strides, dilations and explicit
/// paddings (two each) have one for every dimension of the input.
struct ConvWindows {
  std::vector<int64_t> strides, dilations;
  PaddingMode padding = PaddingMode::kValid;
  std::vector<int64_t> paddings;

  /// InvalidArgument for what no kernel takes: strides and dilations must be positive, 1 for batch
  /// and channels, dilations 1 for volumes.
  absl::Status Check() const;
  /// The sizes for an input of as many dimensions as there are strides, 4 or 5. InvalidArgument if
  /// the shapes do not fit.
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_WINDOWS_H_
