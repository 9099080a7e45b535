/// Checks of shapes that several devices' kernels share.
#ifndef TROUPE_KERNELS_MATH_SAME_SHAPE_H_
#define TROUPE_KERNELS_MATH_SAME_SHAPE_H_

#include <array>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "kernels/kernel.h"

namespace troupe {

/// Of ApproximateEqual.
inline absl::Status CheckSameShape(const Shape& x, const Shape& y) {
  if (x == y) return absl::OkStatus();
  return InvalidArgument("x and y must be of the same shape, got ", x.ToString(), " and ",
                         y.ToString());
}

/// Inputs 0 to 2 of Betainc, scalars or of one shape.
struct BetaincInputs {
  int shaped = 0;                ///< The input that has the output's shape.
  std::array<int64_t, 3> steps;  ///< From element to element of each: 0 or 1.
};
inline absl::StatusOr<BetaincInputs> CheckBetainc(const KernelContext& ctx) {
  BetaincInputs inputs;
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = ctx.input(i).shape();
    inputs.steps[i] = shape.rank() == 0 ? 0 : 1;
    if (shape.rank() == 0) continue;
    if (ctx.input(inputs.shaped).rank() == 0) inputs.shaped = i;
    if (!(shape == ctx.input(inputs.shaped).shape())) {
      return InvalidArgument("a, b and x must be scalars or of the same shape, got ",
                             ctx.input(0).shape().ToString(), ", ", ctx.input(1).shape().ToString(),
                             " and ", ctx.input(2).shape().ToString());
    }
  }
  return inputs;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_SAME_SHAPE_H_
