// Bits of integers.
#include <memory>

#include "kernels/math/map_kernels.h"
#include "kernels/simd/bits.h"

namespace troupe {
namespace {

constexpr auto kAndBits = [](auto x, auto y) { return x & y; };
constexpr auto kOrBits = [](auto x, auto y) { return x | y; };
constexpr auto kXorBits = [](auto x, auto y) { return x ^ y; };
constexpr auto kInvertBits = [](auto x) { return ~x; };
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
template <typename T, auto kShift>
absl::StatusOr<std::unique_ptr<Kernel>> MakeShift(KernelConstruction&) {
  constexpr ElementType kType = kElementType<T>;
  return std::make_unique<BinaryKernel>(Bits().For<T>().*kShift, kType, kType, /*cost=*/0.3,
                                        BinaryError::kNone, /*unequal_shapes=*/-1);
}
template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCount(KernelConstruction&) {
  return std::make_unique<UnaryKernel>(Bits().For<T>().count, ElementType::kUint8, /*cost=*/0.3);
}

template <typename... Types>
bool RegisterTables() {
  const auto add = [](const char* op, ElementType type, KernelFactory factory) {
    KernelRegistry::Global()->Register(KernelSpec(op).Types("T", {type}), factory);
  };
  (add("LeftShift", kElementType<Types>, MakeShift<Types, &IntegerBits<Types>::shift_left>), ...);
  (add("RightShift", kElementType<Types>, MakeShift<Types, &IntegerBits<Types>::shift_right>), ...);
  (add("PopulationCount", kElementType<Types>, MakeCount<Types>), ...);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterBinaryBits<kAndBits>("BitwiseAnd"),
    RegisterBinaryBits<kOrBits>("BitwiseOr"),
    RegisterBinaryBits<kXorBits>("BitwiseXor"),
    RegisterUnaryBits<kInvertBits>("Invert"),
    RegisterTables<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(),
};

}  // namespace
}  // namespace troupe
