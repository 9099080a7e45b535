/// What the steps of recurrent cells compute beside products of matrices, on CUDA.
#ifndef TROUPE_KERNELS_CUDA_RECURRENT_H_
#define TROUPE_KERNELS_CUDA_RECURRENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/cuda/reduce_plan.h"

namespace troupe::cuda {

// Matrices are row-major. Types are half and float; all that a call points at has its type. None
// of the sizes is 0.

/// The cells of an LSTM. Gates of a row of the batch, [4, cells], are in this order.
struct LstmCell {
  Number type;
  int64_t batch, cells;
  int input, cell, forget, output;
  bool use_peephole;
  float forget_bias, cell_clip;  ///< States are clipped if that is positive.
  const void *wci, *wcf, *wco;   ///< Of peepholes: [cells].
};

/// A step forward. Of [batch, cells]: the states.
struct LstmStep {
  const void *from_x, *from_h;  ///< What the products give: [batch, 4, cells].
  const void *bias, *cs_prev;   ///< The bias is [4, cells].
  void *i, *cs, *f, *o, *ci, *co, *h;
};
cudaError_t LaunchLstmStep(const LstmCell& cell, const LstmStep& step, cudaStream_t stream);

/// A step back: from the step's states, the gradients of its cell state and output that come from
/// outside, and those that come from the step after it (nullptr: there is none) to the gradients
/// of the gates, [batch, 4, cells], and of the cell state before. That may be `later_cs_grad`.
struct LstmStepBack {
  const void *i, *f, *o, *ci, *co, *cs_prev;
  const void *cs_grad, *h_grad, *later_cs_grad, *later_h_grad;
  void *gates, *cs_prev_grad;
};
cudaError_t LaunchLstmStepBack(const LstmCell& cell, const LstmStepBack& step, cudaStream_t stream);

/// The gradients of the peepholes' weights: sums over all rows of `steps` steps.
struct PeepholeGradients {
  int64_t steps;
  const void *gates, *cs, *first_cs_prev;
  void *wci, *wcf, *wco;
  void* scratch;  ///< For the plan, whose accumulators have kPeepholeAccSize bytes.
};
inline constexpr int64_t kPeepholeAccSize = 16;
/// The plan reduces [steps * batch, cells] to columns, an element at a time.
cudaError_t LaunchPeepholeGradients(const LstmCell& cell, const PeepholeGradients& gradients,
                                    const ReducePlan& plan, cudaStream_t stream);

/// A GRU cell of floats: r, u, c and h are [batch, cells], ru is [batch, 2, cells], and what has x
/// and a state side by side is [batch, inputs + cells].
struct GruCell {
  int64_t batch, inputs, cells;
};
/// r and u of what the product gives, and h_prev * r beside x.
cudaError_t LaunchGruGates(const GruCell& cell, const float* ru, const float* b_ru,
                           const float* h_prev, float* r, float* u, float* x_hr,
                           cudaStream_t stream);
/// c, in place of what the product gives, and h.
cudaError_t LaunchGruState(const GruCell& cell, const float* b_c, const float* h_prev,
                           const float* u, float* c, float* h, cudaStream_t stream);

struct GruGradients {
  const float *h_prev, *r, *u, *c, *dh;
  const float *dx_hr, *dx_h;  ///< What the products give, of x beside h_prev * r, and h_prev.
  float *dc_bar, *dru_bar, *dx, *dh_prev;
};
/// Of what c is made of; then, with dx_hr, of what r and u are; then, with dx_h, of x and h_prev.
cudaError_t LaunchGruCGradient(const GruCell& cell, const GruGradients& g, cudaStream_t stream);
cudaError_t LaunchGruGateGradients(const GruCell& cell, const GruGradients& g, cudaStream_t stream);
cudaError_t LaunchGruInputGradients(const GruCell& cell, const GruGradients& g,
                                    cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_RECURRENT_H_
