// A block for each matrix, which stays in global memory: its caches hold the small ones, of which
// there are many. The order of all sums is fixed.
#include "kernels/cuda/linalg.h"

#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
struct Real {
  using Type = T;
};
template <typename R>
struct Real<Complex<R>> {
  using Type = R;
};
template <typename T>
using RealType = typename Real<T>::Type;

template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, RealType<T>>;

template <typename T>
__device__ T FromReal(RealType<T> x) {
  if constexpr (kIsComplex<T>) {
    return {x, 0};
  } else {
    return x;
  }
}
template <typename T>
__device__ RealType<T> RealPart(T x) {
  if constexpr (kIsComplex<T>) {
    return x.real;
  } else {
    return x;
  }
}
template <typename T>
__device__ T Conjugate(T x) {
  if constexpr (kIsComplex<T>) {
    return {x.real, -x.imag};
  } else {
    return x;
  }
}
template <typename T>
__device__ RealType<T> Size(T x) {
  if constexpr (kIsComplex<T>) {
    return hypot(x.real, x.imag);
  } else {
    return fabs(x);
  }
}
template <typename T>
__device__ T Product(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return PlainProduct(a, b);
  } else {
    return a * b;
  }
}
template <typename T>
__device__ T Sum(T a, T b) {
  return a + b;
}

/// Threads for matrices of n columns: a warp, or kThreads.
unsigned ThreadsFor(int64_t n) { return n <= kWarp ? kWarp : kThreads; }
unsigned GridOf(int64_t count) { return static_cast<unsigned>(std::min<int64_t>(count, 65536)); }

/// The sum of what the lanes of a warp have.
template <typename T>
__device__ T SumOfWarp(T value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = Sum(value, ShuffleXor(value, mask));
  return value;
}

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

/// Takes multiples of row k from the rows [first, last) of x, which is `stride` wide, from column
/// `from` on. `factor(i)` is what row i has of it.
template <typename T, typename Factor>
__device__ void Eliminate(T* x, int64_t stride, int64_t k, int64_t first, int64_t last,
                          int64_t from, Factor factor) {
  // Neighbouring threads have neighbouring columns, if there are some.
  const int64_t columns = stride - from;
  const int lanes = columns > 16 ? kWarp : columns > 2 ? 8 : 1;
  for (int64_t i = first + threadIdx.x / lanes; i < last; i += blockDim.x / lanes) {
    const T f = factor(i);
    for (int64_t c = from + threadIdx.x % lanes; c < stride; c += lanes) {
      x[i * stride + c] = x[i * stride + c] - Product(f, x[k * stride + c]);
    }
  }
}

template <typename R>
struct Pivot {
  R size;
  int64_t row;
};

/// The row of the largest element of column k, from row k on, the first of them. A NaN counts in
/// the first place only, where it is the largest.
template <typename T>
__device__ Pivot<RealType<T>> FindPivot(const T* a, int64_t n, int64_t k,
                                        Pivot<RealType<T>>* of_warps) {
  using R = RealType<T>;
  Pivot<R> best{R(-1), n};
  for (int64_t i = k + threadIdx.x; i < n; i += blockDim.x) {
    const R size = Size(a[i * n + k]);
    if (size > best.size || (i == k && isnan(size))) best = {isnan(size) ? R(INFINITY) : size, i};
  }
  return JoinGroup(best, static_cast<int>(blockDim.x), of_warps, [](Pivot<R> a, Pivot<R> b) {
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
  });
}

template <typename T>
__device__ void SwapRows(T* x, int64_t columns, int64_t i, int64_t j) {
  for (int64_t c = threadIdx.x; c < (i == j ? 0 : columns); c += blockDim.x) {
    const T value = x[i * columns + c];
    x[i * columns + c] = x[j * columns + c];
    x[j * columns + c] = value;
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

/// Blocks find singular matrices in any order; the first one is reported.
struct ReportFirst {
  __device__ void operator()(int64_t) const {
    if (*first < static_cast<unsigned long long>(count)) {
      ReportLate(check, static_cast<int64_t>(*first), count);
    }
  }
  const unsigned long long* first;
  int64_t count;
  LateCheck check;
};

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

/// Calls fn(TypeTag<T>()) with float, double or a complex type.
template <typename Fn>
cudaError_t VisitField(Number type, Fn fn) {
  if (type == Number::kFloat) return fn(TypeTag<float>());
  if (type == Number::kDouble) return fn(TypeTag<double>());
  return VisitComplex(
      type, [&](auto tag) { return fn(TypeTag<Complex<typename decltype(tag)::Type>>()); });
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
