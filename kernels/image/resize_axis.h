/// How resizing maps one axis of an image to another.
#ifndef TROUPE_KERNELS_IMAGE_RESIZE_AXIS_H_
#define TROUPE_KERNELS_IMAGE_RESIZE_AXIS_H_

#include <cstdint>
#include <vector>

namespace troupe {

/// Where pixels lie.
struct ResizeMode {
  bool align_corners = false;       ///< The centers of the corner pixels stay where they are.
  bool half_pixel_centers = false;  ///< Pixel i has its center at i + 0.5. Not both.
};

/// The size of a new pixel in old ones.
float ResizeScale(int64_t from, int64_t to, bool align_corners);

/// The old pixels that make up each new one, along an axis, and their weights: pixel i is the sum
/// of weights[k] * old[indices[k]] for begins[i] <= k < begins[i + 1].
struct ResizeAxis {
  std::vector<int32_t> begins;
  std::vector<int32_t> indices;
  std::vector<float> weights;

  int64_t size() const { return static_cast<int64_t>(begins.size()) - 1; }
};

/// Two pixels each. The second weight is the fraction between them, the first what is left.
ResizeAxis BilinearAxis(int64_t from, int64_t to, const ResizeMode& mode);
/// Four pixels each: cubic convolution (Keys, "Cubic Convolution Interpolation for Digital Image
/// Processing", IEEE Transactions on Acoustics, Speech, and Signal Processing 29(6), 1981), with
/// a = -0.5 and what lies outside left out where pixels have their centers at 0.5, else with
/// a = -0.75 and the outermost pixels repeated. Weights are those of multiples of 1/1024.
ResizeAxis BicubicAxis(int64_t from, int64_t to, const ResizeMode& mode);
/// All pixels that a new one covers; a weight is the part of the new one.
ResizeAxis AreaAxis(int64_t from, int64_t to, bool align_corners);
/// The index of the nearest pixel to each.
std::vector<int32_t> NearestIndices(int64_t from, int64_t to, const ResizeMode& mode);

/// For each old pixel, the new ones that it is part of, and its weights: the axis the other way
/// round, for gradients.
ResizeAxis Transposed(const ResizeAxis& axis, int64_t from);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_RESIZE_AXIS_H_
