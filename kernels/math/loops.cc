#include "kernels/math/loops.h"

#include <functional>
#include <string>

#include "devices/quantized.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

using simd::BinaryFns;
using simd::BinaryOp;
using simd::UnaryFn;
using simd::UnaryOp;

void NotLoop(const void* in, void* out, int64_t n) {
  const bool* x = static_cast<const bool*>(in);
  bool* y = static_cast<bool*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = !x[i];
}

template <typename T, typename R, typename F, int kStepA, int kStepB>
uint32_t Loop(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) z[i] = F()(x[i * kStepA], y[i * kStepB]);
  return 0;
}
template <typename T, typename R, typename F>
constexpr BinaryFns FormsOf() {
  return {Loop<T, R, F, 1, 1>, Loop<T, R, F, 0, 1>, Loop<T, R, F, 1, 0>};
}

BinaryFns BoolBinary(BinaryOp op) {
  switch (op) {
    case simd::kAnd:
      return FormsOf<bool, bool, std::bit_and<bool>>();
    case simd::kOr:
      return FormsOf<bool, bool, std::bit_or<bool>>();
    case simd::kEqual:
      return FormsOf<bool, bool, std::equal_to<bool>>();
    case simd::kNotEqual:
      return FormsOf<bool, bool, std::not_equal_to<bool>>();
    default:
      return {};
  }
}

BinaryFns StringBinary(BinaryOp op) {
  switch (op) {
    case simd::kAdd:
      return FormsOf<std::string, std::string, std::plus<std::string>>();
    case simd::kEqual:
      return FormsOf<std::string, bool, std::equal_to<std::string>>();
    case simd::kNotEqual:
      return FormsOf<std::string, bool, std::not_equal_to<std::string>>();
    default:
      return {};
  }
}

}  // namespace

UnaryFn FindUnary(UnaryOp op, ElementType type) {
  const simd::Type index = simd::TypeOf(type);
  if (index != simd::kNumTypes) return simd::Functions().unary[index][op];
  if (type == ElementType::kBool) return op == simd::kNot ? NotLoop : nullptr;
  if (IsComplex(type)) return internal::ComplexUnary(op, type);
  return internal::IntegerUnary(op, type);
}

BinaryFns FindBinary(BinaryOp op, ElementType type) {
  type = StorageType(type);  // Of the same range, quantized elements compare as their integers do.
  const simd::Type index = simd::TypeOf(type);
  if (index != simd::kNumTypes) return simd::Functions().binary[index][op];
  if (type == ElementType::kBool) return BoolBinary(op);
  if (type == ElementType::kString) return StringBinary(op);
  if (IsComplex(type)) return internal::ComplexBinary(op, type);
  return internal::IntegerBinary(op, type);
}

double UnaryCost(UnaryOp op, ElementType type) {
  const bool transcendental = (op >= simd::kExp && op <= simd::kAtanh) || op == simd::kElu ||
                              op == simd::kSelu || op == simd::kSoftplus;
  if (!transcendental) return IsComplex(type) ? 2 : 0.15;
  if (IsComplex(type)) return 50;
  return type == ElementType::kDouble ? 8 : 1;
}

double BinaryCost(BinaryOp op, ElementType type) {
  if (type == ElementType::kString) return 20;
  switch (op) {
    case simd::kPow:
      return IsComplex(type) ? 100 : 8;
    case simd::kMod:
    case simd::kFloorMod:
      return 8;
    case simd::kDiv:
    case simd::kFloorDiv:
    case simd::kTruncateDiv:
      return IsFloating(type) ? 0.3 : 2;
    case simd::kAtan2:
    case simd::kSoftplusGrad:
      return 1;
    default:
      return IsComplex(type) ? 2 : 0.2;
  }
}

}  // namespace troupe
