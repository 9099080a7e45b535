/// Householder reflections of a matrix by a block, as Eigen has them: the same signs.
#ifndef TROUPE_KERNELS_CUDA_HOUSEHOLDER_CUH_
#define TROUPE_KERNELS_CUDA_HOUSEHOLDER_CUH_

#include "kernels/cuda/matrix.cuh"

namespace troupe::cuda {

template <typename T>
__device__ RealType<T> SquareOf(T x) {
  if constexpr (kIsComplex<T>) {
    return x.real * x.real + x.imag * x.imag;
  } else {
    return x * x;
  }
}

/// The square of the imaginary part.
template <typename T>
__device__ RealType<T> ImaginarySquare(T x) {
  if constexpr (kIsComplex<T>) {
    return x.imag * x.imag;
  } else {
    return 0;
  }
}

/// What threads of a block have in common.
template <typename T>
struct HouseholderMemory {
  RealType<T> of_warps[kWarps];
  T sums[kThreads];
};

/// x = (I - tau v adjoint(v)) x for the columns [from, columns) of x, which has m rows. v has zeros
/// above its element k, which is 1; those below are v[i * step].
template <typename T>
__device__ void Reflect(T* x, int64_t m, int64_t columns, int64_t from, const T* v, int64_t step,
                        int64_t k, T tau, HouseholderMemory<T>* memory) {
  // A lane has a column; warps share the rows.
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (int64_t begin = from; begin < columns; begin += kWarp) {
    const int64_t c = begin + lane;
    const bool active = c < columns;
    T sum = active && warp == 0 ? x[k * columns + c] : FromReal<T>(0);
    for (int64_t i = k + 1 + warp; i < (active ? m : 0); i += warps) {
      sum = Sum(sum, Product(Conjugate(v[i * step]), x[i * columns + c]));
    }
    memory->sums[threadIdx.x] = sum;
    __syncthreads();
    sum = memory->sums[lane];
    for (int w = 1; w < warps; ++w) sum = Sum(sum, memory->sums[w * kWarp + lane]);
    const T factor = Product(tau, sum);
    if (active && warp == 0) x[k * columns + c] = x[k * columns + c] - factor;
    for (int64_t i = k + 1 + warp; i < (active ? m : 0); i += warps) {
      x[i * columns + c] = x[i * columns + c] - Product(v[i * step], factor);
    }
    __syncthreads();
  }
}

/// Replaces a [m, n] by r, and, below the diagonal, by what the reflections are made of; `taus` has
/// one number for each of them.
template <typename T>
__device__ void FactorQr(T* a, int64_t m, int64_t n, T* taus, HouseholderMemory<T>* memory) {
  using R = RealType<T>;
  const R least = std::is_same_v<R, float> ? R(0x1p-126) : R(0x1p-1022);
  for (int64_t k = 0; k < (m < n ? m : n); ++k) {
    R square = 0;
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += blockDim.x) square += SquareOf(a[i * n + k]);
    square = JoinGroup(square, static_cast<int>(blockDim.x), memory->of_warps,
                       [](R x, R y) { return x + y; });
    const T first = a[k * n + k];
    const R real = RealPart(first);
    const bool flat = square <= least && ImaginarySquare(first) <= least;
    R beta = real;
    T tau = FromReal<T>(0), divisor = FromReal<T>(1);
    if (!flat) {
      beta = sqrt(SquareOf(first) + square);
      if (real >= 0) beta = -beta;
      divisor = first - FromReal<T>(beta);
      tau = Conjugate((FromReal<T>(beta) - first) / FromReal<T>(beta));
    }
    __syncthreads();  // All have read the first element.
    if (threadIdx.x == 0) {
      a[k * n + k] = FromReal<T>(beta);
      taus[k] = tau;
    }
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += blockDim.x) {
      a[i * n + k] = flat ? FromReal<T>(0) : a[i * n + k] / divisor;
    }
    __syncthreads();
    if (!flat) Reflect(a, m, n, k + 1, a + k, n, k, tau, memory);
  }
}

/// The first `columns` columns of the unitary factor.
template <typename T>
__device__ void FormQ(const T* a, int64_t m, int64_t n, const T* taus, T* q, int64_t columns,
                      HouseholderMemory<T>* memory) {
  for (int64_t at = threadIdx.x; at < m * columns; at += blockDim.x) {
    q[at] = FromReal<T>(at / columns == at % columns ? 1 : 0);
  }
  __syncthreads();
  for (int64_t k = (m < n ? m : n) - 1; k >= 0; --k) {
    Reflect(q, m, columns, k, a + k, n, k, Conjugate(taus[k]), memory);
  }
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_HOUSEHOLDER_CUH_
