// Conversions between the element types that are converted most.
#include "kernels/simd/half_blocks.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

// Of numbers that do not fit it makes what the processor does, as TensorFlow.
template <typename From, typename To>
__attribute__((no_sanitize("float-cast-overflow"))) To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void Cast(const void* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in);
  To* y = static_cast<To*>(out);
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = Convert<From, To>(x[i]);
}

template <typename From, typename H>
void CastToHalf(const void* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in);
  uint16_t* y = static_cast<uint16_t*>(out);
  if constexpr (std::is_same_v<From, float>) {
    H::Store(x, y, n);
  } else {
    float buffer[kHalfBlock];
    for (int64_t i = 0; i < n; i += kHalfBlock) {
      const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
      Cast<From, float>(x + i, buffer, m);
      H::Store(buffer, y + i, m);
    }
  }
}

template <typename H, typename To>
void CastFromHalf(const void* in, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  To* y = static_cast<To*>(out);
  if constexpr (std::is_same_v<To, float>) {
    H::Load(x, y, n);
  } else {
    float buffer[kHalfBlock];
    for (int64_t i = 0; i < n; i += kHalfBlock) {
      const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
      H::Load(x + i, buffer, m);
      Cast<float, To>(buffer, y + i, m);
    }
  }
}

template <typename A, typename B>
void HalfToHalf(const void* in, void* out, int64_t n) {
  float buffer[kHalfBlock];
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
    A::Load(static_cast<const uint16_t*>(in) + i, buffer, m);
    B::Store(buffer, static_cast<uint16_t*>(out) + i, m);
  }
}

template <typename T>
void SetType(Table* table, CastType type) {
  UnaryFn* from = table->cast[type];
  from[kCastF32] = Cast<T, float>;
  from[kCastF64] = Cast<T, double>;
  from[kCastI32] = Cast<T, int32_t>;
  from[kCastI64] = Cast<T, int64_t>;
  from[kCastU8] = Cast<T, uint8_t>;
  from[kCastBool] = Cast<T, bool>;
  from[kCastF16] = CastToHalf<T, F16>;
  from[kCastBF16] = CastToHalf<T, BF16>;
  table->cast[kCastF16][type] = CastFromHalf<F16, T>;
  table->cast[kCastBF16][type] = CastFromHalf<BF16, T>;
}

}  // namespace

void FillCast(Table* table) {
  SetType<float>(table, kCastF32);
  SetType<double>(table, kCastF64);
  SetType<int32_t>(table, kCastI32);
  SetType<int64_t>(table, kCastI64);
  SetType<uint8_t>(table, kCastU8);
  SetType<bool>(table, kCastBool);
  // A bool is a byte of 0 or 1, which the compiler widens better than bools.
  for (int to = 0; to < kNumCastTypes; ++to) table->cast[kCastBool][to] = table->cast[kCastU8][to];
  table->cast[kCastF16][kCastBF16] = HalfToHalf<F16, BF16>;
  table->cast[kCastBF16][kCastF16] = HalfToHalf<BF16, F16>;
}

}  // namespace troupe::simd::TROUPE_ISA
