#include "kernels/simd/bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

void Flip(const uint8_t* from, int64_t n, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] ^ 0x80;
}

template <typename T>
uint32_t Sum(const T* x, int64_t n) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>(int32_t{x[i]});
  return sum;
}

template <typename T>
void Add(const T* x, int64_t n, uint32_t* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<uint32_t>(int32_t{x[i]});
}

void Subtract(uint32_t all, const uint32_t* each, int64_t n, uint32_t* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] -= all + each[i];
}

// `x` between `low` and `high`; NaN becomes 0.
float Clamped(float x, float low, float high) {
  x = x == x ? x : 0.0f;
  x = x < high ? x : high;
  return x > low ? x : low;
}

void Round(const int32_t* sums, const float* each, int64_t n, bool relu, int32_t* to) {
  // The largest float that is an int32.
  const float low = relu ? 0.0f : -2147483648.0f, high = 2147483520.0f;
  for (int64_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(sums[i]) + each[i];
    to[i] = static_cast<int32_t>(__builtin_nearbyintf(Clamped(x, low, high)));
  }
}

void Scale(const int32_t* sums, float step, const float* each, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(sums[i]) * step + each[i];
}

void Requantize(const int32_t* sums, float step, const float* each, float to_step, int64_t n,
                uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = (static_cast<float>(sums[i]) * step + each[i]) / to_step;
    to[i] =
        static_cast<uint8_t>(static_cast<int32_t>(__builtin_nearbyintf(Clamped(x, 0.0f, 255.0f))));
  }
}

}  // namespace

BytesFunctions BytesTable() {
  return {Flip,     Sum<uint8_t>, Sum<int8_t>, Add<uint8_t>, Add<int8_t>,
          Subtract, Round,        Scale,       Requantize};
}

}  // namespace troupe::TROUPE_ISA
