// Element-wise functions of the integers that have no variants per instruction set.
#define TROUPE_ISA generic
#include "devices/match_type.h"
#include "kernels/math/loops.h"
#include "kernels/simd/scalar_ops.h"

namespace troupe::internal {
namespace {

using namespace simd;           // NOLINT: the operations
using namespace simd::generic;  // NOLINT

template <typename T>
UnaryFn Unary(UnaryOp op) {
  switch (op) {
    case kNeg:
      return UnaryLoop<NegOp, T>;
    case kAbs:
      return UnaryLoop<AbsOp, T>;
    case kSign:
      return UnaryLoop<SignOp, T>;
    case kSquare:
      return UnaryLoop<SquareOp, T>;
    case kRelu:
      return UnaryLoop<ReluOp, T>;
    case kRelu6:
      return UnaryLoop<Relu6Op, T>;
    default:
      return nullptr;
  }
}

template <typename T>
BinaryFns Binary(BinaryOp op) {
  switch (op) {
    case kAdd:
      return Forms<AddOp, T>();
    case kSub:
      return Forms<SubOp, T>();
    case kMul:
      return Forms<MulOp, T>();
    case kDiv:
    case kTruncateDiv:
      return CheckedForms<DivOp, T>();
    case kFloorDiv:
      return CheckedForms<FloorDivOp, T>();
    case kFloorMod:
      return CheckedForms<FloorModOp, T>();
    case kMod:
      return CheckedForms<ModOp, T>();
    case kMaximum:
      return Forms<MaximumOp, T>();
    case kMinimum:
      return Forms<MinimumOp, T>();
    case kPow:
      return CheckedForms<PowOp, T>();
    case kSquaredDifference:
      return Forms<SquaredDifferenceOp, T>();
    case kLess:
      return Forms<LessOp, T>();
    case kLessEqual:
      return Forms<LessEqualOp, T>();
    case kGreater:
      return Forms<GreaterOp, T>();
    case kGreaterEqual:
      return Forms<GreaterEqualOp, T>();
    case kEqual:
      return Forms<EqualOp, T>();
    case kNotEqual:
      return Forms<NotEqualOp, T>();
    case kReluGrad:
      return GradForm<ReluGradOp, T>();
    case kRelu6Grad:
      return GradForm<Relu6GradOp, T>();
    default:
      return {};
  }
}

}  // namespace

UnaryFn IntegerUnary(UnaryOp op, ElementType type) {
  return MatchType<int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, UnaryFn(nullptr), [op]<typename T>() { return Unary<T>(op); });
}

BinaryFns IntegerBinary(BinaryOp op, ElementType type) {
  return MatchType<int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, BinaryFns(), [op]<typename T>() { return Binary<T>(op); });
}

}  // namespace troupe::internal
