/// Random numbers from words. What includes it is compiled without contraction of products and
/// sums: numbers get the bits of the CPU's formulas (kernels/random/draws.h).
#ifndef TROUPE_KERNELS_CUDA_RANDOM_CUH_
#define TROUPE_KERNELS_CUDA_RANDOM_CUH_

#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/random.h"

namespace troupe::cuda {

/// What a block of Philox gives.
struct Words {
  uint32_t w[4];
};

/// Block number `index` of a run. Philox 4x32 with 10 rounds.
__device__ inline Words BlockAt(const PhiloxStart& start, uint64_t index) {
  uint64_t key = start.key, first = start.low, high = start.high;
  if (start.key_there != nullptr) {
    key = *start.key_there;
    first = start.counter_there[0];
    high = start.counter_there[1];
  }
  const uint64_t low = first + index;
  if (low < first) ++high;
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32_t high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Outputs of a block of words.
template <typename T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

/// Output number j of a block: as many bits of a word as the type has behind its point.
template <typename T>
__device__ T Uniform(const Words& words, int j) {
  if constexpr (sizeof(T) == 8) {
    const uint64_t high = words.w[2 * j] & 0xfffff;
    return static_cast<double>(high << 32 | words.w[2 * j + 1]) * 0x1p-52;
  } else {
    constexpr int kBits = std::is_same_v<T, __half> ? 10 : std::is_same_v<T, float> ? 23 : 7;
    return static_cast<T>(static_cast<float>(words.w[j] & ((1u << kBits) - 1)) /
                          static_cast<float>(1u << kBits));
  }
}

inline constexpr double kTwoPi = 2 * 3.14159265358979323846;

/// Two standard normal numbers from two that are uniform, by the method of Box and Muller.
__device__ inline void BoxMuller(double u, double v, double* out) {
  const double angle = kTwoPi * v, radius = sqrt(-2.0 * log(fmax(u, 1.0e-7)));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_RANDOM_CUH_
