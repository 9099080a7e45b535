#include "kernels/linalg/tridiagonal.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/simd/rotate.h"

namespace troupe {
namespace {

/// The eigenvalue of the last two rows that is closest to the last element of the diagonal.
template <typename R>
R WilkinsonShift(R first, R below, R last) {
  const R half = (first - last) / 2;
  if (half == 0) return last - std::abs(below);
  return last - below / (half + std::copysign(std::hypot(half, below), half)) * below;
}

/// One step on rows [start, end]: the number of rotations, of rows k and k + 1 from start on.
template <typename R>
int64_t Step(int64_t start, int64_t end, R* diagonal, R* below, R* cosines, R* sines) {
  R x = diagonal[start] - WilkinsonShift(diagonal[end - 1], below[end - 1], diagonal[end]);
  R z = below[start];
  int64_t k = start;
  for (; k < end && z != 0; ++k) {
    const R length = std::hypot(x, z), c = x / length, s = z / length;
    if (k > start) below[k - 1] = length;
    const R a = diagonal[k], b = below[k], d = diagonal[k + 1];
    const R turned = s * (d - a) + 2 * c * b;
    diagonal[k] = a + s * turned;
    diagonal[k + 1] = d - s * turned;
    below[k] = x = c * turned - b;
    if (k + 1 < end) {
      z = s * below[k + 1];
      below[k + 1] *= c;
    }
    cosines[k - start] = c;
    sines[k - start] = s;
  }
  return k - start;
}

}  // namespace

template <typename R>
bool DiagonalizeTridiagonal(int64_t n, R* diagonal, R* below, int64_t columns, R* rows) {
  constexpr R kEpsilon = std::numeric_limits<R>::epsilon(), kLeast = std::numeric_limits<R>::min();
  constexpr int64_t kMostSteps = 30;  // for an eigenvalue, as in Eigen
  std::vector<R> cosines(static_cast<size_t>(n)), sines(cosines.size());
  int64_t steps = 0;
  for (int64_t end = n - 1; end > 0;) {
    const auto is_small = [&](int64_t i) {
      const R size = std::abs(diagonal[i]) + std::abs(diagonal[i + 1]);
      return std::abs(below[i]) <= kEpsilon * size || std::abs(below[i]) < kLeast;
    };
    if (is_small(end - 1)) {
      --end;
      continue;
    }
    if (++steps > kMostSteps * n) return false;
    int64_t start = end - 1;
    while (start > 0 && !is_small(start - 1)) --start;
    const int64_t count = Step(start, end, diagonal, below, cosines.data(), sines.data());
    if (rows != nullptr) {
      RotateRows<R>()(cosines.data(), sines.data(), count, columns, rows + start * columns);
    }
  }
  return true;
}

template bool DiagonalizeTridiagonal(int64_t, float*, float*, int64_t, float*);
template bool DiagonalizeTridiagonal(int64_t, double*, double*, int64_t, double*);

}  // namespace troupe
