// A block for each matrix, which stays in global memory.
#include "kernels/cuda/decompositions.h"
#include "kernels/cuda/matrix.cuh"

namespace troupe::cuda {
namespace {

/// Replaces `a` by its factors; swapped(k, row) is told which rows change places. Stops, and is
/// false, at a pivot of 0.
template <typename T, typename Swapped>
__device__ bool Factor(T* a, int64_t n, Pivot<RealType<T>>* of_warps, Swapped swapped) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t row = FindPivot(a, n, k, of_warps).row;
    if (row == n) row = k;  // Where all but the first row are NaN, the first one stays.
    SwapRows(a, n, k, row);
    swapped(k, row);
    __syncthreads();
    const T pivot = a[k * n + k];
    if (Size(pivot) == 0) return false;
    for (int64_t i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      a[i * n + k] = a[i * n + k] / pivot;
    }
    __syncthreads();
    Eliminate(a, n, k, k + 1, n, k + 1, [a, n, k](int64_t i) { return a[i * n + k]; });
    __syncthreads();
  }
  return true;
}

template <typename T>
__device__ void CopyMatrix(const T* from, T* to, int64_t elements) {
  for (int64_t at = threadIdx.x; at < elements; at += blockDim.x) to[at] = from[at];
  __syncthreads();
}

template <typename I>
__device__ void SwapNumbers(I* numbers, int64_t i, int64_t j) {
  const I number = numbers[i];
  numbers[i] = numbers[j];
  numbers[j] = number;
}

template <typename T, typename I>
__device__ void FactorOne(const T* a, T* lu, I* rows, int64_t n, Pivot<RealType<T>>* of_warps,
                          int64_t m, unsigned long long* first) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) rows[i] = static_cast<I>(i);
  CopyMatrix(a, lu, n * n);
  const bool regular = Factor(lu, n, of_warps, [rows](int64_t k, int64_t row) {
    if (threadIdx.x == 0) SwapNumbers(rows, k, row);
  });
  // A NaN is seen in the first place only, as on the CPU.
  if (threadIdx.x == 0 && (!regular || !(Size(lu[0]) > 0))) {
    atomicMin(first, static_cast<unsigned long long>(m));
  }
  __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Lu(LuCall call, unsigned long long* first) {
  __shared__ Pivot<RealType<T>> of_warps[kWarps];
  const int64_t n = call.n;
  for (int64_t m = blockIdx.x; m < call.count; m += gridDim.x) {
    const T* const a = static_cast<const T*>(call.a) + m * n * n;
    T* const lu = static_cast<T*>(call.lu) + m * n * n;
    if (call.wide_rows) {
      FactorOne(a, lu, static_cast<int64_t*>(call.rows) + m * n, n, of_warps, m, first);
    } else {
      FactorOne(a, lu, static_cast<int32_t*>(call.rows) + m * n, n, of_warps, m, first);
    }
  }
}

/// 1, -1 or NaN; of complex numbers, one of size 1.
template <typename T>
__device__ T SignOf(T x, RealType<T> size) {
  if constexpr (kIsComplex<T>) {
    return {x.real / size, x.imag / size};
  } else {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // Infinity has a sign, NaN not.
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Determinant(int64_t count, int64_t n, const T* a, T* work, T* signs, T* logarithms) {
  using R = RealType<T>;
  __shared__ Pivot<R> of_warps[kWarps];
  for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    T* const lu = work + m * n * n;
    CopyMatrix(a + m * n * n, lu, n * n);
    bool odd = false;
    const bool regular = Factor(lu, n, of_warps, [&odd](int64_t k, int64_t row) {
      if (row != k) odd = !odd;
    });
    if (threadIdx.x == 0) {
      T sign = FromReal<T>(regular ? (odd ? -1 : 1) : 0);
      R logarithm = regular ? 0 : -kInfinity<R>;
      for (int64_t i = 0; i < (regular ? n : 0); ++i) {
        const T pivot = lu[i * n + i];
        const R size = Size(pivot);
        logarithm += log(size);
        sign = Product(sign, SignOf(pivot, size));
      }
      if (logarithms != nullptr) {
        signs[m] = sign;
        logarithms[m] = FromReal<T>(logarithm);
      } else {
        signs[m] = Scaled(sign, exp(logarithm));
      }
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t LaunchLu(const LuCall& call, unsigned long long* first, LateCheck check,
                     cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(first, 0xff, sizeof(*first), stream);
  if (error != cudaSuccess) return error;
  error = VisitField(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Lu<T>, GridOf(call.count), ThreadsFor(call.n), stream, call, first);
  });
  if (error != cudaSuccess) return error;
  return ForEach(1, stream, ReportFirst{first, call.count, check});
}

cudaError_t LaunchDeterminant(Number type, int64_t count, int64_t n, const void* a, void* work,
                              void* sign, void* logarithm, cudaStream_t stream) {
  return VisitField(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Determinant<T>, GridOf(count), ThreadsFor(n), stream, count, n,
                  static_cast<const T*>(a), static_cast<T*>(work), static_cast<T*>(sign),
                  static_cast<T*>(logarithm));
  });
}

}  // namespace troupe::cuda
