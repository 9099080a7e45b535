#include "kernels/image/scale_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "devices/status_macros.h"
#include "devices/tensor.h"

namespace troupe {
namespace {

constexpr float kPiFloat = std::numbers::pi_v<float>;

template <int kRadius>
float Lanczos(float x) {
  if (x > kRadius) return 0;
  if (x <= 1e-3f) return 1;
  return kRadius * std::sin(kPiFloat * x) * std::sin(kPiFloat * x / kRadius) /
         (kPiFloat * kPiFloat * x * x);
}

constexpr float kGaussianRadius = 1.5f;
float Gaussian(float x) {
  constexpr float kSigma = kGaussianRadius / 3;
  return x >= kGaussianRadius ? 0 : std::exp(-x * x / (2 * kSigma * kSigma));
}

float Box(float x) { return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f; }

float Triangle(float x) { return x < 1 ? 1 - x : 0; }

/// Keys' cubic convolution, a = -0.5.
float KeysCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}

/// Mitchell and Netravali, "Reconstruction Filters in Computer Graphics" (SIGGRAPH 1988), B = C =
/// 1/3.
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9
                : (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

}  // namespace

absl::StatusOr<ScaleFilter> FindScaleFilter(std::string_view name) {
  constexpr struct {
    std::string_view name;
    ScaleFilter filter;
  } kFilters[] = {
      {"lanczos1", {1, Lanczos<1>}},
      {"lanczos3", {3, Lanczos<3>}},
      {"lanczos5", {5, Lanczos<5>}},
      {"gaussian", {kGaussianRadius, Gaussian}},
      {"box", {1, Box}},
      {"triangle", {1, Triangle}},
      {"keyscubic", {2, KeysCubic}},
      {"mitchellcubic", {2, MitchellCubic}},
  };
  for (const auto& known : kFilters) {
    if (known.name == name) return known.filter;
  }
  return InvalidArgument("`kernel_type` is unknown: '", name, "'");
}

absl::StatusOr<ResizeAxis> ScaledAxis(int64_t from, int64_t to, float scale, float translation,
                                      const ScaleOptions& options) {
  const float inverse = 1 / scale, start = -inverse * translation;
  const float width = options.antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float reach = options.filter.radius * width;
  const auto size = static_cast<float>(from), last = static_cast<float>(from - 1);
  ResizeAxis axis;
  axis.begins.push_back(0);
  for (int64_t i = 0; i < to; ++i) {
    const float center = (static_cast<float>(i) + 0.5f) * inverse + start;
    if (center >= 0 && center <= size) {
      const auto first =
          static_cast<int64_t>(std::clamp(std::ceil(center - reach - 0.5f), 0.0f, last));
      const auto end =
          static_cast<int64_t>(std::clamp(std::floor(center + reach - 0.5f), 0.0f, last)) + 1;
      if (static_cast<int64_t>(axis.indices.size()) + end - first > INT32_MAX) {
        return absl::ResourceExhaustedError("the image is scaled down too far");
      }
      float sum = 0;
      for (int64_t k = first; k < end; ++k) {
        const float distance = std::abs(static_cast<float>(k) + 0.5f - center) / width;
        axis.indices.push_back(static_cast<int32_t>(k));
        axis.weights.push_back(options.filter.weight(distance));
        sum += axis.weights.back();
      }
      // Weights that add up to nothing are no weights.
      const bool counts = std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
      const float factor = counts ? 1 / sum : 0;
      for (auto k = static_cast<size_t>(axis.begins.back()); k < axis.weights.size(); ++k) {
        axis.weights[k] *= factor;
      }
    }
    axis.begins.push_back(static_cast<int32_t>(axis.indices.size()));
  }
  return axis;
}

}  // namespace troupe
