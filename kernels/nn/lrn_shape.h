/// Attributes and shapes of LRN and its gradient.
#ifndef TROUPE_KERNELS_NN_LRN_SHAPE_H_
#define TROUPE_KERNELS_NN_LRN_SHAPE_H_

#include <algorithm>
#include <limits>

#include "kernels/kernel.h"
#include "kernels/simd/lrn.h"

namespace troupe {

class LrnAttributes {
 public:
  absl::Status Read(const KernelConstruction& construction) {
    radius_ = construction.Attr<int64_t>("depth_radius");
    bias_ = construction.Attr<float>("bias");
    alpha_ = construction.Attr<float>("alpha");
    beta_ = construction.Attr<float>("beta");
    if (radius_ >= 0 && radius_ <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return InvalidArgument("depth_radius must be in [0, 2^31), got ", radius_);
  }
  /// For pixels of so many channels, at least one.
  LrnForm FormFor(int64_t depth) const {
    return {depth, std::min(radius_, depth - 1), bias_, alpha_, beta_};
  }

 private:
  int64_t radius_ = 0;
  float bias_ = 1, alpha_ = 1, beta_ = 0.5;
};

/// InvalidArgument unless the input is an image.
inline absl::Status CheckLrnShape(const Shape& input) {
  if (input.rank() == 4) return absl::OkStatus();
  return InvalidArgument("the input must be of rank 4, got shape ", input.ToString());
}
/// InvalidArgument unless all are images of one shape.
inline absl::Status CheckLrnGradShapes(const Shape& gradient, const Shape& input,
                                       const Shape& output) {
  if (input.rank() == 4 && gradient == input && output == input) return absl::OkStatus();
  return InvalidArgument(
      "input_grads, input_image and output_image must be of rank 4 and of "
      "one shape, got ",
      gradient.ToString(), ", ", input.ToString(), " and ", output.ToString());
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_LRN_SHAPE_H_
