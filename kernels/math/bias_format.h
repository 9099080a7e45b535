/// Where biases are added.
#ifndef TROUPE_KERNELS_MATH_BIAS_FORMAT_H_
#define TROUPE_KERNELS_MATH_BIAS_FORMAT_H_

#include <string>

#include "kernels/kernel.h"

namespace troupe {

/// The dimension of channels: the last, or of NCHW images the second.
inline int ChannelDim(const Shape& shape, bool channels_first) {
  return channels_first && shape.rank() > 2 ? 1 : shape.rank() - 1;
}

/// The attribute data_format; InvalidArgument unless it is NHWC (also if it is absent) or NCHW.
inline absl::Status ReadBiasFormat(KernelConstruction& construction, bool* channels_first) {
  const std::string format = construction.attrs().GetOr<std::string>("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") {
    return InvalidArgument("data_format must be NHWC or NCHW, not ", format);
  }
  *channels_first = format == "NCHW";
  return absl::OkStatus();
}

/// InvalidArgument unless `bias` has one value for each channel of `value`.
inline absl::Status CheckBias(const Shape& value, const Shape& bias, bool channels_first) {
  if (value.rank() < 2) {
    return InvalidArgument("the value must have at least 2 dimensions, got ", value.ToString());
  }
  if (bias.rank() != 1) {
    return InvalidArgument("the bias must have 1 dimension, got ", bias.ToString());
  }
  const int channel = ChannelDim(value, channels_first);
  if (bias.dim(0) == value.dim(channel)) return absl::OkStatus();
  return InvalidArgument("the bias must have one value for each of the ", value.dim(channel),
                         " channels of ", value.ToString(), ", got ", bias.ToString());
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_BIAS_FORMAT_H_
