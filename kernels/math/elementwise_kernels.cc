// Registers the kernels of element-wise ops with one or two inputs.
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/quantized_types.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/elementwise.h"
#include "kernels/math/loops.h"

namespace troupe {
namespace {

using TypeList = std::vector<ElementType> (*)();
using enum ElementType;

std::vector<ElementType> SignedTypes() {
  return {kInt8, kInt16, kInt32, kInt64, kHalf, kBfloat16, kFloat, kDouble};
}
std::vector<ElementType> SignedAndComplexTypes() {
  return {kInt8,     kInt16, kInt32,  kInt64,     kHalf,
          kBfloat16, kFloat, kDouble, kComplex64, kComplex128};
}
std::vector<ElementType> RoundTypes() {
  return {kInt32, kInt64, kHalf, kBfloat16, kFloat, kDouble};
}
std::vector<ElementType> RintTypes() { return {kFloat, kDouble}; }
std::vector<ElementType> ComplexTypes() { return {kComplex64, kComplex128}; }
std::vector<ElementType> AddTypes() {
  return {kInt8,     kInt16, kInt32,  kInt64,     kUint8,      kHalf,
          kBfloat16, kFloat, kDouble, kComplex64, kComplex128, kString};
}
std::vector<ElementType> SquaredDifferenceTypes() {
  return {kInt32, kInt64, kHalf, kBfloat16, kFloat, kDouble, kComplex64, kComplex128};
}
std::vector<ElementType> ModTypes() { return {kInt32, kInt64, kFloat, kDouble}; }
std::vector<ElementType> EqualTypes() { return WithQuantized(WithString(PlainTypes())); }
std::vector<ElementType> BoolType() { return {kBool}; }

struct UnaryEntry {
  std::string_view op;
  simd::UnaryOp function;
  TypeList types;
  bool to_bool = false;
};

constexpr UnaryEntry kUnary[] = {
    {"Abs", simd::kAbs, SignedTypes},
    {"Acos", simd::kAcos, FloatTypes},
    {"Acosh", simd::kAcosh, FloatTypes},
    {"Asin", simd::kAsin, FloatTypes},
    {"Asinh", simd::kAsinh, FloatTypes},
    {"Atan", simd::kAtan, FloatTypes},
    {"Atanh", simd::kAtanh, FloatTypes},
    {"Ceil", simd::kCeil, FloatTypes},
    {"Conj", simd::kConj, ComplexTypes},
    {"Cos", simd::kCos, FloatAndComplexTypes},
    {"Cosh", simd::kCosh, FloatTypes},
    {"Elu", simd::kElu, FloatTypes},
    {"Erf", simd::kErf, FloatTypes},
    {"Erfc", simd::kErfc, FloatTypes},
    {"Exp", simd::kExp, FloatAndComplexTypes},
    {"Expm1", simd::kExpm1, FloatAndComplexTypes},
    {"Floor", simd::kFloor, FloatTypes},
    {"Inv", simd::kInv, FloatAndComplexTypes},
    {"IsFinite", simd::kIsFinite, FloatTypes, true},
    {"IsInf", simd::kIsInf, FloatTypes, true},
    {"IsNan", simd::kIsNan, FloatTypes, true},
    {"Log", simd::kLog, FloatAndComplexTypes},
    {"Log1p", simd::kLog1p, FloatAndComplexTypes},
    {"LogicalNot", simd::kNot, BoolType},
    {"Neg", simd::kNeg, SignedAndComplexTypes},
    {"Reciprocal", simd::kInv, FloatAndComplexTypes},
    {"Relu", simd::kRelu, RealNumberTypes},
    {"Relu6", simd::kRelu6, RealNumberTypes},
    {"Rint", simd::kRint, RintTypes},
    {"Round", simd::kRint, RoundTypes},
    {"Rsqrt", simd::kRsqrt, FloatAndComplexTypes},
    {"Selu", simd::kSelu, FloatTypes},
    {"Sigmoid", simd::kSigmoid, FloatAndComplexTypes},
    {"Sign", simd::kSign, SignedAndComplexTypes},
    {"Sin", simd::kSin, FloatAndComplexTypes},
    {"Sinh", simd::kSinh, FloatTypes},
    {"Softplus", simd::kSoftplus, FloatTypes},
    {"Softsign", simd::kSoftsign, FloatTypes},
    {"Sqrt", simd::kSqrt, FloatAndComplexTypes},
    {"Square", simd::kSquare, NumberTypes},
    {"Tan", simd::kTan, FloatAndComplexTypes},
    {"Tanh", simd::kTanh, FloatAndComplexTypes},
};

struct BinaryEntry {
  std::string_view op;
  simd::BinaryOp function;
  TypeList types;
  enum Kind : uint8_t { kBroadcast, kToBool, kSameShape, kSameSize } kind = kBroadcast;
  BinaryError error = BinaryError::kNone;
};

constexpr BinaryEntry kBinary[] = {
    {"Add", simd::kAdd, AddTypes},
    {"AddV2", simd::kAdd, NumberTypes},
    {"Atan2", simd::kAtan2, FloatTypes},
    {"Div", simd::kDiv, NumberTypes, BinaryEntry::kBroadcast, BinaryError::kDivisionByZero},
    {"DivNoNan", simd::kDivNoNan, FloatAndComplexTypes},
    {"EluGrad", simd::kEluGrad, FloatTypes, BinaryEntry::kSameShape},
    {"Equal", simd::kEqual, EqualTypes, BinaryEntry::kToBool},
    {"FloorDiv", simd::kFloorDiv, RealNumberTypes, BinaryEntry::kBroadcast,
     BinaryError::kDivisionByZero},
    {"FloorMod", simd::kFloorMod, RealNumberTypes, BinaryEntry::kBroadcast,
     BinaryError::kDivisionByZero},
    {"Greater", simd::kGreater, RealNumberTypes, BinaryEntry::kToBool},
    {"GreaterEqual", simd::kGreaterEqual, RealNumberTypes, BinaryEntry::kToBool},
    {"InvGrad", simd::kInvGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"Less", simd::kLess, RealNumberTypes, BinaryEntry::kToBool},
    {"LessEqual", simd::kLessEqual, RealNumberTypes, BinaryEntry::kToBool},
    {"LogicalAnd", simd::kAnd, BoolType, BinaryEntry::kToBool},
    {"LogicalOr", simd::kOr, BoolType, BinaryEntry::kToBool},
    {"Maximum", simd::kMaximum, RealNumberTypes},
    {"Minimum", simd::kMinimum, RealNumberTypes},
    {"Mod", simd::kMod, ModTypes, BinaryEntry::kBroadcast, BinaryError::kDivisionByZero},
    {"Mul", simd::kMul, NumberTypes},
    {"NotEqual", simd::kNotEqual, EqualTypes, BinaryEntry::kToBool},
    {"Pow", simd::kPow, SignedAndComplexTypes, BinaryEntry::kBroadcast,
     BinaryError::kNegativePower},
    {"RealDiv", simd::kDiv, FloatAndComplexTypes},
    {"ReciprocalGrad", simd::kInvGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"Relu6Grad", simd::kRelu6Grad, RealNumberTypes, BinaryEntry::kSameShape},
    {"ReluGrad", simd::kReluGrad, RealNumberTypes, BinaryEntry::kSameShape},
    {"RsqrtGrad", simd::kRsqrtGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"SeluGrad", simd::kSeluGrad, FloatTypes, BinaryEntry::kSameShape},
    {"SigmoidGrad", simd::kSigmoidGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"SoftplusGrad", simd::kSoftplusGrad, FloatTypes, BinaryEntry::kSameShape},
    {"SoftsignGrad", simd::kSoftsignGrad, FloatTypes, BinaryEntry::kSameShape},
    {"SqrtGrad", simd::kSqrtGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"SquaredDifference", simd::kSquaredDifference, SquaredDifferenceTypes},
    {"Sub", simd::kSub, NumberTypes},
    {"TanhGrad", simd::kTanhGrad, FloatAndComplexTypes, BinaryEntry::kSameSize},
    {"TruncateDiv", simd::kTruncateDiv, RealNumberTypes, BinaryEntry::kBroadcast,
     BinaryError::kTruncatedDivisionByZero},
    {"TruncateMod", simd::kMod, ModTypes, BinaryEntry::kBroadcast,
     BinaryError::kTruncatedDivisionByZero},
};

absl::Status NoFunction(KernelConstruction& c) {
  return absl::UnimplementedError(
      absl::StrCat(c.op(), " has no function for ", ElementTypeName(c.input_type(0))));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeUnary(KernelConstruction& c) {
  for (const UnaryEntry& entry : kUnary) {
    if (entry.op != c.op()) continue;
    const ElementType type = RemoveRef(c.input_type(0));
    const simd::UnaryFn fn = FindUnary(entry.function, type);
    if (fn == nullptr) return NoFunction(c);
    return std::make_unique<UnaryKernel>(fn, entry.to_bool ? kBool : type,
                                         UnaryCost(entry.function, type));
  }
  return NoFunction(c);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBinary(KernelConstruction& c) {
  for (const BinaryEntry& entry : kBinary) {
    if (entry.op != c.op()) continue;
    const ElementType type = RemoveRef(c.input_type(0));
    const simd::BinaryFns fns = FindBinary(entry.function, type);
    if (fns.aa == nullptr) return NoFunction(c);
    const double cost = BinaryCost(entry.function, type);
    if (entry.kind == BinaryEntry::kSameShape || entry.kind == BinaryEntry::kSameSize) {
      return std::make_unique<SameSizeKernel>(fns.aa, entry.kind == BinaryEntry::kSameShape, cost);
    }
    int unequal_shapes = -1;
    if ((entry.function == simd::kEqual || entry.function == simd::kNotEqual) &&
        !c.attrs().GetOr<bool>("incompatible_shape_error", true)) {
      unequal_shapes = entry.function == simd::kNotEqual ? 1 : 0;
    }
    return std::make_unique<BinaryKernel>(fns, type,
                                          entry.kind == BinaryEntry::kToBool ? kBool : type, cost,
                                          entry.error, unequal_shapes);
  }
  return NoFunction(c);
}

// Ops on booleans only have no type attribute.
KernelSpec Spec(std::string_view op, TypeList types) {
  KernelSpec spec{std::string(op)};
  if (types != BoolType) spec.Types("T", types());
  return spec;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const UnaryEntry& entry : kUnary) {
    KernelRegistry::Global()->Register(Spec(entry.op, entry.types), MakeUnary);
  }
  for (const BinaryEntry& entry : kBinary) {
    KernelRegistry::Global()->Register(Spec(entry.op, entry.types), MakeBinary);
  }
  return true;
}();

}  // namespace
}  // namespace troupe
