/// Loops around products of bytes, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_BYTES_H_
#define TROUPE_KERNELS_SIMD_BYTES_H_

#include <cstdint>

namespace troupe {

/// The functions of one instruction set, for n elements beside each other. Sums wrap around.
/// Thread-safe.
struct BytesFunctions {
  /// to[i] = from[i] with its highest bit turned.
  void (*flip)(const uint8_t* from, int64_t n, uint8_t* to);
  /// The sum of all.
  uint32_t (*sum_unsigned)(const uint8_t* x, int64_t n);
  uint32_t (*sum_signed)(const int8_t* x, int64_t n);
  /// sums[i] += x[i].
  void (*add_unsigned)(const uint8_t* x, int64_t n, uint32_t* sums);
  void (*add_signed)(const int8_t* x, int64_t n, uint32_t* sums);
  /// sums[i] -= all + each[i].
  void (*subtract)(uint32_t all, const uint32_t* each, int64_t n, uint32_t* sums);
  /// sums[i] + each[i] in float, rounded to the nearest, and 0 for what is negative if `relu`.
  void (*round)(const int32_t* sums, const float* each, int64_t n, bool relu, int32_t* to);
  /// sums[i] * step + each[i].
  void (*scale)(const int32_t* sums, float step, const float* each, int64_t n, float* to);
  /// The same over `to_step`, rounded to the nearest.
  void (*requantize)(const int32_t* sums, float step, const float* each, float to_step, int64_t n,
                     uint8_t* to);
};

/// The best functions that this processor can run.
const BytesFunctions& Bytes();

namespace v2 {
BytesFunctions BytesTable();
}
namespace v3 {
BytesFunctions BytesTable();
}
namespace v4 {
BytesFunctions BytesTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_BYTES_H_
