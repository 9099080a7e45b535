// A thread for each cell of each row of the batch.
#include "kernels/cuda/recurrent.h"

#include "kernels/cuda/division.cuh"
#include "kernels/cuda/reduce.cuh"

namespace troupe::cuda {
namespace {

__device__ float Sigmoid(float x) { return 1 / (1 + exp(-x)); }

/// Element i of an array of T as a float.
template <typename T>
__device__ float At(const void* from, int64_t i) {
  return static_cast<float>(static_cast<const T*>(from)[i]);
}
template <typename T>
__device__ void Put(void* to, int64_t i, float value) {
  static_cast<T*>(to)[i] = static_cast<T>(value);
}

/// The rows and columns of matrices [rows, columns], of which element i is taken.
struct Columns {
  Columns(int64_t rows, int64_t columns) : by(columns), small(IsSmall(rows * columns)) {}

  __device__ int64_t RowOf(int64_t i, int64_t* column) const {
    return small ? by.template Divide<true>(i, column) : by.template Divide<false>(i, column);
  }

  Divisor by;
  bool small;
};

template <typename T>
struct StepForward {
  __device__ void operator()(int64_t at) const {
    int64_t c;
    const int64_t row = columns.RowOf(at, &c);
    const auto gate = [&](int number) {
      const int64_t column = number * cell.cells + c, i = row * 4 * cell.cells + column;
      return At<T>(step.from_x, i) + At<T>(step.from_h, i) + At<T>(step.bias, column);
    };
    const auto peephole = [&](const void* weights, float state) {
      return cell.use_peephole ? At<T>(weights, c) * state : 0.0f;
    };
    const float last = At<T>(step.cs_prev, at);
    const float i = Sigmoid(gate(cell.input) + peephole(cell.wci, last));
    const float f = Sigmoid(gate(cell.forget) + cell.forget_bias + peephole(cell.wcf, last));
    const float ci = tanh(gate(cell.cell));
    float cs = ci * i + last * f;
    if (cell.cell_clip > 0) {
      cs = cs < -cell.cell_clip ? -cell.cell_clip : cell.cell_clip < cs ? cell.cell_clip : cs;
    }
    const float o = Sigmoid(gate(cell.output) + peephole(cell.wco, cs));
    const float co = tanh(cs);
    Put<T>(step.i, at, i);
    Put<T>(step.cs, at, cs);
    Put<T>(step.f, at, f);
    Put<T>(step.o, at, o);
    Put<T>(step.ci, at, ci);
    Put<T>(step.co, at, co);
    Put<T>(step.h, at, o * co);
  }

  LstmCell cell;
  LstmStep step;
  Columns columns;
};

template <typename T>
struct StepBack {
  __device__ void operator()(int64_t at) const {
    int64_t c;
    const int64_t row = columns.RowOf(at, &c);
    const float i = At<T>(step.i, at), f = At<T>(step.f, at), o = At<T>(step.o, at);
    const float ci = At<T>(step.ci, at), co = At<T>(step.co, at);
    float dh = At<T>(step.h_grad, at), dcs = At<T>(step.cs_grad, at);
    if (step.later_h_grad != nullptr) dh += At<T>(step.later_h_grad, at);
    if (step.later_cs_grad != nullptr) dcs += At<T>(step.later_cs_grad, at);
    const float go = o * (1 - o) * dh * co;
    dcs += (1 - co * co) * dh * o;
    if (cell.use_peephole) dcs += go * At<T>(cell.wco, c);
    const float gi = i * (1 - i) * dcs * ci;
    const float gf = f * (1 - f) * dcs * At<T>(step.cs_prev, at);
    const float gc = (1 - ci * ci) * dcs * i;
    float before = dcs * f;
    if (cell.use_peephole) before += gi * At<T>(cell.wci, c) + gf * At<T>(cell.wcf, c);
    const auto put = [&](int number, float gradient) {
      Put<T>(step.gates, (row * 4 + number) * cell.cells + c, gradient);
    };
    put(cell.input, gi);
    put(cell.forget, gf);
    put(cell.cell, gc);
    put(cell.output, go);
    Put<T>(step.cs_prev_grad, at, before);
  }

  LstmCell cell;
  LstmStepBack step;
  Columns columns;
};

/// Sums of rows of products of gates' gradients and cell states.
template <typename T>
struct PeepholeReducer {
  struct alignas(kPeepholeAccSize) Acc {
    float input, forget, output;
  };
  static constexpr int kPack = 1;
  struct Nothing {};

  __device__ Acc Identity() const { return {0, 0, 0}; }
  __device__ Acc Join(Acc a, Acc b) const {
    return {a.input + b.input, a.forget + b.forget, a.output + b.output};
  }
  template <int kN>
  __device__ Nothing Load(int64_t) const {
    return {};
  }
  __device__ Acc Of(Nothing, int, int64_t r, int64_t c) const {
    const auto gate = [&](int number) {
      return At<T>(gradients.gates, (r * 4 + number) * cell.cells + c);
    };
    const float now = At<T>(gradients.cs, r * cell.cells + c);
    const float last = r < cell.batch ? At<T>(gradients.first_cs_prev, r * cell.cells + c)
                                      : At<T>(gradients.cs, (r - cell.batch) * cell.cells + c);
    return {gate(cell.input) * last, gate(cell.forget) * last, gate(cell.output) * now};
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    for (int k = 0; k < kN; ++k) {
      Put<T>(gradients.wci, index + k, accs[k].input);
      Put<T>(gradients.wcf, index + k, accs[k].forget);
      Put<T>(gradients.wco, index + k, accs[k].output);
    }
  }

  LstmCell cell;
  PeepholeGradients gradients;
};

struct GruGates {
  __device__ void operator()(int64_t at) const {
    int64_t c;
    const int64_t row = columns.RowOf(at, &c);
    const float* const gates = ru + row * 2 * cell.cells + c;
    const float reset = Sigmoid(gates[0] + b_ru[c]);
    r[at] = reset;
    u[at] = Sigmoid(gates[cell.cells] + b_ru[cell.cells + c]);
    x_hr[row * (cell.inputs + cell.cells) + cell.inputs + c] = h_prev[at] * reset;
  }
  GruCell cell;
  Columns columns;
  const float *ru, *b_ru, *h_prev;
  float *r, *u, *x_hr;
};

struct GruState {
  __device__ void operator()(int64_t at) const {
    int64_t column;
    columns.RowOf(at, &column);
    const float state = tanh(c[at] + b_c[column]);
    c[at] = state;
    h[at] = (1 - u[at]) * state + u[at] * h_prev[at];
  }
  Columns columns;
  const float *b_c, *h_prev, *u;
  float *c, *h;
};

struct GruCGradient {
  __device__ void operator()(int64_t at) const {
    g.dc_bar[at] = g.dh[at] * (1 - g.u[at]) * (1 - g.c[at] * g.c[at]);
  }
  GruGradients g;
};

struct GruGateGradients {
  __device__ void operator()(int64_t at) const {
    int64_t c;
    const int64_t row = columns.RowOf(at, &c);
    const float dhr = g.dx_hr[row * (cell.inputs + cell.cells) + cell.inputs + c];
    const float r = g.r[at], u = g.u[at], h_prev = g.h_prev[at];
    float* const to = g.dru_bar + row * 2 * cell.cells + c;
    to[0] = dhr * h_prev * r * (1 - r);
    to[cell.cells] = g.dh[at] * (h_prev - g.c[at]) * u * (1 - u);
  }
  GruCell cell;
  Columns columns;
  GruGradients g;
};

/// Of x and h_prev side by side.
struct GruInputGradients {
  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = columns.RowOf(i, &column);
    if (column < cell.inputs) {
      g.dx[row * cell.inputs + column] = g.dx_h[i] + g.dx_hr[i];
      return;
    }
    const int64_t at = row * cell.cells + column - cell.inputs;
    g.dh_prev[at] = g.dx_h[i] + g.dx_hr[i] * g.r[at] + g.dh[at] * g.u[at];
  }
  GruCell cell;
  Columns columns;
  GruGradients g;
};

template <typename Fn>
cudaError_t VisitLstm(Number type, Fn fn) {
  if (type == Number::kHalf) return fn(TypeTag<__half>());
  if (type == Number::kFloat) return fn(TypeTag<float>());
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t LaunchLstmStep(const LstmCell& cell, const LstmStep& step, cudaStream_t stream) {
  return VisitLstm(cell.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(cell.batch * cell.cells, stream,
                   StepForward<T>{cell, step, Columns(cell.batch, cell.cells)});
  });
}

cudaError_t LaunchLstmStepBack(const LstmCell& cell, const LstmStepBack& step,
                               cudaStream_t stream) {
  return VisitLstm(cell.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(cell.batch * cell.cells, stream,
                   StepBack<T>{cell, step, Columns(cell.batch, cell.cells)});
  });
}

cudaError_t LaunchPeepholeGradients(const LstmCell& cell, const PeepholeGradients& gradients,
                                    const ReducePlan& plan, cudaStream_t stream) {
  return VisitLstm(cell.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunReduce(PeepholeReducer<T>{cell, gradients}, plan, gradients.scratch, stream);
  });
}

cudaError_t LaunchGruGates(const GruCell& cell, const float* ru, const float* b_ru,
                           const float* h_prev, float* r, float* u, float* x_hr,
                           cudaStream_t stream) {
  return ForEach(cell.batch * cell.cells, stream,
                 GruGates{cell, Columns(cell.batch, cell.cells), ru, b_ru, h_prev, r, u, x_hr});
}

cudaError_t LaunchGruState(const GruCell& cell, const float* b_c, const float* h_prev,
                           const float* u, float* c, float* h, cudaStream_t stream) {
  return ForEach(cell.batch * cell.cells, stream,
                 GruState{Columns(cell.batch, cell.cells), b_c, h_prev, u, c, h});
}

cudaError_t LaunchGruCGradient(const GruCell& cell, const GruGradients& g, cudaStream_t stream) {
  return ForEach(cell.batch * cell.cells, stream, GruCGradient{g});
}

cudaError_t LaunchGruGateGradients(const GruCell& cell, const GruGradients& g,
                                   cudaStream_t stream) {
  return ForEach(cell.batch * cell.cells, stream,
                 GruGateGradients{cell, Columns(cell.batch, cell.cells), g});
}

cudaError_t LaunchGruInputGradients(const GruCell& cell, const GruGradients& g,
                                    cudaStream_t stream) {
  const int64_t width = cell.inputs + cell.cells;
  return ForEach(cell.batch * width, stream,
                 GruInputGradients{cell, Columns(cell.batch, width), g});
}

}  // namespace troupe::cuda
