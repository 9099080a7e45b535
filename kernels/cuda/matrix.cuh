/// What kernels that decompose matrices share: numbers of a field, and eliminations by a block.
#ifndef TROUPE_KERNELS_CUDA_MATRIX_CUH_
#define TROUPE_KERNELS_CUDA_MATRIX_CUH_

#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/late_check.cuh"

namespace troupe::cuda {

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
__device__ T Scaled(T x, RealType<T> factor) {
  if constexpr (kIsComplex<T>) {
    return Times(factor, x);
  } else {
    return factor * x;
  }
}
template <typename T>
__device__ T Sum(T a, T b) {
  return a + b;
}

/// Threads for matrices of n columns: a warp, or kThreads.
inline unsigned ThreadsFor(int64_t n) { return n <= kWarp ? kWarp : kThreads; }
inline unsigned GridOf(int64_t count) {
  return static_cast<unsigned>(std::min<int64_t>(count, 65536));
}

/// The sum of what the lanes of a warp have.
template <typename T>
__device__ T SumOfWarp(T value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = Sum(value, ShuffleXor(value, mask));
  return value;
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

/// Blocks find matrices that are refused in any order; the first one is reported.
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

/// Calls fn(TypeTag<T>()) with float, double or a complex type.
template <typename Fn>
cudaError_t VisitField(Number type, Fn fn) {
  if (type == Number::kFloat) return fn(TypeTag<float>());
  if (type == Number::kDouble) return fn(TypeTag<double>());
  return VisitComplex(
      type, [&](auto tag) { return fn(TypeTag<Complex<typename decltype(tag)::Type>>()); });
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_MATRIX_CUH_
