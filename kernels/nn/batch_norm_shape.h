/// Attributes, shapes and layouts of batch normalization.
#ifndef TROUPE_KERNELS_NN_BATCH_NORM_SHAPE_H_
#define TROUPE_KERNELS_NN_BATCH_NORM_SHAPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// Where channels lie: element i belongs to channel i / inner % channels.
struct ChannelLayout {
  int64_t outer = 0, channels = 0, inner = 1;

  int64_t per_channel() const { return outer * inner; }
};

struct BatchNormAttrs {
  bool channels_first = false;
  bool is_training = true;
  float epsilon = 0;
  float factor = 1;  ///< exponential_avg_factor: the weight of a batch's own statistics.

  /// An attribute's error if one is missing.
  absl::Status Read(const KernelConstruction& construction);
  /// True if the mean and the variance that are given matter.
  bool uses_given() const { return !is_training || factor != 1.0f; }
};

/// The layout of FusedBatchNorm's input 0; InvalidArgument for inputs whose shapes do not agree.
absl::StatusOr<ChannelLayout> CheckBatchNorm(const KernelContext& ctx, const BatchNormAttrs& attrs);
/// The same for input 1 of its gradient.
absl::StatusOr<ChannelLayout> CheckBatchNormGrad(const KernelContext& ctx,
                                                 const BatchNormAttrs& attrs);

/// InvalidArgument unless BatchNormWithGlobalNormalization's input 0 is of rank 4 and the others
/// are vectors of its channels; for the gradient, whose input 4 has the shape of input 0.
absl::Status CheckGlobalNorm(const KernelContext& ctx);
absl::Status CheckGlobalNormGrad(const KernelContext& ctx);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_BATCH_NORM_SHAPE_H_
