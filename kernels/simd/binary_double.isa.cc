// Binary functions and gradients of double.
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/power.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"
#include "kernels/simd/vector_functions.h"

namespace troupe::simd::TROUPE_ISA {

void FillBinaryDouble(Table* table) {
  BinaryFns* fns = table->binary[kF64];
  fns[kAdd] = Forms<AddOp, double>();
  fns[kSub] = Forms<SubOp, double>();
  fns[kMul] = Forms<MulOp, double>();
  fns[kDiv] = Forms<DivOp, double>();
  fns[kTruncateDiv] = Forms<TruncateDivOp, double>();
  fns[kFloorDiv] = Forms<FloorDivOp, double>();
  fns[kFloorMod] = Forms<FloorModOp, double>();
  fns[kMod] = Forms<ModOp, double>();
  fns[kDivNoNan] = Forms<DivNoNanOp, double>();
  fns[kMaximum] = Forms<MaximumOp, double>();
  fns[kMinimum] = Forms<MinimumOp, double>();
  fns[kSquaredDifference] = Forms<SquaredDifferenceOp, double>();
  fns[kAtan2] = Forms<VectorAtan2Op, double>();
  fns[kPow] = {PowAA<double>, PowSA<double>, PowAS<double>};
  fns[kLess] = Forms<LessOp, double>();
  fns[kLessEqual] = Forms<LessEqualOp, double>();
  fns[kGreater] = Forms<GreaterOp, double>();
  fns[kGreaterEqual] = Forms<GreaterEqualOp, double>();
  fns[kEqual] = Forms<EqualOp, double>();
  fns[kNotEqual] = Forms<NotEqualOp, double>();
  fns[kTanhGrad] = GradForm<TanhGradOp, double>();
  fns[kSigmoidGrad] = GradForm<SigmoidGradOp, double>();
  fns[kSqrtGrad] = GradForm<SqrtGradOp, double>();
  fns[kRsqrtGrad] = GradForm<RsqrtGradOp, double>();
  fns[kInvGrad] = GradForm<InvGradOp, double>();
  fns[kReluGrad] = GradForm<ReluGradOp, double>();
  fns[kRelu6Grad] = GradForm<Relu6GradOp, double>();
  fns[kEluGrad] = GradForm<EluGradOp, double>();
  fns[kSeluGrad] = GradForm<SeluGradOp, double>();
  fns[kSoftsignGrad] = GradForm<SoftsignGradOp, double>();
  fns[kSoftplusGrad] = {PacketLoop2<SoftplusGradOp, double>, nullptr, nullptr};
}

}  // namespace troupe::simd::TROUPE_ISA
