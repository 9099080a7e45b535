/// How much boxes overlap, for processors and cards. Plain types only, for all compilers.
#ifndef TROUPE_KERNELS_IMAGE_BOX_OVERLAP_H_
#define TROUPE_KERNELS_IMAGE_BOX_OVERLAP_H_

#include "kernels/common/device_function.h"

namespace troupe {

/// A box between any two opposite corners.
struct Corners {
  float y1, x1, y2, x2, area;

  template <typename T>
  TROUPE_DEVICE_FUNCTION static Corners Of(const T* box) {
    const auto a = static_cast<float>(box[0]), b = static_cast<float>(box[1]),
               c = static_cast<float>(box[2]), d = static_cast<float>(box[3]);
    Corners result{Least(a, c), Least(b, d), Most(a, c), Most(b, d), 0};
    result.area = (result.y2 - result.y1) * (result.x2 - result.x1);
    return result;
  }

  /// The area of the intersection by that of the union.
  TROUPE_DEVICE_FUNCTION static float Overlap(const Corners& a, const Corners& b) {
    if (a.area <= 0 || b.area <= 0) return 0;
    const float height = Most(Least(a.y2, b.y2) - Most(a.y1, b.y1), 0.0f);
    const float width = Most(Least(a.x2, b.x2) - Most(a.x1, b.x1), 0.0f);
    const float both = height * width;
    return both / (a.area + b.area - both);
  }

 private:
  // The first one if either is NaN.
  TROUPE_DEVICE_FUNCTION static float Least(float a, float b) { return b < a ? b : a; }
  TROUPE_DEVICE_FUNCTION static float Most(float a, float b) { return a < b ? b : a; }
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_BOX_OVERLAP_H_
