// GRUBlockCell and its gradient (Cho et al., "Learning Phrase Representations using RNN
// Encoder-Decoder", 2014).
#include <algorithm>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/nn/recurrent.h"
#include "kernels/nn/recurrent_shape.h"

namespace troupe {
namespace {

// a and b side by side: rows of a_columns and of b_columns.
absl::StatusOr<Tensor> SideBySide(KernelContext& ctx, const float* a, int64_t a_columns,
                                  const float* b, int64_t b_columns, int64_t rows) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor both, ctx.AllocateTemp(ElementType::kFloat, Shape({rows, a_columns + b_columns})));
  float* to = both.mutable_data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    to = std::copy_n(a + row * a_columns, a_columns, to);
    to = std::copy_n(b + row * b_columns, b_columns, to);
  }
  return both;
}

absl::Status GruBlockCell(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const GruShape s, CheckGru(ctx));
  TROUPE_ASSIGN_OR_RETURN(FloatArguments arguments, FloatArguments::Read(ctx, 0));
  float* out[4];  // r, u, c, h
  for (int i = 0; i < 4; ++i) {
    TROUPE_ASSIGN_OR_RETURN(out[i], arguments.Allocate(i, Shape({s.batch, s.cells})));
  }
  float *r = out[0], *u = out[1], *c = out[2], *h = out[3];
  const float *x = arguments.in(0), *h_prev = arguments.in(1);
  const float *b_ru = arguments.in(4), *b_c = arguments.in(5);
  const int64_t rows = s.inputs + s.cells, cells = s.cells;

  TROUPE_ASSIGN_OR_RETURN(const Tensor x_h, SideBySide(ctx, x, s.inputs, h_prev, cells, s.batch));
  TROUPE_ASSIGN_OR_RETURN(Tensor ru,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, 2 * cells})));
  TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {x_h.unchecked_data<float>(), s.batch, rows},
                                          {arguments.in(2), rows, 2 * cells},
                                          ru.mutable_data<float>()));
  for (int64_t b = 0; b < s.batch; ++b) {
    const float* row = ru.unchecked_data<float>() + b * 2 * cells;
    for (int64_t i = 0; i < cells; ++i) {
      r[b * cells + i] = row[i] + b_ru[i];
      u[b * cells + i] = row[cells + i] + b_ru[cells + i];
    }
  }
  SigmoidInPlace(r, s.states());
  SigmoidInPlace(u, s.states());
  for (int64_t i = 0; i < s.states(); ++i) h[i] = h_prev[i] * r[i];
  TROUPE_ASSIGN_OR_RETURN(const Tensor x_hr, SideBySide(ctx, x, s.inputs, h, cells, s.batch));
  TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {x_hr.unchecked_data<float>(), s.batch, rows},
                                          {arguments.in(3), rows, cells}, c));
  for (int64_t i = 0; i < s.states(); ++i) c[i] += b_c[i % cells];
  TanhInPlace(c, s.states());
  for (int64_t i = 0; i < s.states(); ++i) h[i] = (1 - u[i]) * c[i] + u[i] * h_prev[i];
  return absl::OkStatus();
}

absl::Status GruBlockCellGrad(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const GruShape s, CheckGru(ctx));
  TROUPE_ASSIGN_OR_RETURN(FloatArguments arguments, FloatArguments::Read(ctx, 0));
  const int64_t rows = s.inputs + s.cells, cells = s.cells;
  TROUPE_ASSIGN_OR_RETURN(float* const dx, arguments.Allocate(0, Shape({s.batch, s.inputs})));
  TROUPE_ASSIGN_OR_RETURN(float* const dh_prev, arguments.Allocate(1, Shape({s.batch, cells})));
  TROUPE_ASSIGN_OR_RETURN(float* const dc_bar, arguments.Allocate(2, Shape({s.batch, cells})));
  TROUPE_ASSIGN_OR_RETURN(float* const dru_bar, arguments.Allocate(3, Shape({s.batch, 2 * cells})));
  const float *h_prev = arguments.in(1), *r = arguments.in(6), *u = arguments.in(7);
  const float *c = arguments.in(8), *dh = arguments.in(9);
  for (int64_t i = 0; i < s.states(); ++i) {
    dc_bar[i] = dh[i] * (1 - u[i]) * (1 - c[i] * c[i]);
  }
  // Of x and h_prev * r.
  TROUPE_ASSIGN_OR_RETURN(Tensor dx_hr,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, rows})));
  TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {dc_bar, s.batch, cells},
                                          {arguments.in(3), rows, cells, /*transposed=*/true},
                                          dx_hr.mutable_data<float>()));
  const auto dhr = [&](int64_t b) { return dx_hr.unchecked_data<float>() + b * rows + s.inputs; };
  for (int64_t b = 0; b < s.batch; ++b) {
    float* row = dru_bar + b * 2 * cells;
    for (int64_t i = 0, at = b * cells; i < cells; ++i, ++at) {
      row[i] = dhr(b)[i] * h_prev[at] * r[at] * (1 - r[at]);
      row[cells + i] = dh[at] * (h_prev[at] - c[at]) * u[at] * (1 - u[at]);
    }
  }
  // Of x and h_prev, by way of r and u.
  TROUPE_ASSIGN_OR_RETURN(Tensor dx_h,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, rows})));
  TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {dru_bar, s.batch, 2 * cells},
                                          {arguments.in(2), rows, 2 * cells, /*transposed=*/true},
                                          dx_h.mutable_data<float>()));
  for (int64_t b = 0; b < s.batch; ++b) {
    const float* by_gates = dx_h.unchecked_data<float>() + b * rows;
    for (int64_t i = 0; i < s.inputs; ++i) {
      dx[b * s.inputs + i] = by_gates[i] + (dhr(b) - s.inputs)[i];
    }
    for (int64_t i = 0, at = b * cells; i < cells; ++i, ++at) {
      dh_prev[at] = by_gates[s.inputs + i] + dhr(b)[i] * r[at] + dh[at] * u[at];
    }
  }
  return absl::OkStatus();
}

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T", {ElementType::kFloat}).Cost(KernelCost::kExpensive);
}
REGISTER_KERNEL(Spec("GRUBlockCell"), MakeKernel<GruBlockCell>);
REGISTER_KERNEL(Spec("GRUBlockCellGrad"), MakeKernel<GruBlockCellGrad>);

}  // namespace
}  // namespace troupe
