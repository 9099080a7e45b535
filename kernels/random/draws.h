/// Single random numbers from words, as TensorFlow draws them one after the other.
#ifndef TROUPE_KERNELS_RANDOM_DRAWS_H_
#define TROUPE_KERNELS_RANDOM_DRAWS_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/common/philox.h"

namespace troupe {

/// Uniform in [0, 1), from two words.
inline double UniformDouble(PhiloxWords& words) {
  const uint64_t high = words() & 0xfffff;
  const uint64_t low = words();
  return std::bit_cast<double>(uint64_t{1023} << 52 | high << 32 | low) - 1.0;
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
inline float UniformFloat(PhiloxWords& words) {
  return std::bit_cast<float>(uint32_t{127} << 23 | (words() & 0x7fffff)) - 1.0f;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_DRAWS_H_
