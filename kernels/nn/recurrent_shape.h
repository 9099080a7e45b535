/// Attributes and shapes of recurrent cells.
#ifndef TROUPE_KERNELS_NN_RECURRENT_SHAPE_H_
#define TROUPE_KERNELS_NN_RECURRENT_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// InvalidArgument, which names the input, unless input `i` has the shape `want`.
absl::Status CheckInputShape(const KernelContext& ctx, int i, const char* name, const Shape& want);

struct LstmShape {
  int64_t steps = 1, batch = 0, inputs = 0, cells = 0;

  int64_t states() const { return batch * cells; }  ///< Of a step.
};

/// Where the gates are among the columns of w, in units of the number of cells.
struct GateOrder {
  int input = 0, cell = 1, forget = 2, output = 3;
};

struct LstmAttrs {
  explicit LstmAttrs(const KernelConstruction& construction);

  GateOrder order;
  bool use_peephole = false;
  float forget_bias = 0, cell_clip = 0;
};

/// For inputs x, cs_prev, h_prev, w, wci, wcf, wco, b from number `x` on; x is [batch, inputs], or,
/// if `has_steps`, [steps, batch, inputs]. InvalidArgument if they do not fit.
absl::StatusOr<LstmShape> CheckLstm(const KernelContext& ctx, int x, bool has_steps);
/// The same for the gradient of one step, whose inputs from number 8 on are i, cs, f, o, ci, co,
/// cs_grad, h_grad; or, with `has_steps`, from number 9 on, i, cs, f, o, ci, co, h, cs_grad,
/// h_grad.
absl::StatusOr<LstmShape> CheckLstmGrad(const KernelContext& ctx, bool has_steps);
/// How many of the steps of x count: input 0, on the host.
absl::StatusOr<int64_t> ReadLstmLength(const KernelContext& ctx, const LstmShape& s);

struct GruShape {
  int64_t batch = 0, inputs = 0, cells = 0;

  int64_t states() const { return batch * cells; }
};
/// For inputs x, h_prev, w_ru, w_c, b_ru, b_c, then, in the gradient, r, u, c and d_h.
absl::StatusOr<GruShape> CheckGru(const KernelContext& ctx);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_RECURRENT_SHAPE_H_
