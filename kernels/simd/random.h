/// Random numbers in bulk, compiled once per instruction set; the same bits with each.
#ifndef TROUPE_KERNELS_SIMD_RANDOM_H_
#define TROUPE_KERNELS_SIMD_RANDOM_H_

#include <cstdint>

namespace troupe {

/// Blocks of Philox 4x32-10 (`kernels/common/philox.h`): number i has the counter low + i * stride
/// (with carry into `high`).
struct PhiloxBlocks {
  uint64_t key = 0, low = 0, high = 0;
  uint64_t stride = 1;
};

/// The functions of one instruction set. `out` gets 4 values a block. Thread-safe.
struct RandomFunctions {
  /// The words as they are.
  void (*words)(const PhiloxBlocks& blocks, int64_t count, uint32_t* out);
  /// Uniform in [0, 1): multiples of 2^-23.
  void (*uniform)(const PhiloxBlocks& blocks, int64_t count, float* out);
  /// Standard normal: words 0 and 1, 2 and 3 by the method of Box and Muller, the sine first.
  void (*normal)(const PhiloxBlocks& blocks, int64_t count, float* out);
};

/// The best functions that this processor can run.
const RandomFunctions& Random();

#define TROUPE_DECLARE_RANDOM(ISA)                                            \
  namespace ISA {                                                             \
  void RandomWords(const PhiloxBlocks& blocks, int64_t count, uint32_t* out); \
  void RandomUniform(const PhiloxBlocks& blocks, int64_t count, float* out);  \
  void RandomNormal(const PhiloxBlocks& blocks, int64_t count, float* out);   \
  }
TROUPE_DECLARE_RANDOM(v2)
TROUPE_DECLARE_RANDOM(v3)
TROUPE_DECLARE_RANDOM(v4)
#undef TROUPE_DECLARE_RANDOM

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_RANDOM_H_
