// LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients (Hochreiter and Schmidhuber, "Long
// Short-Term Memory", 1997; Gers, Schraudolph, Schmidhuber, "Learning Precise Timing with LSTM
// Recurrent Networks", 2002, for peepholes).
//
// What does not depend on the step before is computed for all steps by one matrix product.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/nn/recurrent.h"
#include "kernels/nn/recurrent_shape.h"
#include "kernels/simd/lstm.h"

namespace troupe {
namespace {

// The gates and states of a step, [batch, cells] each; their number is that of the output.
enum LstmState { kInput, kCellState, kForget, kOutput, kCellInput, kCellOutput, kHidden, kStates };

class LstmKernel : public Kernel {
 public:
  LstmKernel(KernelConstruction& construction, absl::Status* status) : attrs_(construction) {
    *status = absl::OkStatus();
  }

 protected:
  static absl::StatusOr<Tensor> Floats(KernelContext& ctx, int64_t rows, int64_t columns) {
    return ctx.AllocateTemp(ElementType::kFloat, Shape({rows, columns}));
  }

  const LstmAttrs attrs_;
};

// LSTMBlockCell, one step; BlockLSTM, many.
class LstmForwardKernel final : public LstmKernel {
 public:
  LstmForwardKernel(KernelConstruction& construction, absl::Status* status)
      : LstmKernel(construction, status), has_steps_(construction.op() != "LSTMBlockCell") {}

  absl::Status Compute(KernelContext& ctx) override {
    const int x = has_steps_ ? 1 : 0;
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstm(ctx, x, has_steps_));
    int64_t length = 1;
    if (has_steps_) {
      TROUPE_ASSIGN_OR_RETURN(length, ReadLstmLength(ctx, s));
    }
    TROUPE_ASSIGN_OR_RETURN(FloatArguments arguments, FloatArguments::Read(ctx, x));
    float* out[kStates];
    for (int i = 0; i < kStates; ++i) {
      TROUPE_ASSIGN_OR_RETURN(out[i],
                              arguments.Allocate(i, has_steps_ ? Shape({s.steps, s.batch, s.cells})
                                                               : Shape({s.batch, s.cells})));
      std::fill(out[i] + length * s.states(), out[i] + s.steps * s.states(), 0.0f);
    }
    const float* w = arguments.in(x + 3);
    const int64_t gates = 4 * s.cells;
    TROUPE_ASSIGN_OR_RETURN(Tensor from_x, Floats(ctx, length * s.batch, gates));
    TROUPE_ASSIGN_OR_RETURN(Tensor from_h, Floats(ctx, s.batch, gates));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {arguments.in(x), length * s.batch, s.inputs},
                                            {w, s.inputs, gates}, from_x.mutable_data<float>()));
    const float *cs_prev = arguments.in(x + 1), *h_prev = arguments.in(x + 2);
    for (int64_t t = 0; t < length; ++t) {
      TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {h_prev, s.batch, s.cells},
                                              {w + s.inputs * gates, s.cells, gates},
                                              from_h.mutable_data<float>()));
      Step(ctx, s, arguments, x, from_x.unchecked_data<float>() + t * s.batch * gates,
           from_h.unchecked_data<float>(), cs_prev, out);
      cs_prev = out[kCellState];
      h_prev = out[kHidden];
      for (float*& state : out) state += s.states();
    }
    arguments.Finish();
    return absl::OkStatus();
  }

 private:
  // The states of a step from the products of its input and of the last output with w.
  void Step(KernelContext& ctx, const LstmShape& s, const FloatArguments& arguments, int x,
            const float* from_x, const float* from_h, const float* cs_prev,
            float* const out[]) const {
    const float *wci = arguments.in(x + 4), *wcf = arguments.in(x + 5), *wco = arguments.in(x + 6);
    const float* bias = arguments.in(x + 7);
    const int64_t cells = s.cells;
    const auto row = [&](int64_t b) {
      const int64_t at = b * cells;
      const auto gate = [&](int number, float more, float* to) {
        const float *gx = from_x + (4 * b + number) * cells,
                    *gh = from_h + (4 * b + number) * cells;
        Lstm().gate(gx, gh, bias + number * cells, more, to, cells);
      };
      const auto peephole = [&](const float* weights, const float* state, float* to) {
        if (attrs_.use_peephole) Lstm().peephole(weights, state, to, cells);
      };
      float *i = out[kInput] + at, *f = out[kForget] + at, *ci = out[kCellInput] + at;
      float *o = out[kOutput] + at, *cs = out[kCellState] + at, *co = out[kCellOutput] + at;
      gate(attrs_.order.input, 0, i);
      gate(attrs_.order.forget, attrs_.forget_bias, f);
      gate(attrs_.order.cell, 0, ci);
      gate(attrs_.order.output, 0, o);
      peephole(wci, cs_prev + at, i);
      peephole(wcf, cs_prev + at, f);
      SigmoidInPlace(i, cells);
      SigmoidInPlace(f, cells);
      TanhInPlace(ci, cells);
      Lstm().cell(ci, i, cs_prev + at, f, attrs_.cell_clip, cs, cells);
      peephole(wco, cs, o);
      SigmoidInPlace(o, cells);
      std::copy_n(cs, cells, co);
      TanhInPlace(co, cells);
      Lstm().multiply(o, co, out[kHidden] + at, cells);
    };
    ctx.ParallelFor(s.batch, KernelContext::GrainFor(8.0 * static_cast<double>(cells)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) row(b);
                    });
  }

  const bool has_steps_;
};

class LstmGradKernel : public LstmKernel {
 public:
  using LstmKernel::LstmKernel;

 protected:
  // Sums of the gradients of the peepholes' weights.
  struct PeepholeGradients {
    float *input, *forget, *output;
  };

  // Goes back over one step: from its states, the last cell state and the gradients of its cell
  // state and output to the gradients of the gates, [batch, 4 * cells], and of the last cell state.
  // `cs_prev_grad` may be `cs_grad`.
  void StepBack(KernelContext& ctx, const LstmShape& s, const FloatArguments& arguments, int x,
                const float* const state[], const float* cs_prev, const float* cs_grad,
                const float* h_grad, float* gates, float* cs_prev_grad,
                const PeepholeGradients& peepholes) const {
    const float *wci = arguments.in(x + 4), *wcf = arguments.in(x + 5), *wco = arguments.in(x + 6);
    const int64_t cells = s.cells;
    const auto row = [&](int64_t b) {
      const int64_t at = b * cells;
      float* gate = gates + 4 * at;
      float *gi = gate + attrs_.order.input * cells, *gf = gate + attrs_.order.forget * cells;
      float *gc = gate + attrs_.order.cell * cells, *go = gate + attrs_.order.output * cells;
      for (int64_t c = 0; c < cells; ++c) {
        const float i = state[kInput][at + c], f = state[kForget][at + c];
        const float o = state[kOutput][at + c], ci = state[kCellInput][at + c];
        const float co = state[kCellOutput][at + c], dh = h_grad[at + c];
        go[c] = o * (1 - o) * dh * co;
        float dcs = (1 - co * co) * dh * o + cs_grad[at + c];
        if (attrs_.use_peephole) dcs += go[c] * wco[c];
        gi[c] = i * (1 - i) * dcs * ci;
        gf[c] = f * (1 - f) * dcs * cs_prev[at + c];
        gc[c] = (1 - ci * ci) * dcs * i;
        float before = dcs * f;
        if (attrs_.use_peephole) before += gi[c] * wci[c] + gf[c] * wcf[c];
        cs_prev_grad[at + c] = before;
      }
    };
    ctx.ParallelFor(s.batch, KernelContext::GrainFor(5.0 * static_cast<double>(cells)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) row(b);
                    });
    if (!attrs_.use_peephole) return;
    for (int64_t b = 0; b < s.batch; ++b) {
      const float *gate = gates + 4 * b * cells, *last = cs_prev + b * cells;
      const float* now = state[kCellState] + b * cells;
      for (int64_t c = 0; c < cells; ++c) {
        peepholes.input[c] += gate[attrs_.order.input * cells + c] * last[c];
        peepholes.forget[c] += gate[attrs_.order.forget * cells + c] * last[c];
        peepholes.output[c] += gate[attrs_.order.output * cells + c] * now[c];
      }
    }
  }
};

// Inputs behind those of the cell: i, cs, f, o, ci, co, cs_grad, h_grad.
class LstmBlockCellGradKernel final : public LstmGradKernel {
 public:
  using LstmGradKernel::LstmGradKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstmGrad(ctx, /*has_steps=*/false));
    const Shape states({s.batch, s.cells});
    TROUPE_ASSIGN_OR_RETURN(FloatArguments arguments, FloatArguments::Read(ctx, 0));
    TROUPE_ASSIGN_OR_RETURN(float* const cs_prev_grad, arguments.Allocate(0, states));
    TROUPE_ASSIGN_OR_RETURN(float* const gates,
                            arguments.Allocate(1, Shape({s.batch, 4 * s.cells})));
    float* peepholes[3];
    for (int i = 0; i < 3; ++i) {
      TROUPE_ASSIGN_OR_RETURN(peepholes[i], arguments.Allocate(2 + i, Shape({s.cells})));
      std::fill_n(peepholes[i], s.cells, 0.0f);
    }
    const float* state[kStates] = {};
    for (int i = 0; i < kHidden; ++i) state[i] = arguments.in(8 + i);
    StepBack(ctx, s, arguments, 0, state, arguments.in(1), arguments.in(14), arguments.in(15),
             gates, cs_prev_grad, {peepholes[0], peepholes[1], peepholes[2]});
    arguments.Finish();
    return absl::OkStatus();
  }
};

// Inputs: seq_len_max, those of the cell, i, cs, f, o, ci, co, h, cs_grad, h_grad.
class BlockLstmGradKernel final : public LstmGradKernel {
 public:
  using LstmGradKernel::LstmGradKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstmGrad(ctx, /*has_steps=*/true));
    TROUPE_ASSIGN_OR_RETURN(const int64_t length, ReadLstmLength(ctx, s));
    TROUPE_ASSIGN_OR_RETURN(FloatArguments arguments, FloatArguments::Read(ctx, 1));
    float* out[8];  // x, cs_prev, h_prev, w, wci, wcf, wco, b
    for (int i = 0; i < 8; ++i) {
      const Shape& shape = ctx.input(1 + i).shape();
      TROUPE_ASSIGN_OR_RETURN(out[i], arguments.Allocate(i, shape));
      std::fill_n(out[i], shape.num_elements(), 0.0f);
    }
    const int64_t gates = 4 * s.cells, rows = length * s.batch;
    TROUPE_ASSIGN_OR_RETURN(Tensor gate_grads, Floats(ctx, rows, gates));
    float* gate_grad = gate_grads.mutable_data<float>();
    TROUPE_RETURN_IF_ERROR(GoBack(ctx, s, arguments, length, out, gate_grad));

    const float *x = arguments.in(1), *w = arguments.in(4);
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {gate_grad, rows, gates},
                                            {w, s.inputs, gates, /*transposed=*/true}, out[0]));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {x, rows, s.inputs, /*transposed=*/true},
                                            {gate_grad, rows, gates}, out[3]));
    // What each step got from the one before it.
    TROUPE_ASSIGN_OR_RETURN(Tensor h_prevs, Floats(ctx, rows, s.cells));
    float* h_prev = h_prevs.mutable_data<float>();
    if (length > 0) {
      std::copy_n(arguments.in(3), s.states(), h_prev);
      std::copy_n(arguments.in(15), (length - 1) * s.states(), h_prev + s.states());
    }
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {h_prev, rows, s.cells, /*transposed=*/true},
                                            {gate_grad, rows, gates}, out[3] + s.inputs * gates));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t g = 0; g < gates; ++g) out[7][g] += gate_grad[row * gates + g];
    }
    arguments.Finish();
    return absl::OkStatus();
  }

 private:
  // The gradients of all gates, and, in `out`, of the first states and of the peepholes.
  absl::Status GoBack(KernelContext& ctx, const LstmShape& s, const FloatArguments& arguments,
                      int64_t length, float* const out[], float* gate_grads) const {
    const float* w_h = arguments.in(4) + s.inputs * 4 * s.cells;
    float *cs_prev_grad = out[1], *h_prev_grad = out[2];
    TROUPE_ASSIGN_OR_RETURN(Tensor h_grads, Floats(ctx, s.batch, s.cells));
    float* h_grad = h_grads.mutable_data<float>();
    for (int64_t t = length - 1; t >= 0; --t) {
      const int64_t at = t * s.states();
      const float* state[kStates];
      for (int i = 0; i < kStates; ++i) state[i] = arguments.in(9 + i) + at;
      const float *cs_grad = arguments.in(16) + at, *h_out_grad = arguments.in(17) + at;
      for (int64_t i = 0; i < s.states(); ++i) {
        cs_prev_grad[i] += cs_grad[i];
        h_grad[i] = h_prev_grad[i] + h_out_grad[i];
      }
      const float* cs_prev = t > 0 ? state[kCellState] - s.states() : arguments.in(2);
      float* gates = gate_grads + 4 * at;
      StepBack(ctx, s, arguments, 1, state, cs_prev, cs_prev_grad, h_grad, gates, cs_prev_grad,
               {out[4], out[5], out[6]});
      TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, {gates, s.batch, 4 * s.cells},
                                              {w_h, s.cells, 4 * s.cells, /*transposed=*/true},
                                              h_prev_grad));
    }
    return absl::OkStatus();
  }
};

KernelSpec Spec(const char* op) {
  return KernelSpec(op)
      .Types("T", {ElementType::kHalf, ElementType::kFloat})
      .Cost(KernelCost::kExpensive);
}
REGISTER_KERNELS(Spec("LSTMBlockCell"), MakeKernel<LstmForwardKernel>, "BlockLSTM", "BlockLSTMV2");
REGISTER_KERNEL(Spec("LSTMBlockCellGrad"), MakeKernel<LstmBlockCellGradKernel>);
REGISTER_KERNELS(Spec("BlockLSTMGrad"), MakeKernel<BlockLstmGradKernel>, "BlockLSTMGradV2");

}  // namespace
}  // namespace troupe
