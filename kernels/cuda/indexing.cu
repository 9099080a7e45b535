// Slices picked by index: Gather, GatherNd, OneHot, and rows of several tensors.
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

struct GatherWalk {
  Divisor inner, indices, outer;
  int64_t width, count, limit;
};

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    Gather(const T* params, Indices indices, T* out, int64_t n, GatherWalk walk, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column, k, unused;
    const int64_t slice = walk.inner.template Divide<kSmall>(i, &column);
    const int64_t block = walk.indices.template Divide<kSmall>(slice, &k);
    const int64_t at = walk.outer.template Divide<kSmall>(block, &unused) * walk.count + k;
    const int64_t index = IndexAt(indices, at);
    if (index < 0 || index >= walk.limit) {
      ReportLate(check, at, index, walk.limit);
      out[i] = T{};
    } else {
      out[i] = params[(block * walk.limit + index) * walk.width + column];
    }
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    GatherNd(const T* params, NdIndices nd, T* out, int64_t n, Divisor inner, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t row = inner.template Divide<kSmall>(i, &column);
    const int64_t slot = SlotOf(nd, row, check);
    out[i] = slot < 0 ? T{} : params[slot * nd.inner + column];
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    OneHot(Indices indices, int64_t n, Divisor inner, Divisor depth, int64_t width, const T* on,
           const T* off, T* out) {
  const T hot = *on, cold = *off;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column, d;
    const int64_t outer =
        depth.template Divide<kSmall>(inner.template Divide<kSmall>(i, &column), &d);
    out[i] = IndexAt(indices, outer * width + column) == d ? hot : cold;
  }
}

/// The tensor that has a row.
__device__ int TensorOf(const RowTensors& tensors, int64_t row) {
  int low = 0, high = tensors.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (tensors.begin[middle] <= row ? low : high) = middle;
  }
  return low;
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    Stitch(RowTensors from, const int64_t* sources, int64_t n, Divisor inner, int64_t width,
           T* out) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t source = sources[inner.template Divide<kSmall>(i, &column)];
    if (source < 0) {
      out[i] = T{};
    } else if (source >= from.begin[0] && source < from.begin[from.count]) {
      const int t = TensorOf(from, source);
      out[i] = static_cast<const T*>(from.data[t])[(source - from.begin[t]) * width + column];
    }
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads) Deal(RowTensors to, const int64_t* sources, int64_t n,
                                                 Divisor inner, int64_t width, const T* data) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t row = to.begin[0] + inner.template Divide<kSmall>(i, &column);
    const int t = TensorOf(to, row);
    static_cast<T*>(to.data[t])[(row - to.begin[t]) * width + column] =
        data[sources[row] * width + column];
  }
}

/// A unit for slices of `inner` elements.
Unit UnitOf(int64_t element, int64_t inner) { return Unit().Add(inner * element); }
Unit UnitOf(int64_t element, int64_t inner, const RowTensors& tensors) {
  Unit unit = UnitOf(element, inner);
  for (int t = 0; t < tensors.count; ++t) unit.Add(tensors.data[t]);
  return unit;
}

}  // namespace

cudaError_t LaunchGather(int64_t element, const GatherSizes& sizes, const void* params,
                         Indices indices, void* out, const LateCheck& check, cudaStream_t stream) {
  const int64_t unit = UnitOf(element, sizes.inner).Add(params).Add(out).bytes();
  const int64_t width = sizes.inner * element / unit;
  const int64_t n = sizes.batch * sizes.outer * sizes.indices * width;
  const GatherWalk walk{Divisor(width), Divisor(sizes.indices), Divisor(sizes.outer),
                        width,          sizes.indices,          sizes.limit};
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Gather<T, true> : &Gather<T, false>, Blocks(n), kThreads, stream,
                  static_cast<const T*>(params), indices, static_cast<T*>(out), n, walk, check);
  });
}

cudaError_t LaunchGatherNd(int64_t element, const NdIndices& nd, const void* params, void* out,
                           const LateCheck& check, cudaStream_t stream) {
  const int64_t unit = UnitOf(element, nd.inner).Add(params).Add(out).bytes();
  NdIndices wide = nd;
  wide.inner = nd.inner * element / unit;
  const int64_t n = nd.rows * wide.inner;
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &GatherNd<T, true> : &GatherNd<T, false>, Blocks(n), kThreads,
                  stream, static_cast<const T*>(params), wide, static_cast<T*>(out), n,
                  Divisor(wide.inner), check);
  });
}

cudaError_t LaunchOneHot(int64_t element, Indices indices, int64_t outer, int64_t depth,
                         int64_t inner, const void* on, const void* off, void* out,
                         cudaStream_t stream) {
  const int64_t n = outer * depth * inner;
  return VisitSize(element, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &OneHot<T, true> : &OneHot<T, false>, Blocks(n), kThreads, stream,
                  indices, n, Divisor(inner), Divisor(depth), inner, static_cast<const T*>(on),
                  static_cast<const T*>(off), static_cast<T*>(out));
  });
}

cudaError_t LaunchStitch(int64_t element, const RowTensors& from, const int64_t* sources,
                         int64_t rows, int64_t inner, void* out, cudaStream_t stream) {
  const int64_t unit = UnitOf(element, inner, from).Add(out).bytes();
  const int64_t width = inner * element / unit, n = rows * width;
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Stitch<T, true> : &Stitch<T, false>, Blocks(n), kThreads, stream,
                  from, sources, n, Divisor(width), width, static_cast<T*>(out));
  });
}

cudaError_t LaunchDeal(int64_t element, const RowTensors& to, const int64_t* sources, int64_t inner,
                       const void* data, cudaStream_t stream) {
  const int64_t unit = UnitOf(element, inner, to).Add(data).bytes();
  const int64_t width = inner * element / unit;
  const int64_t n = (to.begin[to.count] - to.begin[0]) * width;
  if (n == 0) return cudaSuccess;
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Deal<T, true> : &Deal<T, false>, Blocks(n), kThreads, stream, to,
                  sources, n, Divisor(width), width, static_cast<const T*>(data));
  });
}

}  // namespace troupe::cuda
