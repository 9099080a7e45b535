/// Inputs of NonMaxSuppression that are read on the host.
#ifndef TROUPE_KERNELS_IMAGE_SUPPRESSION_H_
#define TROUPE_KERNELS_IMAGE_SUPPRESSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// A scalar of float or half.
absl::StatusOr<float> ReadThreshold(const Tensor& scalar, const char* what);
/// An int32 scalar, of at least `least`.
absl::StatusOr<int64_t> ReadCount(const Tensor& scalar, const char* what, int64_t least);
/// InvalidArgument unless `threshold` is between 0 and 1.
absl::Status CheckOverlap(float threshold);

/// Which of the boxes are picked.
struct SuppressionLimits {
  int64_t max_count;
  float overlap_threshold, score_threshold;
  float soft_sigma = 0;
};

/// For the inputs of NonMaxSuppression, up to V5, of boxes and scores, of which shapes are checked.
/// `limits` are those of inputs that the op does not have, and of attributes.
absl::StatusOr<SuppressionLimits> ReadSuppressionLimits(const KernelContext& ctx,
                                                        SuppressionLimits limits);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_SUPPRESSION_H_
