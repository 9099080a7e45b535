// Binary functions of int32 and int64.
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <typename T>
void Fill(BinaryFns* fns) {
  fns[kAdd] = Forms<AddOp, T>();
  fns[kSub] = Forms<SubOp, T>();
  fns[kMul] = Forms<MulOp, T>();
  fns[kDiv] = CheckedForms<DivOp, T>();
  fns[kTruncateDiv] = fns[kDiv];
  fns[kFloorDiv] = CheckedForms<FloorDivOp, T>();
  fns[kFloorMod] = CheckedForms<FloorModOp, T>();
  fns[kMod] = CheckedForms<ModOp, T>();
  fns[kMaximum] = Forms<MaximumOp, T>();
  fns[kMinimum] = Forms<MinimumOp, T>();
  fns[kPow] = CheckedForms<PowOp, T>();
  fns[kSquaredDifference] = Forms<SquaredDifferenceOp, T>();
  fns[kLess] = Forms<LessOp, T>();
  fns[kLessEqual] = Forms<LessEqualOp, T>();
  fns[kGreater] = Forms<GreaterOp, T>();
  fns[kGreaterEqual] = Forms<GreaterEqualOp, T>();
  fns[kEqual] = Forms<EqualOp, T>();
  fns[kNotEqual] = Forms<NotEqualOp, T>();
  fns[kReluGrad] = GradForm<ReluGradOp, T>();
  fns[kRelu6Grad] = GradForm<Relu6GradOp, T>();
}

}  // namespace

void FillBinaryInt(Table* table) {
  Fill<int32_t>(table->binary[kI32]);
  Fill<int64_t>(table->binary[kI64]);
}

}  // namespace troupe::simd::TROUPE_ISA
