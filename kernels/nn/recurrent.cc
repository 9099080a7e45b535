#include "kernels/nn/recurrent.h"

#include "kernels/common/widen.h"
#include "kernels/linalg/product.h"
#include "kernels/simd/dispatch.h"
#include "kernels/simd/table.h"

namespace troupe {

absl::Status MultiplyMatrices(KernelContext& ctx, const FloatMatrix& a, const FloatMatrix& b,
                              float* out) {
  GemmProblem<float> form;
  form.m = a.transposed ? a.columns : a.rows;
  form.k = a.transposed ? a.rows : a.columns;
  form.n = b.transposed ? b.rows : b.columns;
  form.a_row = a.transposed ? 1 : a.columns;
  form.a_col = a.transposed ? a.columns : 1;
  form.b_row = b.transposed ? 1 : b.columns;
  form.b_col = b.transposed ? b.columns : 1;
  form.ldc = form.n;
  if (form.m == 0 || form.n == 0) return absl::OkStatus();
  return RunProducts<float>(ctx, form, 1, [&](int64_t, GemmProblem<float>* problem) {
    problem->a = a.data;
    problem->b = b.data;
    problem->c = out;
  });
}

void SigmoidInPlace(float* x, int64_t n) {
  simd::Functions().unary[simd::kF32][simd::kSigmoid](x, x, n);
}
void TanhInPlace(float* x, int64_t n) { simd::Functions().unary[simd::kF32][simd::kTanh](x, x, n); }

absl::StatusOr<FloatArguments> FloatArguments::Read(KernelContext& ctx, int first) {
  FloatArguments arguments(&ctx);
  arguments.inputs_.resize(ctx.num_inputs());
  arguments.outputs_.resize(ctx.num_outputs());
  for (int i = first; i < ctx.num_inputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(arguments.inputs_[i], Widened(ctx, ctx.input(i)));
  }
  return arguments;
}

absl::StatusOr<float*> FloatArguments::Allocate(int i, const Shape& shape) {
  const ElementType type = ctx_->input(ctx_->num_inputs() - 1).type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx_->AllocateOutput(i, type, shape));
  if (type == ElementType::kFloat) return out->mutable_data<float>();
  TROUPE_ASSIGN_OR_RETURN(outputs_[i], ctx_->AllocateTemp(ElementType::kFloat, shape));
  return outputs_[i].mutable_data<float>();
}

void FloatArguments::Finish() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].valid()) continue;
    NarrowTo(*ctx_, outputs_[i], &ctx_->output(static_cast<int>(i)));
  }
}

}  // namespace troupe
