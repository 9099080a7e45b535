// Bits of integers.
#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/math/map_kernels.h"

namespace troupe {
namespace {

/// What is left of a shift's places when the result is defined.
template <typename T>
T Places(T count) {
  return std::clamp<T>(count, 0, static_cast<T>(8 * sizeof(T) - 1));
}

constexpr auto kAndBits = [](auto x, auto y) { return x & y; };
constexpr auto kOrBits = [](auto x, auto y) { return x | y; };
constexpr auto kXorBits = [](auto x, auto y) { return x ^ y; };
constexpr auto kInvertBits = [](auto x) { return ~x; };
constexpr auto kShiftLeft = [](auto x, auto y) {
  return static_cast<uint64_t>(x) << Places(y);  // Unsigned: bits may leave a signed type.
};
constexpr auto kShiftRight = [](auto x, auto y) { return x >> Places(y); };
constexpr auto kCountBits = [](auto x) {
  return std::popcount(static_cast<std::make_unsigned_t<decltype(x)>>(x));
};

template <auto kFunction>
bool RegisterUnaryBits(const char* op) {
  return RegisterUnaryMaps<kFunction, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                           uint32_t, uint64_t>(op);
}
template <auto kFunction>
bool RegisterBinaryBits(const char* op) {
  return RegisterBinaryMaps<kFunction, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                            uint32_t, uint64_t>(op);
}
template <typename... Types>
bool RegisterCounts(const char* op) {
  (KernelRegistry::Global()->Register(KernelSpec(op).Types("T", {kElementType<Types>}),
                                      MakeUnaryMap<Types, uint8_t, kCountBits, 1>),
   ...);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterBinaryBits<kAndBits>("BitwiseAnd"),
    RegisterBinaryBits<kOrBits>("BitwiseOr"),
    RegisterBinaryBits<kXorBits>("BitwiseXor"),
    RegisterUnaryBits<kInvertBits>("Invert"),
    RegisterBinaryBits<kShiftLeft>("LeftShift"),
    RegisterBinaryBits<kShiftRight>("RightShift"),
    RegisterCounts<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
        "PopulationCount"),
};

}  // namespace
}  // namespace troupe
