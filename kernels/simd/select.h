/// A choice between two arrays, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_SELECT_H_
#define TROUPE_KERNELS_SIMD_SELECT_H_

#include <cstdint>

namespace troupe {

/// out[i] = condition[i] ? x[i * x_step] : y[i * y_step] for i < n. The steps are 0 or 1; `out` may
/// be `x` or `y` if that has step 1. T stands for any element of its size. Takes as long whatever
/// the condition is.
template <typename T>
using SelectFunction = void (*)(const bool* condition, const T* x, int64_t x_step, const T* y,
                                int64_t y_step, T* out, int64_t n);

/// The best function that this processor can run, for unsigned integers of 8 to 64 bits.
/// Thread-safe.
template <typename T>
SelectFunction<T> SelectElements();

#define TROUPE_DECLARE_SELECT(ISA)                                                         \
  namespace ISA {                                                                          \
  void Select(const bool* condition, const uint8_t* x, int64_t x_step, const uint8_t* y,   \
              int64_t y_step, uint8_t* out, int64_t n);                                    \
  void Select(const bool* condition, const uint16_t* x, int64_t x_step, const uint16_t* y, \
              int64_t y_step, uint16_t* out, int64_t n);                                   \
  void Select(const bool* condition, const uint32_t* x, int64_t x_step, const uint32_t* y, \
              int64_t y_step, uint32_t* out, int64_t n);                                   \
  void Select(const bool* condition, const uint64_t* x, int64_t x_step, const uint64_t* y, \
              int64_t y_step, uint64_t* out, int64_t n);                                   \
  }
TROUPE_DECLARE_SELECT(v2)
TROUPE_DECLARE_SELECT(v3)
TROUPE_DECLARE_SELECT(v4)
#undef TROUPE_DECLARE_SELECT

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_SELECT_H_
