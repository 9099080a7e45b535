#include "kernels/image/resize_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

/// The position of new pixel `i` among the old ones, where 0 is the first one's.
float PositionOf(int64_t i, float scale, const ResizeMode& mode) {
  const auto x = static_cast<float>(i);
  return mode.half_pixel_centers ? (x + 0.5f) * scale - 0.5f : x * scale;
}

int64_t Clamp(int64_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

void Add(ResizeAxis* axis, int64_t index, float weight) {
  axis->indices.push_back(static_cast<int32_t>(index));
  axis->weights.push_back(weight);
}
void Finish(ResizeAxis* axis) {
  axis->begins.push_back(static_cast<int32_t>(axis->indices.size()));
}

/// Weights of the pixels at distance i / kSteps and 1 + i / kSteps.
constexpr int kSteps = 1024;
using CubicTable = std::array<std::array<float, 2>, kSteps + 1>;

CubicTable MakeCubicTable(double a) {
  CubicTable table;
  for (int i = 0; i <= kSteps; ++i) {
    auto x = static_cast<float>(i * 1.0 / kSteps);
    table[i][0] = static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
    x += 1.0f;
    table[i][1] = static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
  }
  return table;
}

}  // namespace

float ResizeScale(int64_t from, int64_t to, bool align_corners) {
  return align_corners && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                 : static_cast<float>(from) / static_cast<float>(to);
}

ResizeAxis BilinearAxis(int64_t from, int64_t to, const ResizeMode& mode) {
  const float scale = ResizeScale(from, to, mode.align_corners);
  ResizeAxis axis;
  Finish(&axis);
  for (int64_t i = 0; i < to; ++i) {
    const float position = PositionOf(i, scale, mode);
    const float floor = std::floor(position);
    const float fraction = position - floor;
    const auto lower = static_cast<int64_t>(floor);
    Add(&axis, std::clamp<int64_t>(lower, 0, from - 1), 1 - fraction);
    Add(&axis, std::clamp<int64_t>(static_cast<int64_t>(std::ceil(position)), 0, from - 1),
        fraction);
    Finish(&axis);
  }
  return axis;
}

ResizeAxis BicubicAxis(int64_t from, int64_t to, const ResizeMode& mode) {
  static const CubicTable keys = MakeCubicTable(-0.5), legacy = MakeCubicTable(-0.75);
  const CubicTable& table = mode.half_pixel_centers ? keys : legacy;
  const float scale = ResizeScale(from, to, mode.align_corners);
  ResizeAxis axis;
  Finish(&axis);
  for (int64_t i = 0; i < to; ++i) {
    const float position = PositionOf(i, scale, mode);
    const auto first = static_cast<int64_t>(std::floor(position));
    const auto step = static_cast<int>(std::lrint((position - static_cast<float>(first)) * kSteps));
    std::array<float, 4> weights = {table[step][1], table[step][0], table[kSteps - step][0],
                                    table[kSteps - step][1]};
    if (mode.half_pixel_centers) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        const int64_t at = first - 1 + k;
        if (at != Clamp(at, from)) weights[k] = 0;
        sum += weights[k];
      }
      if (std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
        for (float& weight : weights) weight *= 1.0f / sum;
      }
    }
    for (int k = 0; k < 4; ++k) Add(&axis, Clamp(first - 1 + k, from), weights[k]);
    Finish(&axis);
  }
  return axis;
}

ResizeAxis AreaAxis(int64_t from, int64_t to, bool align_corners) {
  const float scale = ResizeScale(from, to, align_corners);
  ResizeAxis axis;
  Finish(&axis);
  if (scale == 0) {  // The corners are the same pixel.
    for (int64_t i = 0; i < to; ++i) {
      Add(&axis, 0, 1);
      Finish(&axis);
    }
    return axis;
  }
  for (int64_t i = 0; i < to; ++i) {
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    const auto last = static_cast<int64_t>(std::ceil(end));
    for (auto at = static_cast<int64_t>(std::floor(begin)); at < last; ++at) {
      const auto low = static_cast<float>(at), high = static_cast<float>(at + 1);
      float part = 1;
      if (low < begin) {
        part = high > end ? scale : high - begin;
      } else if (high > end) {
        part = end - low;
      }
      Add(&axis, Clamp(at, from), part / scale);
    }
    Finish(&axis);
  }
  return axis;
}

std::vector<int32_t> NearestIndices(int64_t from, int64_t to, const ResizeMode& mode) {
  const float scale = ResizeScale(from, to, mode.align_corners);
  std::vector<int32_t> indices(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const float position = (static_cast<float>(i) + (mode.half_pixel_centers ? 0.5f : 0)) * scale;
    const float nearest = mode.align_corners ? std::round(position) : std::floor(position);
    indices[i] = static_cast<int32_t>(Clamp(static_cast<int64_t>(nearest), from));
  }
  return indices;
}

ResizeAxis Transposed(const ResizeAxis& axis, int64_t from) {
  ResizeAxis result;
  result.begins.assign(static_cast<size_t>(from + 1), 0);
  for (const int32_t index : axis.indices) ++result.begins[index + 1];
  for (int64_t i = 0; i < from; ++i) result.begins[i + 1] += result.begins[i];
  result.indices.resize(axis.indices.size());
  result.weights.resize(axis.indices.size());
  std::vector<int32_t> next(result.begins.begin(), result.begins.end() - 1);
  for (int64_t i = 0; i < axis.size(); ++i) {
    for (int32_t k = axis.begins[i]; k < axis.begins[i + 1]; ++k) {
      const int32_t at = next[axis.indices[k]]++;
      result.indices[at] = static_cast<int32_t>(i);
      result.weights[at] = axis.weights[k];
    }
  }
  return result;
}

}  // namespace troupe
