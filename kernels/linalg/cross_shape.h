/// What Cross wants of its inputs, on all types of device.
#ifndef TROUPE_KERNELS_LINALG_CROSS_SHAPE_H_
#define TROUPE_KERNELS_LINALG_CROSS_SHAPE_H_

#include "absl/status/status.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"

namespace troupe {

inline absl::Status CheckCross(const Shape& a, const Shape& b) {
  if (a != b) {
    return InvalidArgument("a and b must have the same shape, got ", a.ToString(), " and ",
                           b.ToString());
  }
  if (a.rank() < 1 || a.dim(a.rank() - 1) != 3) {
    return InvalidArgument("the last dimension must be of size 3, got shape ", a.ToString());
  }
  return absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_CROSS_SHAPE_H_
