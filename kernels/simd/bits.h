/// Shifts of integers and counts of their bits, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_BITS_H_
#define TROUPE_KERNELS_SIMD_BITS_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// The functions of one type.
template <typename T>
struct IntegerBits {
  /// By 0 places at least, and one less than T has bits at most.
  simd::BinaryFns shift_left, shift_right;
  /// The number of bits that are 1, as uint8.
  simd::UnaryFn count = nullptr;
};

/// The functions of one instruction set.
struct BitFunctions : IntegerBits<int8_t>,
                      IntegerBits<int16_t>,
                      IntegerBits<int32_t>,
                      IntegerBits<int64_t>,
                      IntegerBits<uint8_t>,
                      IntegerBits<uint16_t>,
                      IntegerBits<uint32_t>,
                      IntegerBits<uint64_t> {
  template <typename T>
  const IntegerBits<T>& For() const {
    return *this;
  }
};

/// The best functions that this processor can run. Thread-safe.
const BitFunctions& Bits();

namespace v2 {
BitFunctions BitTable();
}
namespace v3 {
BitFunctions BitTable();
}
namespace v4 {
BitFunctions BitTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_BITS_H_
