#include "kernels/simd/bits.h"

#include "kernels/simd/scalar_ops.h"

namespace troupe::TROUPE_ISA {
namespace {

using simd::TROUPE_ISA::Forms;
using simd::TROUPE_ISA::UnaryLoop;
using simd::TROUPE_ISA::Wrap;

// The places for which a shift is defined.
template <typename T>
inline T Places(T count) {
  constexpr T kMost = 8 * sizeof(T) - 1;
  const T not_above = count > kMost ? kMost : count;
  return not_above < 0 ? T(0) : not_above;
}

struct ShiftLeftOp {
  template <typename T>
  static T Run(T x, T count) {
    return static_cast<T>(static_cast<Wrap<T>>(x) << Places(count));
  }
};
struct ShiftRightOp {
  template <typename T>
  static T Run(T x, T count) {
    return static_cast<T>(x >> Places(count));
  }
};

// Sums of neighbours, each time twice as wide.
struct CountOp {
  template <typename T>
  static uint8_t Run(T value) {
    using U = std::make_unsigned_t<T>;
    constexpr U kPairs = U(-1) / 3, kNibbles = U(-1) / 5, kBytes = U(-1) / 17;
    U x = static_cast<U>(value);
    x = static_cast<U>(x - ((x >> 1) & kPairs));
    x = static_cast<U>((x & kNibbles) + ((x >> 2) & kNibbles));
    x = static_cast<U>((x + (x >> 4)) & kBytes);
    for (unsigned places = 8; places < 8 * sizeof(T); places *= 2) {
      x = static_cast<U>(x + (x >> places));
    }
    return static_cast<uint8_t>(x & 127);
  }
};

template <typename T>
constexpr IntegerBits<T> kFunctions = {Forms<ShiftLeftOp, T>(), Forms<ShiftRightOp, T>(),
                                       UnaryLoop<CountOp, T>};

}  // namespace

BitFunctions BitTable() {
  return {kFunctions<int8_t>,  kFunctions<int16_t>,  kFunctions<int32_t>,  kFunctions<int64_t>,
          kFunctions<uint8_t>, kFunctions<uint16_t>, kFunctions<uint32_t>, kFunctions<uint64_t>};
}

}  // namespace troupe::TROUPE_ISA
