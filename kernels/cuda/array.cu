#include "kernels/cuda/array.h"

#include "kernels/cuda/division.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

/// The place of the first of `n` sorted numbers that is not smaller than `value`, or, if `upper`,
/// that is larger. Which one that is if they are not sorted, or with NaN, is as on the CPU: the
/// search is std::lower_bound's.
template <typename T, typename Key>
__device__ int64_t Search(const T* sorted, int64_t n, Key value, bool upper) {
  int64_t first = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const Key middle = static_cast<Key>(sorted[first + half]);
    if (upper ? !(value < middle) : middle < value) {
      first += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return first;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FindBounds(const T* sorted, int64_t length, const T* values, int64_t n, Divisor columns,
               bool small, bool upper, bool wide, void* places) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t unused;
    const int64_t row =
        small ? columns.Divide<true>(i, &unused) : columns.Divide<false>(i, &unused);
    const int64_t place =
        Search(sorted + row * length, length, static_cast<WideType<T>>(values[i]), upper);
    if (wide) {
      static_cast<int64_t*>(places)[i] = place;
    } else {
      static_cast<int32_t*>(places)[i] = static_cast<int32_t>(place);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FindBuckets(const T* in, int64_t n, Boundaries boundaries, bool more, int32_t* out) {
  using Key = std::conditional_t<std::is_same_v<T, double>, double, float>;
  __shared__ float sorted[Boundaries::kMost];
  for (int k = static_cast<int>(threadIdx.x); k < boundaries.count; k += kThreads) {
    sorted[k] = boundaries.at[k];
  }
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    const auto bucket = static_cast<int32_t>(
        Search(sorted, boundaries.count, static_cast<Key>(in[i]), /*upper=*/true));
    out[i] = more ? out[i] + bucket : bucket;
  }
}

/// A thread for each vector.
template <typename T>
struct CrossVectors {
  const T *a, *b;
  T* c;
  __device__ void operator()(int64_t i) const {
    // Products of small integers would be signed.
    using W = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, WideType<T>>;
    const T *const x = a + 3 * i, *const y = b + 3 * i;
    const W u[] = {static_cast<W>(x[0]), static_cast<W>(x[1]), static_cast<W>(x[2])};
    const W v[] = {static_cast<W>(y[0]), static_cast<W>(y[1]), static_cast<W>(y[2])};
    T* const z = c + 3 * i;
    z[0] = static_cast<T>(u[1] * v[2] - u[2] * v[1]);
    z[1] = static_cast<T>(u[2] * v[0] - u[0] * v[2]);
    z[2] = static_cast<T>(u[0] * v[1] - u[1] * v[0]);
  }
};

struct PlaceDim {
  Places places;
  const int64_t* x;
  int64_t* y;
  __device__ void operator()(int64_t i) const {
    const int64_t dim = (x[i] < 0 ? x[i] + places.count : x[i]) % places.count;
    y[i] = places.at[dim < 0 ? places.count - 1 : dim];
  }
};

struct Pick {
  Places places;
  const int64_t* x;
  int64_t* y;
  __device__ void operator()(int64_t i) const { y[i] = x[places.at[i]]; }
};

/// Products, which wrap around, do not depend on the sign.
template <typename Fn>
cudaError_t VisitModular(Number type, Fn fn) {
  if (type == Number::kInt32) return fn(TypeTag<uint32_t>());
  const cudaError_t error = VisitUnsigned(type, fn);
  return error == cudaErrorNotSupported ? VisitFloating(type, fn) : error;
}

}  // namespace

cudaError_t LaunchBound(const BoundCall& c, cudaStream_t stream) {
  const int64_t n = c.rows * c.columns;
  if (n == 0) return cudaSuccess;
  const auto with = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&FindBounds<T>, Blocks(n), kThreads, stream, static_cast<const T*>(c.sorted),
                  c.length, static_cast<const T*>(c.values), n, Divisor(c.columns), IsSmall(n),
                  c.upper, c.wide, c.places);
  };
  const cudaError_t error = VisitInteger(c.type, with);
  return error == cudaErrorNotSupported ? VisitFloating(c.type, with) : error;
}

cudaError_t LaunchBucketize(Number type, const void* in, int64_t n, const Boundaries& boundaries,
                            bool more, int32_t* out, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto with = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&FindBuckets<T>, Blocks(n), kThreads, stream, static_cast<const T*>(in), n,
                  boundaries, more, out);
  };
  switch (type) {
    case Number::kInt32:
      return with(TypeTag<int32_t>());
    case Number::kInt64:
      return with(TypeTag<int64_t>());
    case Number::kFloat:
      return with(TypeTag<float>());
    case Number::kDouble:
      return with(TypeTag<double>());
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t LaunchCross(Number type, const void* a, const void* b, void* c, int64_t vectors,
                        cudaStream_t stream) {
  return VisitModular(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(
        vectors, stream,
        CrossVectors<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c)});
  });
}

cudaError_t LaunchPlaceDims(const Places& places, const int64_t* x, int64_t* y, int64_t n,
                            cudaStream_t stream) {
  return ForEach(n, stream, PlaceDim{places, x, y});
}

cudaError_t LaunchPick(const Places& places, const int64_t* x, int64_t* y, cudaStream_t stream) {
  return ForEach(places.count, stream, Pick{places, x, y});
}

}  // namespace troupe::cuda
