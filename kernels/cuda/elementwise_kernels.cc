// Element-wise ops of GPUs with one or two operands.
#include <initializer_list>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/math/same_shape.h"

namespace troupe::cuda {
namespace {

using enum ElementType;

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "an element-wise kernel"); }

/// A kernel that knows the type of its first input.
class TypedKernel : public Kernel {
 public:
  TypedKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  Number type() const { return type_; }

 private:
  Number type_ = Number::kFloat;
};

template <UnaryOp kOp>
class UnaryKernel final : public TypedKernel, public FusiblePart {
 public:
  UnaryKernel(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    const ElementType element_type = construction.input_type(0);
    launch_ = IsFloating(element_type)  ? LaunchUnaryFloating
              : IsComplex(element_type) ? LaunchUnaryComplex
                                        : LaunchUnaryInteger;
    if (CanFuse(kOp) && IsFloating(element_type)) Offer(ToFused(kOp), type(), type());
  }
  absl::Status Compute(KernelContext& ctx) override {
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return Enqueued(
        launch_(kOp, type(), x, y->mutable_raw_data(), y->num_elements(), StreamOf(ctx)));
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return *operands[0];
  }

 private:
  decltype(&LaunchUnaryFloating) launch_;
};

template <Kind kKind>
class IsOfKindKernel final : public TypedKernel {
 public:
  using TypedKernel::TypedKernel;
  absl::Status Compute(KernelContext& ctx) override {
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, kBool, ctx.input(0).shape()));
    return Enqueued(LaunchIsOfKind(kKind, type(), x, static_cast<bool*>(y->mutable_raw_data()),
                                   y->num_elements(), StreamOf(ctx)));
  }
};

class LogicalNot final : public Kernel, public FusiblePart {
 public:
  LogicalNot(KernelConstruction&, absl::Status*) {
    Offer(FusedOp::kNot, Number::kBool, Number::kBool);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const auto* x = static_cast<const bool*>(ctx.input(0).raw_data());
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return Enqueued(
        LaunchNot(x, static_cast<bool*>(y->mutable_raw_data()), y->num_elements(), StreamOf(ctx)));
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return *operands[0];
  }
};

absl::Status PassThrough(KernelContext& ctx) {
  ctx.PassThrough(0, 0);
  return absl::OkStatus();
}

/// What TensorFlow gives for integers.
absl::Status RoundInteger(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
  ZeroElements(ctx, y->type(), y->mutable_raw_data(), y->num_elements());
  return absl::OkStatus();
}

template <BinaryOp kOp>
class BinaryKernel final : public TypedKernel, public FusiblePart {
 public:
  BinaryKernel(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    const ElementType element_type = construction.input_type(0);
    launch_ = IsFloating(element_type)  ? LaunchBinaryFloating
              : IsComplex(element_type) ? LaunchBinaryComplex
                                        : LaunchBinaryInteger;
    checks_ = kMayFail && launch_ == LaunchBinaryInteger;
    if (CanFuse(kOp) && IsFloating(element_type)) Offer(ToFused(kOp), type(), type());
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(BinaryCall call, BroadcastCall(ctx, ctx.input(0).type()));
    if (checks_) {
      TROUPE_ASSIGN_OR_RETURN(call.check, CheckLate(ctx, Explain));
    }
    return Enqueued(launch_(kOp, type(), call, StreamOf(ctx)));
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return BroadcastShapes(*operands[0], *operands[1]);
  }

 private:
  static constexpr bool kMayFail = kOp == BinaryOp::kDiv || kOp == BinaryOp::kTruncateDiv ||
                                   kOp == BinaryOp::kFloorDiv || kOp == BinaryOp::kFloorMod ||
                                   kOp == BinaryOp::kPow;
  static absl::Status Explain(const int64_t*) {
    if (kOp == BinaryOp::kPow) {
      return InvalidArgument("Integers to negative integer powers are not allowed");
    }
    const char* const message = "Integer division by zero";
    return kOp == BinaryOp::kTruncateDiv ? absl::InternalError(message) : InvalidArgument(message);
  }

  decltype(&LaunchBinaryFloating) launch_;
  bool checks_;
};

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};

template <Comparison kComparison>
class ComparisonKernel final : public TypedKernel, public FusiblePart {
 public:
  ComparisonKernel(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status),
        shapes_may_differ_((kComparison == Comparison::kEqual || kNegated) &&
                           !construction.attrs().GetOr<bool>("incompatible_shape_error", true)) {
    if (!shapes_may_differ_) Offer(kFusedOp, type(), Number::kBool, kSwapped);
  }

  absl::Status Compute(KernelContext& ctx) override {
    if (shapes_may_differ_ && !BroadcastShapes(ctx.input(0).shape(), ctx.input(1).shape()).ok()) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, kBool, Shape()));
      FillElements(ctx, kBool, out->mutable_raw_data(), 1, &kNegated);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(BinaryCall call, BroadcastCall(ctx, kBool));
    if (kSwapped) {
      std::swap(call.a, call.b);
      std::swap(call.broadcast.strides[0], call.broadcast.strides[1]);
    }
    return Enqueued(LaunchComparison(kRelation, type(), call, StreamOf(ctx)));
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return BroadcastShapes(*operands[0], *operands[1]);
  }

 private:
  static constexpr bool kNegated = kComparison == Comparison::kNotEqual;
  static constexpr bool kSwapped =
      kComparison == Comparison::kGreater || kComparison == Comparison::kGreaterEqual;
  /// Of the operands in turn, if the first one is to be greater.
  static constexpr Relation kRelation = {
      .less = kComparison != Comparison::kEqual && !kNegated,
      .equal = kComparison != Comparison::kLess && kComparison != Comparison::kGreater,
      .negated = kNegated};
  static constexpr FusedOp kFusedOp = kNegated           ? FusedOp::kNotEqual
                                      : !kRelation.less  ? FusedOp::kEqual
                                      : !kRelation.equal ? FusedOp::kLess
                                                         : FusedOp::kLessEqual;

  const bool shapes_may_differ_;
};

class ApproximateEqual final : public TypedKernel {
 public:
  ApproximateEqual(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    if (status->ok()) *status = construction.GetAttr("tolerance", &tolerance_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &x = ctx.input(0), &y = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSameShape(x.shape(), y.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, kBool, x.shape()));
    return Enqueued(LaunchApproximateEqual(tolerance_, type(), x.raw_data(), y.raw_data(),
                                           static_cast<bool*>(z->mutable_raw_data()),
                                           z->num_elements(), StreamOf(ctx)));
  }

 private:
  float tolerance_ = 0;
};

/// And, Or: the smaller and the larger one of two that are 0 or 1.
template <BinaryOp kOp>
class Logical final : public Kernel, public FusiblePart {
 public:
  Logical(KernelConstruction&, absl::Status*) { Offer(ToFused(kOp), Number::kBool, Number::kBool); }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BinaryCall call, BroadcastCall(ctx, kBool));
    return Enqueued(LaunchBinaryInteger(kOp, Number::kUint8, call, StreamOf(ctx)));
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    return BroadcastShapes(*operands[0], *operands[1]);
  }
};

/// Of two inputs of the same size or, if `same_shape`, of the same shape.
absl::Status CheckGradient(const Shape& a, const Shape& b, bool same_shape) {
  if (same_shape ? a == b : a.num_elements() == b.num_elements()) return absl::OkStatus();
  return InvalidArgument("the inputs must have the same ", same_shape ? "shape" : "size", ", got ",
                         a.ToString(), " and ", b.ToString());
}
absl::StatusOr<Tensor*> OutputOfGradient(KernelContext& ctx, bool same_shape) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckGradient(a.shape(), b.shape(), same_shape));
  return ctx.ForwardEitherOrAllocate(0, 1, 0, a.type(), a.shape());
}

template <GradientOp kOp>
class GradientKernel final : public TypedKernel, public FusiblePart {
 public:
  GradientKernel(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    Offer(ToFused(kOp), type(), type(), /*swapped=*/kGradientFirst);
  }
  absl::StatusOr<Shape> ShapeFor(absl::Span<const Shape* const> operands) const override {
    TROUPE_RETURN_IF_ERROR(CheckGradient(*operands[0], *operands[1], /*same_shape=*/true));
    return *operands[0];
  }
  absl::Status Compute(KernelContext& ctx) override {
    const void *first = ctx.input(0).raw_data(), *second = ctx.input(1).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, OutputOfGradient(ctx, kGradientFirst));
    if (kGradientFirst) std::swap(first, second);
    return Enqueued(LaunchGradient(kOp, type(), first, second, out->mutable_raw_data(),
                                   out->num_elements(), StreamOf(ctx)));
  }

 private:
  /// Those of functions of `math` take the op's output first, those of `nn` what came back.
  static constexpr bool kGradientFirst = kOp > GradientOp::kTanh;
};

class LeakyRelu final : public TypedKernel {
 public:
  LeakyRelu(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    if (status->ok()) *status = construction.GetAttr("alpha", &alpha_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return Enqueued(LaunchLeakyRelu(type(), alpha_, x, y->mutable_raw_data(), y->num_elements(),
                                    StreamOf(ctx)));
  }

 private:
  float alpha_ = 0;
};

class LeakyReluGrad final : public TypedKernel {
 public:
  LeakyReluGrad(KernelConstruction& construction, absl::Status* status)
      : TypedKernel(construction, status) {
    if (status->ok()) *status = construction.GetAttr("alpha", &alpha_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const void *dy = ctx.input(0).raw_data(), *x = ctx.input(1).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, OutputOfGradient(ctx, /*same_shape=*/true));
    return Enqueued(LaunchLeakyReluGradient(type(), alpha_, x, dy, out->mutable_raw_data(),
                                            out->num_elements(), StreamOf(ctx)));
  }

 private:
  float alpha_ = 0;
};

using TypeList = std::vector<ElementType>;

TypeList FloatsAnd(std::initializer_list<ElementType> more) {
  TypeList types = FloatTypes();
  types.insert(types.end(), more);
  return types;
}
// Tensors of int32 are on the host.
TypeList FloatsAndSigned() { return FloatsAnd({kInt8, kInt16, kInt64}); }
TypeList Reals() { return FloatsAnd({kInt8, kInt16, kInt64, kUint8, kUint16, kUint32, kUint64}); }
TypeList FloatsAndComplex() { return FloatsAnd({kComplex64, kComplex128}); }
TypeList Numbers() {
  TypeList types = Reals();
  types.insert(types.end(), {kComplex64, kComplex128});
  return types;
}

using Add = absl::FunctionRef<void(const char* op, TypeList types, KernelFactory factory)>;

void AddUnary(Add add) {
  const TypeList signed_or_complex = FloatsAnd({kInt8, kInt16, kInt64, kComplex64, kComplex128});
  const TypeList inverted = FloatsAnd({kInt64, kComplex64, kComplex128});
  add("Abs", FloatsAndSigned(), MakeKernel<UnaryKernel<UnaryOp::kAbs>>);
  add("Acos", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAcos>>);
  add("Acosh", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAcosh>>);
  add("Asin", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAsin>>);
  add("Asinh", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAsinh>>);
  add("Atan", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAtan>>);
  add("Atanh", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kAtanh>>);
  add("Ceil", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kCeil>>);
  add("Conj", {kComplex64, kComplex128}, MakeKernel<UnaryKernel<UnaryOp::kConj>>);
  add("Cos", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kCos>>);
  add("Cosh", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kCosh>>);
  add("Elu", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kElu>>);
  add("Erf", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kErf>>);
  add("Erfc", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kErfc>>);
  add("Exp", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kExp>>);
  add("Expm1", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kExpm1>>);
  add("Floor", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kFloor>>);
  add("Inv", inverted, MakeKernel<UnaryKernel<UnaryOp::kInv>>);
  add("Reciprocal", inverted, MakeKernel<UnaryKernel<UnaryOp::kInv>>);
  add("Log", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kLog>>);
  add("Log1p", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kLog1p>>);
  add("Neg", signed_or_complex, MakeKernel<UnaryKernel<UnaryOp::kNeg>>);
  add("Relu", FloatsAndSigned(), MakeKernel<UnaryKernel<UnaryOp::kRelu>>);
  add("Relu", {kUint8, kUint16, kUint32, kUint64}, MakeKernel<PassThrough>);
  add("Relu6", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kRelu6>>);
  // Of half TensorFlow has it on cards alone.
  add("Rint", {kHalf, kFloat, kDouble}, MakeKernel<UnaryKernel<UnaryOp::kRint>>);
  add("Round", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kRint>>);
  add("Round", {kInt64}, MakeKernel<RoundInteger>);
  add("Rsqrt", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kRsqrt>>);
  add("Selu", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kSelu>>);
  add("Sigmoid", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kSigmoid>>);
  add("Sign", signed_or_complex, MakeKernel<UnaryKernel<UnaryOp::kSign>>);
  add("Sin", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kSin>>);
  add("Sinh", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kSinh>>);
  add("Softplus", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kSoftplus>>);
  add("Softsign", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kSoftsign>>);
  add("Sqrt", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kSqrt>>);
  add("Square", Reals(), MakeKernel<UnaryKernel<UnaryOp::kSquare>>);
  add("Tan", FloatsAndComplex(), MakeKernel<UnaryKernel<UnaryOp::kTan>>);
  add("Tanh", FloatTypes(), MakeKernel<UnaryKernel<UnaryOp::kTanh>>);
  add("LeakyRelu", FloatTypes(), MakeKernel<LeakyRelu>);
  add("IsFinite", FloatTypes(), MakeKernel<IsOfKindKernel<Kind::kFinite>>);
  add("IsInf", FloatTypes(), MakeKernel<IsOfKindKernel<Kind::kInfinite>>);
  add("IsNan", FloatTypes(), MakeKernel<IsOfKindKernel<Kind::kNan>>);
  add("LogicalNot", {}, MakeKernel<LogicalNot>);
}

void AddBinary(Add add) {
  add("Add", Numbers(), MakeKernel<BinaryKernel<BinaryOp::kAdd>>);
  add("AddV2", Numbers(), MakeKernel<BinaryKernel<BinaryOp::kAdd>>);
  add("Atan2", FloatTypes(), MakeKernel<BinaryKernel<BinaryOp::kAtan2>>);
  add("Sub", Numbers(), MakeKernel<BinaryKernel<BinaryOp::kSub>>);
  add("Mul", Numbers(), MakeKernel<BinaryKernel<BinaryOp::kMul>>);
  add("MulNoNan", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kMulNoNan>>);
  add("Div", Numbers(), MakeKernel<BinaryKernel<BinaryOp::kDiv>>);
  add("DivNoNan", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kDivNoNan>>);
  add("RealDiv", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kDiv>>);
  add("FloorDiv", Reals(), MakeKernel<BinaryKernel<BinaryOp::kFloorDiv>>);
  add("FloorMod", Reals(), MakeKernel<BinaryKernel<BinaryOp::kFloorMod>>);
  add("TruncateDiv", Reals(), MakeKernel<BinaryKernel<BinaryOp::kTruncateDiv>>);
  add("Maximum", Reals(), MakeKernel<BinaryKernel<BinaryOp::kMaximum>>);
  add("Minimum", Reals(), MakeKernel<BinaryKernel<BinaryOp::kMinimum>>);
  add("NextAfter", {kFloat, kDouble}, MakeKernel<BinaryKernel<BinaryOp::kNextAfter>>);
  add("Pow", FloatsAndSigned(), MakeKernel<BinaryKernel<BinaryOp::kPow>>);
  add("SquaredDifference", FloatsAnd({kInt64}),
      MakeKernel<BinaryKernel<BinaryOp::kSquaredDifference>>);
  add("Xdivy", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kXdivy>>);
  add("Xlog1py", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kXlog1py>>);
  add("Xlogy", FloatsAndComplex(), MakeKernel<BinaryKernel<BinaryOp::kXlogy>>);
  add("ApproximateEqual", {kFloat, kDouble}, MakeKernel<ApproximateEqual>);
  add("LogicalAnd", {}, MakeKernel<Logical<BinaryOp::kMinimum>>);
  add("LogicalOr", {}, MakeKernel<Logical<BinaryOp::kMaximum>>);
  add("Less", Reals(), MakeKernel<ComparisonKernel<Comparison::kLess>>);
  add("LessEqual", Reals(), MakeKernel<ComparisonKernel<Comparison::kLessEqual>>);
  add("Greater", Reals(), MakeKernel<ComparisonKernel<Comparison::kGreater>>);
  add("GreaterEqual", Reals(), MakeKernel<ComparisonKernel<Comparison::kGreaterEqual>>);
  add("Equal", MovedTypes(), MakeKernel<ComparisonKernel<Comparison::kEqual>>);
  add("NotEqual", MovedTypes(), MakeKernel<ComparisonKernel<Comparison::kNotEqual>>);
}

void AddGradients(Add add) {
  add("EluGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kElu>>);
  add("InvGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kInv>>);
  add("LeakyReluGrad", FloatTypes(), MakeKernel<LeakyReluGrad>);
  add("ReciprocalGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kInv>>);
  add("Relu6Grad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kRelu6>>);
  add("ReluGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kRelu>>);
  add("RsqrtGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kRsqrt>>);
  add("SeluGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kSelu>>);
  add("SigmoidGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kSigmoid>>);
  add("SoftplusGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kSoftplus>>);
  add("SoftsignGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kSoftsign>>);
  add("SqrtGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kSqrt>>);
  add("TanhGrad", FloatTypes(), MakeKernel<GradientKernel<GradientOp::kTanh>>);
}

}  // namespace

void RegisterElementwise(Extension& extension) {
  const auto add = [&extension](const char* op, TypeList types, KernelFactory factory) {
    KernelSpec spec = KernelSpec(op).Device("GPU");
    if (!types.empty()) spec.Types("T", std::move(types));  // Ops of bool have no attribute.
    extension.Kernel(std::move(spec), factory);
  };
  AddUnary(add);
  AddBinary(add);
  AddGradients(add);
}

}  // namespace troupe::cuda
