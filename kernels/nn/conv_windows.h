/// Convolutions whose number of spatial dimensions is that of their input: 2 or 3.
#ifndef TROUPE_KERNELS_NN_CONV_WINDOWS_H_
#define TROUPE_KERNELS_NN_CONV_WINDOWS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {

/// How windows slide over an input; strides, dilations and explicit paddings (two each) have one
/// for every dimension of the input. Paddings are in the order of inputs whose channels are last.
struct ConvWindows {
  std::vector<int64_t> strides, dilations;
  PaddingMode padding = PaddingMode::kValid;
  std::vector<int64_t> paddings;
  bool channels_first = false;

  /// The attributes of Conv3D and its gradients. Errors as `Check`. For the CPU (`is_cpu`) channels
  /// must be last, too.
  absl::Status ReadVolume(const KernelConstruction& construction, bool is_cpu);
  /// InvalidArgument for what no kernel takes: strides and dilations must be positive, 1 for batch
  /// and channels; for what no kernel of the CPU takes: dilations of volumes.
  absl::Status Check(bool is_cpu) const;
  /// The sizes for an input of as many dimensions as there are strides, 4 or 5. InvalidArgument if
  /// the shapes do not fit.
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const;
};

/// What Conv is to do: its input's dimensions are a batch of any number of dimensions, two or three
/// spatial ones, and the channels.
struct GeneralConv {
  ConvWindows windows;
  int64_t batch_dims = 1;

  /// Unimplemented or InvalidArgument for attributes that no kernel takes, or none of the CPU.
  absl::Status Read(const KernelConstruction& construction, bool is_cpu);
  /// The sizes, of all batch dimensions as one, and the shape of the result. InvalidArgument.
  absl::StatusOr<std::pair<ConvShape, Shape>> Resolve(const Shape& input,
                                                      const Shape& filter) const;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_WINDOWS_H_
