#include "kernels/reduce/segment_rule.h"

#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/common/switch_number.h"
#include "kernels/math/loops.h"

namespace troupe {
namespace {

/// The largest finite number.
template <typename T>
T Largest() {
  if constexpr (std::is_same_v<T, half>) return half(65504.0f);
  if constexpr (std::is_same_v<T, bfloat16>) return bfloat16(0x1.FEp127f);
  return std::numeric_limits<T>::max();
}
template <typename T>
T Smallest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return T(-Largest<T>());
}

/// What `FindSegmentJoin` does to two numbers.
template <SegmentRule kRule, typename T>
T Joined(T a, T b) {
  constexpr bool kExtreme = kRule == SegmentRule::kMin || kRule == SegmentRule::kMax;
  if constexpr (kExtreme && (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)) {
    return a;  // They have no order, and no op.
  } else if constexpr (kExtreme) {
    const bool takes_a = kRule == SegmentRule::kMin ? a < b : a > b;
    return takes_a || a != a ? a : b;  // NOLINT(misc-redundant-expression): NaN
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    const uint64_t x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    return static_cast<T>(kRule == SegmentRule::kProd ? x * y : x + y);
  } else {
    return kRule == SegmentRule::kProd ? T(a * b) : T(a + b);
  }
}

template <SegmentRule kRule, typename T, int kLength>
void JoinRowsOf(const T* in, const int64_t* segment_of, int64_t rows, T* out) {
  for (int64_t r = 0; r < rows; ++r, in += kLength) {
    if (segment_of[r] < 0) continue;
    T* to = out + segment_of[r] * kLength;
    for (int c = 0; c < kLength; ++c) to[c] = Joined<kRule>(to[c], in[c]);
  }
}

template <SegmentRule kRule, typename T, int kLength>
void FoldRowsOf(const T* in, int64_t rows, T* out) {
  T row[kLength];
  for (int c = 0; c < kLength; ++c) row[c] = out[c];
  for (int64_t r = 0; r < rows; ++r, in += kLength) {
    for (int c = 0; c < kLength; ++c) row[c] = Joined<kRule>(row[c], in[c]);
  }
  for (int c = 0; c < kLength; ++c) out[c] = row[c];
}

/// Calls `run` with the length as a constant.
template <typename Run>
void WithLength(int64_t length, Run run) {
  [&]<int... kMinusOne>(std::integer_sequence<int, kMinusOne...>) {
    ((length == kMinusOne + 1 ? run.template operator()<kMinusOne + 1>() : void()), ...);
  }
  (std::make_integer_sequence<int, kShortRow>());
}

template <SegmentRule kRule, typename T>
constexpr ShortRowFns kShortRowsOf = {
    [](const void* in, const int64_t* segment_of, int64_t rows, int64_t length, void* out) {
      WithLength(length, [&]<int kLength>() {
        JoinRowsOf<kRule, T, kLength>(static_cast<const T*>(in), segment_of, rows,
                                      static_cast<T*>(out));
      });
    },
    [](const void* in, int64_t rows, int64_t length, void* out) {
      WithLength(length, [&]<int kLength>() {
        FoldRowsOf<kRule, T, kLength>(static_cast<const T*>(in), rows, static_cast<T*>(out));
      });
    }};

template <typename T>
ShortRowFns ShortRowsOf(SegmentRule rule) {
  switch (rule) {
    case SegmentRule::kSum:
    case SegmentRule::kMean:
      return kShortRowsOf<SegmentRule::kSum, T>;
    case SegmentRule::kProd:
      return kShortRowsOf<SegmentRule::kProd, T>;
    case SegmentRule::kMin:
      return kShortRowsOf<SegmentRule::kMin, T>;
    case SegmentRule::kMax:
      return kShortRowsOf<SegmentRule::kMax, T>;
  }
  return {};
}

}  // namespace

ShortRowFns FindShortRows(SegmentRule rule, ElementType type) {
  ShortRowFns found;
  (void)SwitchNumber(type, [&]<typename T>() {
    found = ShortRowsOf<T>(rule);
    return absl::OkStatus();
  });
  return found;
}

absl::StatusOr<simd::BinaryFn> FindSegmentJoin(SegmentRule rule, ElementType type) {
  static constexpr simd::BinaryOp kOps[] = {
      // In the order of `SegmentRule`.
      simd::kAdd, simd::kAdd, simd::kMul, simd::kMinimum, simd::kMaximum};
  const simd::BinaryFn join = FindBinary(kOps[static_cast<int>(rule)], type).aa;
  if (join != nullptr) return join;
  return absl::UnimplementedError(
      StrCat("segments of ", ElementTypeName(type), " cannot be reduced like this"));
}

absl::StatusOr<Tensor> SegmentIdentity(SegmentRule rule, ElementType type) {
  Tensor identity = Tensor::Uninitialized(type, Shape());
  TROUPE_RETURN_IF_ERROR(SwitchNumber(type, [&]<typename T>() {
    T& value = *identity.mutable_data<T>();
    value = T(rule == SegmentRule::kProd ? 1.0f : 0.0f);
    if constexpr (!std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>) {
      if (rule == SegmentRule::kMin) value = Largest<T>();
      if (rule == SegmentRule::kMax) value = Smallest<T>();
    }
    return absl::OkStatus();
  }));
  return identity;
}

}  // namespace troupe
