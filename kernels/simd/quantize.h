/// Numbers to the integers of a grid and back, compiled once per instruction set; the same bits
/// with each.
#ifndef TROUPE_KERNELS_SIMD_QUANTIZE_H_
#define TROUPE_KERNELS_SIMD_QUANTIZE_H_

#include <cstdint>
#include <limits>

namespace troupe {

enum class Rounding { kHalfUp, kHalfAwayFromZero, kHalfToEven };

/// How many steps of a grid a number is from its zero:
/// round((clip(x, min, max) - shift) * scale - zero).
template <typename T>
struct ToGrid {
  T min = -std::numeric_limits<T>::infinity(), max = std::numeric_limits<T>::infinity();
  T shift = 0, scale = 1, zero = 0;
  Rounding rounding = Rounding::kHalfAwayFromZero;
};

/// The integer for those steps: steps - offset, `most` at most, as the nearest integer of its type;
/// NaN gives 0.
struct ToInteger : ToGrid<float> {
  float offset = 0, most = std::numeric_limits<float>::infinity();
};

/// What integers stand for: (q + shift) * scale + offset.
struct FromInteger {
  float shift = 0, scale = 1;
  float offset = -0.0f;  ///< The sum with which every number is itself.
};

/// Grids of the columns of a matrix: column c has element c of each array, of which there are
/// `count`. A column that is `none` has the value 0, and passes all gradients.
struct GridColumns {
  int64_t count = 0;
  const float *min = nullptr, *max = nullptr, *step = nullptr, *zero = nullptr;
  const uint32_t* none = nullptr;  ///< All bits or no bit.
};

/// Quantizes and dequantizes integers of one type.
template <typename Int>
struct IntegerFunctions {
  void (*quantize)(const float* x, int64_t n, const ToInteger& how, Int* q) = nullptr;
  void (*dequantize)(const Int* q, int64_t n, const FromInteger& how, float* x) = nullptr;
};

/// Functions of float or double.
template <typename T>
struct GridFunctions {
  /// y = steps * step; `y` may be `x`.
  void (*snap)(const T* x, int64_t n, const ToGrid<T>& how, T step, T* y) = nullptr;
  /// dx = dy * (min <= x <= max); `dx` may be `dy` or `x`.
  void (*pass)(const T* dy, const T* x, int64_t n, T min, T max, T* dx) = nullptr;
  /// The smaller of `*least` and all elements, the larger of `*most` and them; NaN is passed over.
  void (*extremes)(const T* x, int64_t n, T* least, T* most) = nullptr;
};

/// The functions of one instruction set, on `n` elements. Thread-safe.
struct QuantizeFunctions : IntegerFunctions<int8_t>,
                           IntegerFunctions<uint8_t>,
                           IntegerFunctions<int16_t>,
                           IntegerFunctions<uint16_t>,
                           IntegerFunctions<int32_t>,
                           GridFunctions<float>,
                           GridFunctions<double> {
  template <typename Int>
  const IntegerFunctions<Int>& For() const {
    return *this;
  }
  template <typename T>
  const GridFunctions<T>& OnGrid() const {
    return *this;
  }

  /// y = floor((clip(x, min, max) - min) / step - zero + 0.5) * step for a matrix, n elements of
  /// it, from column 0 on; `y` may be `x`.
  void (*snap_columns)(const float* x, int64_t n, const GridColumns& grids, float* y) = nullptr;
  /// dx = dy * (min <= x <= max) for n elements of a matrix; `dx` may be `dy` or `x`. Adds dy to
  /// below[c] where x is less than column c's minimum, to above[c] where it is more than the
  /// maximum.
  void (*pass_columns)(const float* dy, const float* x, int64_t n, const GridColumns& grids,
                       float* dx, double* below, double* above) = nullptr;
  /// As GridFunctions::extremes.
  void (*int_extremes)(const int32_t* x, int64_t n, int32_t* least, int32_t* most) = nullptr;
};

/// The best functions that this processor can run.
const QuantizeFunctions& Quantization();

namespace v2 {
QuantizeFunctions QuantizeTable();
}
namespace v3 {
QuantizeFunctions QuantizeTable();
}
namespace v4 {
QuantizeFunctions QuantizeTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_QUANTIZE_H_
