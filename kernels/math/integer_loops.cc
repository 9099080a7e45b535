// Element-wise functions of the integers that have no variants per instruction set.
#define TROUPE_ISA generic
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
  switch (type) {
    case ElementType::kInt8:
      return Unary<int8_t>(op);
    case ElementType::kInt16:
      return Unary<int16_t>(op);
    case ElementType::kUint8:
      return Unary<uint8_t>(op);
    case ElementType::kUint16:
      return Unary<uint16_t>(op);
    case ElementType::kUint32:
      return Unary<uint32_t>(op);
    case ElementType::kUint64:
      return Unary<uint64_t>(op);
    default:
      return nullptr;
  }
}

BinaryFns IntegerBinary(BinaryOp op, ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return Binary<int8_t>(op);
    case ElementType::kInt16:
      return Binary<int16_t>(op);
    case ElementType::kUint8:
      return Binary<uint8_t>(op);
    case ElementType::kUint16:
      return Binary<uint16_t>(op);
    case ElementType::kUint32:
      return Binary<uint32_t>(op);
    case ElementType::kUint64:
      return Binary<uint64_t>(op);
    default:
      return {};
  }
}

}  // namespace troupe::internal
