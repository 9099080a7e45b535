// LSTMBlockCell, BlockLSTM, BlockLSTMV2, GRUBlockCell and their gradients of GPUs: products by
// cuBLASLt, and one launch for all gates of a step. What does not depend on the step before is one
// product for all steps.
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/array/layout_engine.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/reduce_tensor.h"
#include "kernels/nn/recurrent_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a recurrent cell";

/// A matrix in memory, row after row.
struct Matrix {
  const void* data;
  int64_t rows, columns;
  bool transposed = false;  ///< Stands for its transpose.
};

/// out = a * b.
absl::Status MultiplyMatrices(KernelContext& ctx, ElementType type, const Matrix& a,
                              const Matrix& b, void* out) {
  const auto factor = [](const Matrix& matrix) {
    return Factor{matrix.data, 0,
                  matrix.transposed ? Transposition::kTransposed : Transposition::kNone};
  };
  Product p;
  p.type = type;
  p.m = a.transposed ? a.columns : a.rows;
  p.k = a.transposed ? a.rows : a.columns;
  p.n = b.transposed ? b.rows : b.columns;
  if (p.m == 0 || p.n == 0) return absl::OkStatus();
  if (p.k == 0) {
    ZeroElements(ctx, type, out, p.m * p.n);
    return absl::OkStatus();
  }
  p.a = factor(a);
  p.b = factor(b);
  p.c = out;
  return Multiply(ctx, p);
}

class LstmKernel : public Kernel {
 protected:
  LstmKernel(KernelConstruction& construction, absl::Status* status)
      : attrs_(construction), has_steps_(construction.op().substr(0, 5) == "Block") {
    *status = OpenCublas();
  }

  int x() const { return has_steps_ ? 1 : 0; }
  absl::StatusOr<int64_t> ReadLength(const KernelContext& ctx, const LstmShape& s) const {
    if (!has_steps_) return 1;
    return ReadLstmLength(ctx, s);
  }

  absl::StatusOr<LstmCell> CellOf(const KernelContext& ctx, const LstmShape& s) const {
    TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(ctx.input(x()).type()));
    LstmCell cell{type,
                  s.batch,
                  s.cells,
                  attrs_.order.input,
                  attrs_.order.cell,
                  attrs_.order.forget,
                  attrs_.order.output,
                  attrs_.use_peephole,
                  attrs_.forget_bias,
                  attrs_.cell_clip};
    cell.wci = ctx.input(x() + 4).raw_data();
    cell.wcf = ctx.input(x() + 5).raw_data();
    cell.wco = ctx.input(x() + 6).raw_data();
    return cell;
  }

  /// The sums of all rows of [rows, 4, cells] in `gates`, with the states that belong to them.
  static absl::Status AddPeepholes(KernelContext& ctx, const LstmCell& cell,
                                   PeepholeGradients gradients) {
    const ReducePlan plan =
        PlanReduce({{gradients.steps * cell.batch, true}, {cell.cells, false}}, /*pack=*/1);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(ElementType::kUint8, Shape({plan.scratch * kPeepholeAccSize})));
    gradients.scratch = scratch.mutable_raw_data();
    return CudaStatus(LaunchPeepholeGradients(cell, gradients, plan, StreamOf(ctx)), kWhat);
  }

  const LstmAttrs attrs_;
  const bool has_steps_;
};

class LstmForwardKernel final : public LstmKernel {
 public:
  LstmForwardKernel(KernelConstruction& construction, absl::Status* status)
      : LstmKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstm(ctx, x(), has_steps_));
    TROUPE_ASSIGN_OR_RETURN(const int64_t length, ReadLength(ctx, s));
    const Tensor &input = ctx.input(x()), &w = ctx.input(x() + 3);
    const ElementType type = input.type();
    constexpr int kStates = 7;
    Tensor* out[kStates];  // i, cs, f, o, ci, co, h
    for (int i = 0; i < kStates; ++i) {
      TROUPE_ASSIGN_OR_RETURN(
          out[i], ctx.AllocateOutput(
                      i, type,
                      has_steps_ ? Shape({s.steps, s.batch, s.cells}) : Shape({s.batch, s.cells})));
      ZeroElements(ctx, type, ElementAt(type, out[i]->mutable_raw_data(), length * s.states()),
                   (s.steps - length) * s.states());
    }
    if (length * s.states() == 0) return absl::OkStatus();
    const int64_t gates = 4 * s.cells;
    TROUPE_ASSIGN_OR_RETURN(Tensor from_x,
                            ctx.AllocateTemp(type, Shape({length * s.batch, gates})));
    TROUPE_ASSIGN_OR_RETURN(Tensor from_h, ctx.AllocateTemp(type, Shape({s.batch, gates})));
    TROUPE_RETURN_IF_ERROR(
        MultiplyMatrices(ctx, type, {input.raw_data(), length * s.batch, s.inputs},
                         {w.raw_data(), s.inputs, gates}, from_x.mutable_raw_data()));
    const void* const w_h = ElementAt(type, w.raw_data(), s.inputs * gates);
    TROUPE_ASSIGN_OR_RETURN(const LstmCell cell, CellOf(ctx, s));
    LstmStep step{};
    step.from_h = from_h.raw_data();
    step.bias = ctx.input(x() + 7).raw_data();
    step.cs_prev = ctx.input(x() + 1).raw_data();
    const void* h_prev = ctx.input(x() + 2).raw_data();
    for (int64_t t = 0; t < length; ++t) {
      TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, type, {h_prev, s.batch, s.cells},
                                              {w_h, s.cells, gates}, from_h.mutable_raw_data()));
      step.from_x = ElementAt(type, from_x.raw_data(), t * s.batch * gates);
      void** const states[kStates] = {&step.i,  &step.cs, &step.f, &step.o,
                                      &step.ci, &step.co, &step.h};
      for (int i = 0; i < kStates; ++i) {
        *states[i] = ElementAt(type, out[i]->mutable_raw_data(), t * s.states());
      }
      TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchLstmStep(cell, step, StreamOf(ctx)), kWhat));
      step.cs_prev = step.cs;
      h_prev = step.h;
    }
    return absl::OkStatus();
  }
};

/// Inputs behind those of the cell: i, cs, f, o, ci, co, cs_grad, h_grad.
class LstmBlockCellGradKernel final : public LstmKernel {
 public:
  LstmBlockCellGradKernel(KernelConstruction& construction, absl::Status* status)
      : LstmKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstmGrad(ctx, /*has_steps=*/false));
    const ElementType type = ctx.input(0).type();
    const auto in = [&ctx](int i) { return ctx.input(i).raw_data(); };
    TROUPE_ASSIGN_OR_RETURN(Tensor * cs_prev_grad,
                            ctx.AllocateOutput(0, type, Shape({s.batch, s.cells})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * gates,
                            ctx.AllocateOutput(1, type, Shape({s.batch, 4 * s.cells})));
    Tensor* peepholes[3];
    for (int i = 0; i < 3; ++i) {
      TROUPE_ASSIGN_OR_RETURN(peepholes[i], ctx.AllocateOutput(2 + i, type, Shape({s.cells})));
      ZeroElements(ctx, type, peepholes[i]->mutable_raw_data(), s.cells);
    }
    if (s.states() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const LstmCell cell, CellOf(ctx, s));
    LstmStepBack step{in(8), in(10), in(11), in(12), in(13), in(1), in(14), in(15)};
    step.gates = gates->mutable_raw_data();
    step.cs_prev_grad = cs_prev_grad->mutable_raw_data();
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchLstmStepBack(cell, step, StreamOf(ctx)), kWhat));
    if (!attrs_.use_peephole) return absl::OkStatus();
    return AddPeepholes(ctx, cell,
                        {1, step.gates, in(9), in(1), peepholes[0]->mutable_raw_data(),
                         peepholes[1]->mutable_raw_data(), peepholes[2]->mutable_raw_data()});
  }
};

/// Inputs: seq_len_max, those of the cell, i, cs, f, o, ci, co, h, cs_grad, h_grad.
class BlockLstmGradKernel final : public LstmKernel {
 public:
  BlockLstmGradKernel(KernelConstruction& construction, absl::Status* status)
      : LstmKernel(construction, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const LstmShape s, CheckLstmGrad(ctx, /*has_steps=*/true));
    TROUPE_ASSIGN_OR_RETURN(const int64_t length, ReadLstmLength(ctx, s));
    const ElementType type = ctx.input(1).type();
    void* out[8];  // x, cs_prev, h_prev, w, wci, wcf, wco, b
    for (int i = 0; i < 8; ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * made, ctx.AllocateOutput(i, type, ctx.input(1 + i).shape()));
      out[i] = made->mutable_raw_data();
      ZeroElements(ctx, type, out[i], made->num_elements());
    }
    const int64_t gates = 4 * s.cells, rows = length * s.batch;
    if (rows * s.cells == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor gate_grads, ctx.AllocateTemp(type, Shape({rows, gates})));
    TROUPE_RETURN_IF_ERROR(GoBack(ctx, s, length, out, &gate_grads));

    const Matrix gate_grad{gate_grads.raw_data(), rows, gates};
    TROUPE_RETURN_IF_ERROR(
        MultiplyMatrices(ctx, type, gate_grad,
                         {ctx.input(4).raw_data(), s.inputs, gates, /*transposed=*/true}, out[0]));
    TROUPE_RETURN_IF_ERROR(
        MultiplyMatrices(ctx, type, {ctx.input(1).raw_data(), rows, s.inputs, /*transposed=*/true},
                         gate_grad, out[3]));
    TROUPE_ASSIGN_OR_RETURN(const Tensor h_prev, OutputsBefore(ctx, s, length));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, type,
                                            {h_prev.raw_data(), rows, s.cells, /*transposed=*/true},
                                            gate_grad, ElementAt(type, out[3], s.inputs * gates)));
    return EnqueueReduce(ctx, ReduceOp::kSum, gate_grads, {{rows, true}, {gates, false}}, 1,
                         &ctx.output(7));
  }

 private:
  /// The gradients of all gates, and, in `out`, of the first states and of the peepholes.
  absl::Status GoBack(KernelContext& ctx, const LstmShape& s, int64_t length, void* const out[],
                      Tensor* gate_grads) const {
    const ElementType type = gate_grads->type();
    TROUPE_ASSIGN_OR_RETURN(const LstmCell cell, CellOf(ctx, s));
    const void* const w_h = ElementAt(type, ctx.input(4).raw_data(), s.inputs * 4 * s.cells);
    for (int64_t t = length - 1; t >= 0; --t) {
      const auto of_step = [&](int i) {
        return ElementAt(type, ctx.input(i).raw_data(), t * s.states());
      };
      LstmStepBack step{of_step(9), of_step(11), of_step(12), of_step(13), of_step(14)};
      step.cs_prev = t > 0 ? ElementAt(type, ctx.input(10).raw_data(), (t - 1) * s.states())
                           : ctx.input(2).raw_data();
      step.cs_grad = of_step(16);
      step.h_grad = of_step(17);
      if (t + 1 < length) {
        step.later_cs_grad = out[1];
        step.later_h_grad = out[2];
      }
      step.gates = ElementAt(type, gate_grads->mutable_raw_data(), 4 * t * s.states());
      step.cs_prev_grad = out[1];
      TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchLstmStepBack(cell, step, StreamOf(ctx)), kWhat));
      TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, type, {step.gates, s.batch, 4 * s.cells},
                                              {w_h, s.cells, 4 * s.cells, /*transposed=*/true},
                                              out[2]));
    }
    if (!attrs_.use_peephole) return absl::OkStatus();
    return AddPeepholes(ctx, cell,
                        {length, gate_grads->raw_data(), ctx.input(10).raw_data(),
                         ctx.input(2).raw_data(), out[4], out[5], out[6]});
  }

  /// What each step got from the one before it, [length * batch, cells].
  static absl::StatusOr<Tensor> OutputsBefore(KernelContext& ctx, const LstmShape& s,
                                              int64_t length) {
    const Tensor &first = ctx.input(3), &h = ctx.input(15);
    TROUPE_ASSIGN_OR_RETURN(Tensor before,
                            ctx.AllocateTemp(h.type(), Shape({length * s.batch, s.cells})));
    const auto copy = [&](int64_t at, const void* from, int64_t elements) {
      return CudaStatus(cudaMemcpyAsync(ElementAt(h.type(), before.mutable_raw_data(), at), from,
                                        elements * ElementSize(h.type()), cudaMemcpyDeviceToDevice,
                                        StreamOf(ctx)),
                        "copying states");
    };
    TROUPE_RETURN_IF_ERROR(copy(0, first.raw_data(), s.states()));
    if (length > 1) {
      TROUPE_RETURN_IF_ERROR(copy(s.states(), h.raw_data(), (length - 1) * s.states()));
    }
    return before;
  }
};

/// x beside a state: rows of inputs + cells.
absl::StatusOr<Tensor> BesideInput(KernelContext& ctx, const GruShape& s, const void* state) {
  const int64_t width = s.inputs + s.cells;
  TROUPE_ASSIGN_OR_RETURN(Tensor both,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, width})));
  const Columns<const void> parts[] = {{ctx.input(0).raw_data(), 0, s.inputs},
                                       {state, s.inputs, s.cells}};
  JoinColumns(ctx, ElementType::kFloat, s.batch, width, both.mutable_raw_data(), parts);
  return both;
}

class GruKernel final : public Kernel {
 public:
  GruKernel(KernelConstruction&, absl::Status* status) { *status = OpenCublas(); }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const GruShape s, CheckGru(ctx));
    float* out[4];  // r, u, c, h
    for (int i = 0; i < 4; ++i) {
      TROUPE_ASSIGN_OR_RETURN(
          Tensor * made, ctx.AllocateOutput(i, ElementType::kFloat, Shape({s.batch, s.cells})));
      out[i] = made->mutable_data<float>();
    }
    if (s.states() == 0) return absl::OkStatus();
    const auto in = [&ctx](int i) { return ctx.input(i).unchecked_data<float>(); };
    const int64_t rows = s.inputs + s.cells;
    const GruCell cell{s.batch, s.inputs, s.cells};
    TROUPE_ASSIGN_OR_RETURN(Tensor x_h, BesideInput(ctx, s, in(1)));
    TROUPE_ASSIGN_OR_RETURN(Tensor ru,
                            ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, 2 * s.cells})));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, ElementType::kFloat,
                                            {x_h.raw_data(), s.batch, rows},
                                            {in(2), rows, 2 * s.cells}, ru.mutable_raw_data()));
    // The product has been enqueued: h_prev * r may take the place of h_prev.
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchGruGates(cell, ru.unchecked_data<float>(), in(4), in(1), out[0], out[1],
                                  x_h.mutable_data<float>(), StreamOf(ctx)),
                   kWhat));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(
        ctx, ElementType::kFloat, {x_h.raw_data(), s.batch, rows}, {in(3), rows, s.cells}, out[2]));
    return CudaStatus(LaunchGruState(cell, in(5), in(1), out[1], out[2], out[3], StreamOf(ctx)),
                      kWhat);
  }
};

class GruGradKernel final : public Kernel {
 public:
  GruGradKernel(KernelConstruction&, absl::Status* status) { *status = OpenCublas(); }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const GruShape s, CheckGru(ctx));
    const int64_t rows = s.inputs + s.cells;
    const int64_t columns[4] = {s.inputs, s.cells, s.cells, 2 * s.cells};
    float* out[4];  // dx, dh_prev, dc_bar, dru_bar
    for (int i = 0; i < 4; ++i) {
      TROUPE_ASSIGN_OR_RETURN(
          Tensor * made, ctx.AllocateOutput(i, ElementType::kFloat, Shape({s.batch, columns[i]})));
      out[i] = made->mutable_data<float>();
    }
    if (s.batch == 0) return absl::OkStatus();
    const auto in = [&ctx](int i) { return ctx.input(i).unchecked_data<float>(); };
    TROUPE_ASSIGN_OR_RETURN(Tensor dx_hr,
                            ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, rows})));
    TROUPE_ASSIGN_OR_RETURN(Tensor dx_h,
                            ctx.AllocateTemp(ElementType::kFloat, Shape({s.batch, rows})));
    const GruCell cell{s.batch, s.inputs, s.cells};
    const GruGradients g{in(1),
                         in(6),
                         in(7),
                         in(8),
                         in(9),
                         dx_hr.unchecked_data<float>(),
                         dx_h.unchecked_data<float>(),
                         out[2],
                         out[3],
                         out[0],
                         out[1]};
    const cudaStream_t stream = StreamOf(ctx);
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchGruCGradient(cell, g, stream), kWhat));
    TROUPE_RETURN_IF_ERROR(MultiplyMatrices(ctx, ElementType::kFloat, {out[2], s.batch, s.cells},
                                            {in(3), rows, s.cells, /*transposed=*/true},
                                            dx_hr.mutable_raw_data()));
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchGruGateGradients(cell, g, stream), kWhat));
    TROUPE_RETURN_IF_ERROR(
        MultiplyMatrices(ctx, ElementType::kFloat, {out[3], s.batch, 2 * s.cells},
                         {in(2), rows, 2 * s.cells, /*transposed=*/true}, dx_h.mutable_raw_data()));
    return CudaStatus(LaunchGruInputGradients(cell, g, stream), kWhat);
  }
};

}  // namespace

void RegisterRecurrent(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("T", {ElementType::kHalf, ElementType::kFloat})
        .Cost(KernelCost::kExpensive);
  };
  extension.Kernel(spec("LSTMBlockCell"), MakeKernel<LstmForwardKernel>);
  extension.Kernel(spec("LSTMBlockCellGrad"), MakeKernel<LstmBlockCellGradKernel>);
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"}) {
    extension.Kernel(spec(op).HostMemory("seq_len_max"), MakeKernel<LstmForwardKernel>);
  }
  for (const char* op : {"BlockLSTMGrad", "BlockLSTMGradV2"}) {
    extension.Kernel(spec(op).HostMemory("seq_len_max"), MakeKernel<BlockLstmGradKernel>);
  }
  const auto gru = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("T", {ElementType::kFloat})
        .Cost(KernelCost::kExpensive);
  };
  extension.Kernel(gru("GRUBlockCell"), MakeKernel<GruKernel>);
  extension.Kernel(gru("GRUBlockCellGrad"), MakeKernel<GruGradKernel>);
}

}  // namespace troupe::cuda
