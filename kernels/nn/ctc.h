/// What kernels of connectionist temporal classification share.
#ifndef TROUPE_KERNELS_NN_CTC_H_
#define TROUPE_KERNELS_NN_CTC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace troupe {

/// The sizes of `inputs` [time, batch, classes].
struct CtcShape {
  int64_t time = 0, batch = 0, classes = 0;
};

/// The sizes of input 0. InvalidArgument unless it has elements and `lengths`, a vector, has one
/// for each sequence.
absl::StatusOr<CtcShape> ReadCtcShape(const Tensor& inputs, const Tensor& lengths);

template <typename T>
inline constexpr T kLogZero = -std::numeric_limits<T>::infinity();

/// log(exp(a) + exp(b)). The smaller one's part has the precision of float, for doubles too, as in
/// TensorFlow.
template <typename T>
T LogSumExp(T a, T b) {
  if (a < b) std::swap(a, b);
  if (b == kLogZero<T>) return a;
  return a + static_cast<T>(std::log1p(std::exp(static_cast<float>(b - a))));
}

/// What is to be subtracted from `n` logits to make them logarithms of probabilities.
template <typename T>
T LogNorm(const T* logits, int64_t n) {
  const T most = *std::max_element(logits, logits + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[i] - most);
  return most + std::log(sum);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CTC_H_
