#include "kernels/image/suppression.h"

#include "devices/half.h"

namespace troupe {

absl::StatusOr<float> ReadThreshold(const Tensor& scalar, const char* what) {
  if (scalar.rank() != 0) {
    return InvalidArgument("`", what, "` must be a scalar, got shape ", scalar.shape().ToString());
  }
  return scalar.type() == ElementType::kHalf ? static_cast<float>(scalar.unchecked_scalar<half>())
                                             : scalar.unchecked_scalar<float>();
}

absl::StatusOr<int64_t> ReadCount(const Tensor& scalar, const char* what, int64_t least) {
  if (scalar.rank() != 0) {
    return InvalidArgument("`", what, "` must be a scalar, got shape ", scalar.shape().ToString());
  }
  const int64_t count = scalar.unchecked_scalar<int32_t>();
  if (count < least)
    return InvalidArgument("`", what, "` must be at least ", least, ", got ", count);
  return count;
}

absl::Status CheckOverlap(float threshold) {
  if (threshold >= 0 && threshold <= 1) return absl::OkStatus();
  return InvalidArgument("`iou_threshold` must be between 0 and 1, got ", threshold);
}

absl::StatusOr<SuppressionLimits> ReadSuppressionLimits(const KernelContext& ctx,
                                                        SuppressionLimits limits) {
  const Shape &boxes = ctx.input(0).shape(), &scores = ctx.input(1).shape();
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1 ||
      scores.dim(0) != boxes.dim(0)) {
    return InvalidArgument("`boxes` must be [n, 4] and `scores` [n], got shapes ", boxes.ToString(),
                           " and ", scores.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(limits.max_count, ReadCount(ctx.input(2), "max_output_size", 0));
  if (ctx.num_inputs() > 3) {
    TROUPE_ASSIGN_OR_RETURN(limits.overlap_threshold, ReadThreshold(ctx.input(3), "iou_threshold"));
  }
  TROUPE_RETURN_IF_ERROR(CheckOverlap(limits.overlap_threshold));
  if (ctx.num_inputs() > 4) {
    TROUPE_ASSIGN_OR_RETURN(limits.score_threshold, ReadThreshold(ctx.input(4), "score_threshold"));
  }
  if (ctx.num_inputs() > 5) {
    TROUPE_ASSIGN_OR_RETURN(limits.soft_sigma, ReadThreshold(ctx.input(5), "soft_nms_sigma"));
    if (!(limits.soft_sigma >= 0)) {
      return InvalidArgument("`soft_nms_sigma` must not be negative: ", limits.soft_sigma);
    }
  }
  return limits;
}

}  // namespace troupe
