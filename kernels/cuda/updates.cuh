/// Kernels of optimisers' updates. `RunUpdate` is compiled for the rules in several files.
#ifndef TROUPE_KERNELS_CUDA_UPDATES_CUH_
#define TROUPE_KERNELS_CUDA_UPDATES_CUH_

#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/row_order.cuh"
#include "kernels/cuda/updates.h"
#include "kernels/simd/update_formulas.h"

namespace troupe {
namespace {

template <>
__device__ inline float Sqrt(float x) {
  return sqrtf(x);
}
template <>
__device__ inline double Sqrt(double x) {
  return sqrt(x);
}
/// The root with a real part that is not negative.
template <typename R>
__device__ cuda::Complex<R> ComplexRoot(cuda::Complex<R> z) {
  const R size = hypot(z.real, z.imag);
  if (size == 0) return {0, z.imag};
  const R root = sqrt((size + fabs(z.real)) / 2), other = fabs(z.imag) / (2 * root);
  const R real = z.real < 0 ? other : root, imag = z.real < 0 ? root : other;
  return {real, copysign(imag, z.imag)};
}
template <>
__device__ inline cuda::Complex<float> Sqrt(cuda::Complex<float> z) {
  return ComplexRoot(z);
}
template <>
__device__ inline cuda::Complex<double> Sqrt(cuda::Complex<double> z) {
  return ComplexRoot(z);
}
template <>
__device__ inline float Power(float x, float exponent) {
  return powf(x, exponent);
}
template <>
__device__ inline double Power(double x, double exponent) {
  return pow(x, exponent);
}
template <>
__device__ inline float Exp(float x) {
  return expf(x);
}
template <>
__device__ inline double Exp(double x) {
  return exp(x);
}

}  // namespace

namespace cuda {

/// Threads take several pieces each, for they all work out the rule's scalars.
inline constexpr unsigned kMostUpdateBlocks = 2048;

inline unsigned UpdateBlocks(int64_t pieces) { return std::min(Blocks(pieces), kMostUpdateBlocks); }

template <typename T>
struct Variables {
  const T* from[4];
  T* to[4];
};

__device__ inline bool IsMet(ScalarNeed need, double value) {
  switch (need) {
    case ScalarNeed::kPositive:
      return value > 0;
    case ScalarNeed::kNotNegative:
      return value >= 0;
    case ScalarNeed::kNotPositive:
      return value <= 0;
    default:
      return true;
  }
}

/// False if one is not what the rule demands.
template <typename T>
__device__ bool Read(const UpdateScalars& scalars, WideType<T>* values) {
  using N = WideType<T>;
  for (int i = 0; i < kMaxUpdateScalars; ++i) {
    values[i] = N(0);
    if (scalars.at[i] == nullptr) continue;
    if constexpr (std::is_floating_point_v<N>) {
      values[i] = scalars.integer[i] ? static_cast<N>(*static_cast<const int64_t*>(scalars.at[i]))
                                     : static_cast<N>(*static_cast<const T*>(scalars.at[i]));
      if (!IsMet(scalars.needs[i], values[i])) {
        const double value = values[i];
        int64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        if (blockIdx.x == 0 && threadIdx.x == 0) ReportLate(scalars.check, i, bits);
        return false;
      }
    } else {
      values[i] = *static_cast<const T*>(scalars.at[i]);
    }
  }
  return true;
}

template <typename Rule, typename N>
__device__ void Apply(const Rule& rule, N* x, N gradient) {
  if constexpr (Rule::kVariables == 1) rule(x[0], gradient);
  if constexpr (Rule::kVariables == 2) rule(x[0], x[1], gradient);
  if constexpr (Rule::kVariables == 3) rule(x[0], x[1], x[2], gradient);
  if constexpr (Rule::kVariables == 4) rule(x[0], x[1], x[2], x[3], gradient);
}

template <typename T>
struct alignas(16) UpdatePack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

template <typename Rule, typename T>
__global__ void __launch_bounds__(kThreads)
    Update(Variables<T> variables, const T* grad, UpdateScalars scalars, int64_t n, int64_t packs) {
  using N = WideType<T>;
  using Pack = UpdatePack<T>;
  constexpr int kVariables = Rule::kVariables;
  N values[kMaxUpdateScalars];
  if (!Read<T>(scalars, values)) return;
  const Rule rule(values);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += step) {
    Pack pack[kVariables];
    for (int v = 0; v < kVariables; ++v) {
      pack[v] = reinterpret_cast<const Pack*>(variables.from[v])[i];
    }
    const Pack gradient = reinterpret_cast<const Pack*>(grad)[i];
    for (int k = 0; k < Pack::kSize; ++k) {
      N x[kVariables];
      for (int v = 0; v < kVariables; ++v) x[v] = static_cast<N>(pack[v].values[k]);
      Apply(rule, x, static_cast<N>(gradient.values[k]));
      for (int v = 0; v < kVariables; ++v) pack[v].values[k] = static_cast<T>(x[v]);
    }
    for (int v = 0; v < kVariables; ++v) reinterpret_cast<Pack*>(variables.to[v])[i] = pack[v];
  }
  for (int64_t i = packs * Pack::kSize + first; i < n; i += step) {
    N x[kVariables];
    for (int v = 0; v < kVariables; ++v) x[v] = static_cast<N>(variables.from[v][i]);
    Apply(rule, x, static_cast<N>(grad[i]));
    for (int v = 0; v < kVariables; ++v) variables.to[v][i] = static_cast<T>(x[v]);
  }
}

/// A thread for each element of each row of the gradient: that of the first row of a slot applies
/// all of them.
template <typename Rule, typename T>
__global__ void __launch_bounds__(kThreads)
    UpdateRows(Variables<T> variables, const T* grad, UpdateScalars scalars, RowOrder order,
               Divisor inner, int64_t width) {
  using N = WideType<T>;
  constexpr int kVariables = Rule::kVariables;
  N values[kMaxUpdateScalars];
  if (!Read<T>(scalars, values)) return;
  const Rule rule(values);
  const int64_t step = int64_t{gridDim.x} * kThreads, n = order.rows * width;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t k = inner.template Divide<false>(i, &column), slot = FirstSlotAt(order, k);
    if (slot < 0) continue;
    const int64_t at = slot * width + column;
    N x[kVariables];
    for (int v = 0; v < kVariables; ++v) x[v] = static_cast<N>(variables.from[v][at]);
    for (int64_t next = k; next < order.rows; next = NextOf(order, slot, next)) {
      Apply(rule, x, static_cast<N>(grad[RowAt(order, next) * width + column]));
      // Numbers of 16 bits are rounded after each update, as in the variable.
      for (int v = 0; v < kVariables; ++v) x[v] = static_cast<N>(static_cast<T>(x[v]));
    }
    for (int v = 0; v < kVariables; ++v) variables.to[v][at] = static_cast<T>(x[v]);
  }
}

/// A call, dense or (`order`) of rows.
struct UpdateRun {
  const UpdateCall& call;
  int64_t n;  ///< Elements, or those of a row.
  const RowOrder* order;
  cudaStream_t stream;
};

/// kRows: the rule's ops have forms for rows, which are compiled, too.
template <typename Rule, typename T, bool kRows = true>
cudaError_t RunUpdate(const UpdateRun& run) {
  const UpdateCall& call = run.call;
  Variables<T> variables{};
  const T* const grad = static_cast<const T*>(call.grad);
  Unit unit;
  unit.Add(call.grad);
  for (int v = 0; v < Rule::kVariables; ++v) {
    variables.from[v] = static_cast<const T*>(call.from[v]);
    variables.to[v] = static_cast<T*>(call.to[v]);
    unit.Add(call.from[v]).Add(call.to[v]);
  }
  if constexpr (kRows) {
    if (run.order != nullptr) {
      return Launch(&UpdateRows<Rule, T>, UpdateBlocks(run.order->rows * run.n), kThreads,
                    run.stream, variables, grad, call.scalars, *run.order, Divisor(run.n), run.n);
    }
  }
  const int64_t packs = unit.bytes() == 16 ? run.n / UpdatePack<T>::kSize : 0;
  return Launch(&Update<Rule, T>, UpdateBlocks(packs > 0 ? packs : run.n), kThreads, run.stream,
                variables, grad, call.scalars, run.n, packs);
}

/// The rules that need no order among numbers, for all floating-point and complex types.
cudaError_t LaunchFieldUpdate(const UpdateRun& run);
/// The others, for floating-point types.
cudaError_t LaunchRealUpdate(const UpdateRun& run);
cudaError_t LaunchFtrl(const UpdateRun& run);

}  // namespace cuda
}  // namespace troupe

#endif  // TROUPE_KERNELS_CUDA_UPDATES_CUH_
