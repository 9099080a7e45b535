// Binary functions and gradients of float, half, bfloat16.
#include "kernels/simd/half_blocks.h"
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/power.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"
#include "kernels/simd/vector_functions.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <BinaryFn AA, BinaryFn SA, BinaryFn AS, typename H, bool kToBool>
constexpr BinaryFns HalfForms() {
  return {HalfBinary<AA, H, kToBool, false, false>, HalfBinary<SA, H, kToBool, true, false>,
          HalfBinary<AS, H, kToBool, false, true>};
}

template <BinaryFn AA, BinaryFn SA, BinaryFn AS, BinaryOp kOp, bool kToBool = false>
void SetFns(Table* table) {
  table->binary[kF32][kOp] = {AA, SA, AS};
  table->binary[kF16][kOp] = HalfForms<AA, SA, AS, F16, kToBool>();
  table->binary[kBF16][kOp] = HalfForms<AA, SA, AS, BF16, kToBool>();
}

template <typename Op, BinaryOp kOp>
void Set(Table* table) {
  SetFns<BinaryLoop<Op, float, false, false>, BinaryLoop<Op, float, true, false>,
         BinaryLoop<Op, float, false, true>, kOp>(table);
}
template <typename Op, BinaryOp kOp>
void SetCompare(Table* table) {
  SetFns<BinaryLoop<Op, float, false, false>, BinaryLoop<Op, float, true, false>,
         BinaryLoop<Op, float, false, true>, kOp, true>(table);
}
template <BinaryFn F, BinaryOp kOp>
void SetGradFn(Table* table) {
  table->binary[kF32][kOp] = {F, nullptr, nullptr};
  table->binary[kF16][kOp] = {HalfBinary<F, F16, false, false, false>, nullptr, nullptr};
  table->binary[kBF16][kOp] = {HalfBinary<F, BF16, false, false, false>, nullptr, nullptr};
}
template <typename Op, BinaryOp kOp>
void SetGrad(Table* table) {
  SetGradFn<BinaryLoop<Op, float, false, false>, kOp>(table);
}

}  // namespace

void FillBinaryFloat(Table* table) {
  Set<AddOp, kAdd>(table);
  Set<SubOp, kSub>(table);
  Set<MulOp, kMul>(table);
  Set<DivOp, kDiv>(table);
  Set<TruncateDivOp, kTruncateDiv>(table);
  Set<FloorDivOp, kFloorDiv>(table);
  Set<FloorModOp, kFloorMod>(table);
  Set<ModOp, kMod>(table);
  Set<DivNoNanOp, kDivNoNan>(table);
  Set<MaximumOp, kMaximum>(table);
  Set<MinimumOp, kMinimum>(table);
  Set<SquaredDifferenceOp, kSquaredDifference>(table);
  Set<VectorAtan2Op, kAtan2>(table);
  SetFns<PowAA<float>, PowSA<float>, PowAS<float>, kPow>(table);
  SetCompare<LessOp, kLess>(table);
  SetCompare<LessEqualOp, kLessEqual>(table);
  SetCompare<GreaterOp, kGreater>(table);
  SetCompare<GreaterEqualOp, kGreaterEqual>(table);
  SetCompare<EqualOp, kEqual>(table);
  SetCompare<NotEqualOp, kNotEqual>(table);
  SetGrad<TanhGradOp, kTanhGrad>(table);
  SetGrad<SigmoidGradOp, kSigmoidGrad>(table);
  SetGrad<SqrtGradOp, kSqrtGrad>(table);
  SetGrad<RsqrtGradOp, kRsqrtGrad>(table);
  SetGrad<InvGradOp, kInvGrad>(table);
  SetGrad<ReluGradOp, kReluGrad>(table);
  SetGrad<Relu6GradOp, kRelu6Grad>(table);
  SetGrad<EluGradOp, kEluGrad>(table);
  SetGrad<SeluGradOp, kSeluGrad>(table);
  SetGrad<SoftsignGradOp, kSoftsignGrad>(table);
  SetGradFn<PacketLoop2<SoftplusGradOp, float>, kSoftplusGrad>(table);
}

}  // namespace troupe::simd::TROUPE_ISA
