/// Random numbers from words, as TensorFlow's distributions make them.
#ifndef TROUPE_KERNELS_RANDOM_DRAWS_H_
#define TROUPE_KERNELS_RANDOM_DRAWS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

#include "devices/half.h"
#include "kernels/common/philox.h"

namespace troupe {

// ---- Uniform in [0, 1), from the low bits of words.

inline double ToUniform(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{1023} << 52 | static_cast<uint64_t>(high & 0xfffff) << 32 | low;
  return std::bit_cast<double>(bits) - 1.0;
}
inline float ToUniformFloat(uint32_t word) {
  return std::bit_cast<float>(uint32_t{127} << 23 | (word & 0x7fffff)) - 1.0f;
}
inline half ToUniformHalf(uint32_t word) {
  return half(half::FromBits(static_cast<uint16_t>((word & 0x3ff) | 15 << 10)) - 1.0f);
}
inline bfloat16 ToUniformBfloat16(uint32_t word) {
  return bfloat16(bfloat16::FromBits(static_cast<uint16_t>((word & 0x7f) | 127 << 7)) - 1.0f);
}

// ---- Two standard normals by the method of Box and Muller, the sine first. The uniform number
// under the logarithm is kept from 0.

inline void BoxMuller(const uint32_t* words, double* first, double* second) {
  const double u = std::max(ToUniform(words[0], words[1]), 1.0e-7);
  const double angle = 2 * std::numbers::pi * ToUniform(words[2], words[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  *first = std::sin(angle) * radius;
  *second = std::cos(angle) * radius;
}
inline void BoxMuller(const uint32_t* words, float* first, float* second) {
  const float u = std::max(ToUniformFloat(words[0]), 1.0e-7f);
  const float angle = static_cast<float>(2 * std::numbers::pi * ToUniformFloat(words[1]));
  const float radius = std::sqrt(-2.0f * std::log(u));
  *first = std::sin(angle) * radius;
  *second = std::cos(angle) * radius;
}

// ---- All numbers of a block at once.

template <typename T>
using DrawnGroup = std::array<T, sizeof(T) == 8 ? 2 : 4>;

template <typename T>
DrawnGroup<T> UniformGroup(Philox& position) {
  const Philox::Block w = position.Next();
  if constexpr (std::is_same_v<T, double>) {
    return {ToUniform(w[0], w[1]), ToUniform(w[2], w[3])};
  } else if constexpr (std::is_same_v<T, float>) {
    return {ToUniformFloat(w[0]), ToUniformFloat(w[1]), ToUniformFloat(w[2]), ToUniformFloat(w[3])};
  } else {
    return {ToUniformHalf(w[0]), ToUniformHalf(w[1]), ToUniformHalf(w[2]), ToUniformHalf(w[3])};
  }
}

template <typename T>
DrawnGroup<T> NormalGroup(Philox& position) {
  const Philox::Block w = position.Next();
  if constexpr (std::is_same_v<T, double>) {
    double pair[2];
    BoxMuller(w.data(), &pair[0], &pair[1]);
    return {pair[0], pair[1]};
  } else {
    float v[4];
    BoxMuller(w.data(), &v[0], &v[1]);
    BoxMuller(w.data() + 2, &v[2], &v[3]);
    return {T(v[0]), T(v[1]), T(v[2]), T(v[3])};
  }
}

/// One number of the groups that `Draw` makes after the other, from the back of each.
template <auto kDraw>
class FromTheBack {
 public:
  auto operator()(Philox& position) {
    if (left_ == 0) {
      group_ = kDraw(position);
      left_ = group_.size();
    }
    return group_[--left_];
  }

 private:
  decltype(kDraw(std::declval<Philox&>())) group_;
  size_t left_ = 0;
};

// ---- One after the other.

/// Uniform in [0, 1), from two words.
inline double UniformDouble(PhiloxWords& words) {
  const uint32_t high = words();
  return ToUniform(high, words());
}

/// An integer uniform in [0, n), n > 0, from pairs of words (the first one low). Those that would
/// favour small results are drawn again.
inline uint64_t UniformBelow(PhiloxWords& words, uint64_t n) {
  const auto draw = [&] {
    const uint64_t low = words();
    return low | uint64_t{words()} << 32;
  };
  if ((n & (n - 1)) == 0) return draw() & (n - 1);
  const uint64_t rejected = std::numeric_limits<uint64_t>::max() % n + 1;
  uint64_t number;
  do {
    number = draw();
  } while (number < rejected);
  return number % n;
}

/// The same from single words, for n of 32 bits.
inline uint32_t UniformBelow32(PhiloxWords& words, uint32_t n) {
  if ((n & (n - 1)) == 0) return words() & (n - 1);
  const uint32_t rejected = std::numeric_limits<uint32_t>::max() % n + 1;
  uint32_t number;
  do {
    number = words();
  } while (number < rejected);
  return number % n;
}

/// Uniform in [0, 1), from the low 23 bits of a word.
inline float UniformFloat(PhiloxWords& words) { return ToUniformFloat(words()); }

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_DRAWS_H_
