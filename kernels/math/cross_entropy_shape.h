/// What cross entropies on all types of device want of their inputs.
#ifndef TROUPE_KERNELS_MATH_CROSS_ENTROPY_SHAPE_H_
#define TROUPE_KERNELS_MATH_CROSS_ENTROPY_SHAPE_H_

#include "absl/status/status.h"
#include "devices/shape.h"
#include "devices/status_macros.h"

namespace troupe {

/// InvalidArgument unless there are rows of logits for at least one class, and a label for each.
inline absl::Status CheckSparseCrossEntropy(const Shape& logits, const Shape& labels) {
  if (logits.rank() != 2) {
    return InvalidArgument("logits must have 2 dimensions, got ", logits.ToString());
  }
  if (labels.rank() != 1) {
    return InvalidArgument("labels must have 1 dimension, got ", labels.ToString());
  }
  if (labels.dim(0) != logits.dim(0)) {
    return InvalidArgument("there must be one label for each row of the logits, got labels ",
                           labels.ToString(), " and logits ", logits.ToString());
  }
  if (logits.dim(1) == 0) {
    return InvalidArgument("there must be at least one class, got logits ", logits.ToString());
  }
  return absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_CROSS_ENTROPY_SHAPE_H_
