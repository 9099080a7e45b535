// A block for each matrix, which stays in global memory: its caches hold the small ones, of which
// there are many. The order of all sums is fixed.
#include "kernels/cuda/linalg.h"

#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/matrix.cuh"

namespace troupe::cuda {
namespace {

/// a[i, k] minus what columns [0, k) of l give; every lane of a warp calls it.
template <typename T>
__device__ T Remainder(const T* l, int64_t n, int64_t i, int64_t k) {
  T sum = FromReal<T>(0);
  for (int64_t j = threadIdx.x % kWarp; j < k; j += kWarp) {
    sum = Sum(sum, Product(l[i * n + j], Conjugate(l[k * n + j])));
  }
  return l[i * n + k] - SumOfWarp(sum);
}

/// Column by column; a warp for each element.
template <typename T>
__global__ void __launch_bounds__(kThreads) Cholesky(const T* a, T* l, int64_t count, int64_t n) {
  using R = RealType<T>;
  const int64_t warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const bool leads = threadIdx.x % kWarp == 0;
  for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const T* const from = a + m * n * n;
    T* const to = l + m * n * n;
    for (int64_t at = threadIdx.x; at < n * n; at += blockDim.x) {
      to[at] = at % n <= at / n ? from[at] : FromReal<T>(0);
    }
    __syncthreads();
    bool positive = true;
    for (int64_t k = 0; k < n && positive; ++k) {
      const R square = RealPart(Remainder(to, n, k, k));  // The same bits in every warp.
      positive = !(square <= 0);
      const R pivot = sqrt(square);
      for (int64_t i = k + 1 + warp; i < n; i += warps) {
        const T rest = Remainder(to, n, i, k);
        if constexpr (kIsComplex<T>) {
          if (leads) to[i * n + k] = {rest.real / pivot, rest.imag / pivot};
        } else {
          if (leads) to[i * n + k] = rest / pivot;
        }
      }
      __syncthreads();  // All have read the diagonal's element.
      if (threadIdx.x == 0 && positive) to[k * n + k] = FromReal<T>(pivot);
    }
    for (int64_t at = threadIdx.x; at < (positive ? 0 : n * n); at += blockDim.x) {
      if (at % n <= at / n) to[at] = FromReal<T>(R(NAN));
    }
    __syncthreads();
  }
}

/// Makes `a` upper triangular, and x the right sides that belong to it; what is below the diagonal
/// is left. False if the matrix is singular.
template <typename T>
__device__ bool Triangulate(T* a, T* x, int64_t n, int64_t columns, Pivot<RealType<T>>* of_warps) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t row = FindPivot(a, n, k, of_warps).row;
    // Where all but the first row are NaN, the first one stays.
    SwapRows(a, n, k, row < n ? row : k);
    SwapRows(x, columns, k, row < n ? row : k);
    __syncthreads();
    const T pivot = a[k * n + k];
    // The smallest pivot decides, and TensorFlow's search for it sees a NaN in the first place
    // only.
    const RealType<T> size = Size(pivot);
    if (size == 0 || (k == 0 && !(size > 0))) return false;
    for (int64_t i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      a[i * n + k] = a[i * n + k] / pivot;
    }
    __syncthreads();
    const auto factor = [a, n, k](int64_t i) { return a[i * n + k]; };
    Eliminate(x, columns, k, k + 1, n, 0, factor);
    Eliminate(a, n, k, k + 1, n, k + 1, factor);
    __syncthreads();
  }
  return true;
}

/// Solves triangular systems; `element(i, k)` are those of the matrix.
template <typename T, typename Element>
__device__ void Substitute(T* x, int64_t n, int64_t columns, bool lower, Element element) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t k = lower ? step : n - 1 - step;
    const T pivot = element(k, k);
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
      x[k * columns + c] = x[k * columns + c] / pivot;
    }
    __syncthreads();
    Eliminate(x, columns, k, lower ? k + 1 : 0, lower ? n : k, 0,
              [&element, k](int64_t i) { return element(i, k); });
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Solve(SolveCall call, T* work, unsigned long long* first) {
  __shared__ Pivot<RealType<T>> of_warps[kWarps];
  const int64_t n = call.n, columns = call.columns;
  for (int64_t m = blockIdx.x; m < call.count; m += gridDim.x) {
    const T* const from = static_cast<const T*>(call.a) + m * n * n;
    T* const a = work + m * n * n;
    T* const x = static_cast<T*>(call.x) + m * n * columns;
    for (int64_t at = threadIdx.x; at < n * n; at += blockDim.x) {
      a[at] = call.adjoint ? Conjugate(from[at % n * n + at / n]) : from[at];
    }
    for (int64_t at = threadIdx.x; at < n * columns; at += blockDim.x) {
      x[at] = call.b != nullptr ? static_cast<const T*>(call.b)[m * n * columns + at]
                                : FromReal<T>(at / columns == at % columns ? 1 : 0);
    }
    __syncthreads();
    if (Triangulate(a, x, n, columns, of_warps)) {
      Substitute(x, n, columns, /*lower=*/false,
                 [a, n](int64_t i, int64_t k) { return a[i * n + k]; });
    } else if (threadIdx.x == 0) {
      atomicMin(first, static_cast<unsigned long long>(m));
    }
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TriangularSolve(SolveCall call, bool lower, StridedWalk<2> batch) {
  const int64_t n = call.n, columns = call.columns;
  for (int64_t m = blockIdx.x; m < call.count; m += gridDim.x) {
    const T* const a = static_cast<const T*>(call.a) + batch.At(0, m) * n * n;
    const T* const b = static_cast<const T*>(call.b) + batch.At(1, m) * n * columns;
    T* const x = static_cast<T*>(call.x) + m * n * columns;
    for (int64_t at = threadIdx.x; at < n * columns; at += blockDim.x) x[at] = b[at];
    __syncthreads();
    const bool adjoint = call.adjoint;
    Substitute(x, n, columns, lower != adjoint, [a, n, adjoint](int64_t i, int64_t k) {
      return adjoint ? Conjugate(a[k * n + i]) : a[i * n + k];
    });
  }
}

}  // namespace

cudaError_t LaunchCholesky(Number type, const void* a, void* l, int64_t count, int64_t n,
                           cudaStream_t stream) {
  return VisitField(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Cholesky<T>, GridOf(count), ThreadsFor(n), stream, static_cast<const T*>(a),
                  static_cast<T*>(l), count, n);
  });
}

cudaError_t LaunchSolve(const SolveCall& call, void* work, unsigned long long* first,
                        LateCheck check, cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(first, 0xff, sizeof(*first), stream);
  if (error == cudaSuccess) {
    error = VisitField(call.type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      return Launch(&Solve<T>, GridOf(call.count), ThreadsFor(call.n + call.columns), stream, call,
                    static_cast<T*>(work), first);
    });
  }
  if (error != cudaSuccess) return error;
  return ForEach(1, stream, ReportFirst{first, call.count, check});
}

cudaError_t LaunchTriangularSolve(const SolveCall& call, bool lower, const Broadcast& batch,
                                  cudaStream_t stream) {
  return VisitField(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&TriangularSolve<T>, GridOf(call.count), ThreadsFor(call.n + call.columns),
                  stream, call, lower, StridedWalk<2>(batch, call.count));
  });
}

}  // namespace troupe::cuda
