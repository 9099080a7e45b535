#include "kernels/nn/recurrent_shape.h"

#include <string_view>

#include "kernels/common/integer_input.h"

namespace troupe {

absl::Status CheckInputShape(const KernelContext& ctx, int i, const char* name, const Shape& want) {
  const Shape& got = ctx.input(i).shape();
  if (got == want) return absl::OkStatus();
  return InvalidArgument(name, " has shape ", got.ToString(), ", expected ", want.ToString());
}

LstmAttrs::LstmAttrs(const KernelConstruction& construction)
    : use_peephole(construction.Attr<bool>("use_peephole")),
      forget_bias(construction.attrs().GetOr<float>("forget_bias", 0.0f)),
      cell_clip(construction.attrs().GetOr<float>("cell_clip", 0.0f)) {
  if (construction.op() == "BlockLSTMV2" || construction.op() == "BlockLSTMGradV2") {
    order = {.input = 0, .cell = 2, .forget = 1, .output = 3};
  }
}

absl::StatusOr<LstmShape> CheckLstm(const KernelContext& ctx, int x, bool has_steps) {
  const Shape &in = ctx.input(x).shape(), &state = ctx.input(x + 1).shape();
  const int rank = has_steps ? 3 : 2;
  if (in.rank() != rank || state.rank() != 2) {
    return InvalidArgument("x must be of rank ", rank, " and cs_prev of rank 2, got shapes ",
                           in.ToString(), " and ", state.ToString());
  }
  LstmShape s;
  if (has_steps) s.steps = in.dim(0);
  s.batch = in.dim(rank - 2);
  s.inputs = in.dim(rank - 1);
  s.cells = state.dim(1);
  int64_t gates = MultiplyWithoutOverflow(4, s.cells), rows = 0;
  if (gates < 0 || __builtin_add_overflow(s.inputs, s.cells, &rows) ||
      MultiplyWithoutOverflow(MultiplyWithoutOverflow(s.steps, s.batch), gates) < 0) {
    return InvalidArgument("a cell of shape ", state.ToString(), " is too large");
  }
  const Shape states({s.batch, s.cells}), peephole({s.cells});
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 1, "cs_prev", states));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 2, "h_prev", states));
  const Shape& w = ctx.input(x + 3).shape();
  if (w.rank() != 2 || w.dim(0) != rows || w.dim(1) != gates) {
    return InvalidArgument("w has shape ", w.ToString(), ", expected [", rows, ",", gates, "]");
  }
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 4, "wci", peephole));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 5, "wcf", peephole));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 6, "wco", peephole));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, x + 7, "b", Shape({gates})));
  return s;
}

absl::StatusOr<LstmShape> CheckLstmGrad(const KernelContext& ctx, bool has_steps) {
  TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstm(ctx, has_steps ? 1 : 0, has_steps));
  const Shape states = has_steps ? Shape({s.steps, s.batch, s.cells}) : Shape({s.batch, s.cells});
  int i = has_steps ? 9 : 8;
  for (const char* name : {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"}) {
    if (!has_steps && std::string_view(name) == "h") continue;
    TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, i++, name, states));
  }
  return s;
}

absl::StatusOr<int64_t> ReadLstmLength(const KernelContext& ctx, const LstmShape& s) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t length, ReadIntegerScalar(ctx.input(0), "seq_len_max"));
  if (length >= 0 && length <= s.steps) return length;
  return InvalidArgument("seq_len_max must be in [0, ", s.steps, "], got ", length);
}

absl::StatusOr<GruShape> CheckGru(const KernelContext& ctx) {
  const Shape &x = ctx.input(0).shape(), &h = ctx.input(1).shape();
  if (x.rank() != 2 || h.rank() != 2) {
    return InvalidArgument("x and h_prev must be of rank 2, got shapes ", x.ToString(), " and ",
                           h.ToString());
  }
  const GruShape s{x.dim(0), x.dim(1), h.dim(1)};
  int64_t rows = 0;
  if (__builtin_add_overflow(s.inputs, s.cells, &rows) ||
      MultiplyWithoutOverflow(rows, MultiplyWithoutOverflow(s.cells, 2)) < 0) {
    return InvalidArgument("a cell of shape ", h.ToString(), " is too large");
  }
  const Shape states({s.batch, s.cells});
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, 1, "h_prev", states));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, 2, "w_ru", Shape({rows, 2 * s.cells})));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, 3, "w_c", Shape({rows, s.cells})));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, 4, "b_ru", Shape({2 * s.cells})));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, 5, "b_c", Shape({s.cells})));
  const char* names[] = {"r", "u", "c", "d_h"};
  for (int i = 6; i < ctx.num_inputs(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckInputShape(ctx, i, names[i - 6], states));
  }
  return s;
}

}  // namespace troupe
