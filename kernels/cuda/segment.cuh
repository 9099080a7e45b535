/// Reductions by segments without atomics on floating-point numbers: each result is made by the
/// threads that own it, in a fixed order.
///
/// A block has `lines` of `width` threads, which read neighbouring columns. A line has a segment;
/// where segments are long, all lines of a block share one.
#ifndef TROUPE_KERNELS_CUDA_SEGMENT_CUH_
#define TROUPE_KERNELS_CUDA_SEGMENT_CUH_

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/segment.h"

namespace troupe::cuda {

/// Segments with more rows than this, on average, have a block's lines together.
inline constexpr int64_t kLongSegment = 64;

struct SegmentShape {
  int64_t rows, length, segments;
  int width, share;  ///< Powers of two; lines that share a segment.
  int64_t column_tiles, segment_tiles;

  SegmentShape(int64_t rows, int64_t length, int64_t segments, bool may_share)
      : rows(rows), length(length), segments(segments), width(1), share(1) {
    while (width < length && width < kThreads) width *= 2;
    const int lines = kThreads / width;
    if (may_share && rows / std::max<int64_t>(segments, 1) > kLongSegment) share = lines;
    const int64_t per_block = lines / share;
    column_tiles = (length + width - 1) / width;
    segment_tiles = (segments + per_block - 1) / per_block;
  }
  unsigned blocks() const {
    return static_cast<unsigned>(std::min<int64_t>(column_tiles * segment_tiles, INT32_MAX));
  }
};

/// Calls body(segment, column, line of the segment, is one) for all; blocks stay together.
template <typename Body>
__device__ void ForSegments(const SegmentShape& shape, Body body) {
  const int line = threadIdx.x / shape.width, per_block = kThreads / shape.width / shape.share;
  const int64_t items = shape.column_tiles * shape.segment_tiles;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t tile = item / shape.column_tiles;
    const int64_t column =
        (item - tile * shape.column_tiles) * shape.width + threadIdx.x % shape.width;
    const int64_t segment = tile * per_block + line / shape.share;
    body(segment, column, line % shape.share, segment < shape.segments && column < shape.length);
  }
}

/// Terms of a result: the rows of a matrix.
template <typename T>
struct RowTerms {
  __device__ WideType<T> operator()(int64_t r, int64_t column) const {
    const int64_t row = places != nullptr ? int64_t{places[r]} : r;
    return static_cast<WideType<T>>(data[row * length + column]);
  }

  const T* data;
  const uint32_t* places;  ///< The r-th row; nullptr: r.
  int64_t length;
};

/// out[s, c] = the terms(r, c) of r in [starts[s], starts[s + 1]), joined by `fn`:
///
///     using Acc = ...;                            // of trivial copies
///     Acc Start() const;
///     Acc Join(Acc a, Acc b) const;
///     auto Finish(Acc acc, int64_t count) const;  // what is converted to T
template <typename T, typename Fn, typename Terms>
__global__ void __launch_bounds__(kThreads)
    ReduceSorted(Terms terms, const int64_t* starts, T* out, SegmentShape shape, Fn fn) {
  using Acc = typename Fn::Acc;
  __shared__ Acc shared[kThreads];
  ForSegments(shape, [&](int64_t segment, int64_t column, int line, bool is_one) {
    Acc acc = fn.Start();
    const int64_t begin = is_one ? starts[segment] : 0, end = is_one ? starts[segment + 1] : 0;
#pragma unroll 4
    for (int64_t r = begin + line; r < end; r += shape.share) acc = fn.Join(acc, terms(r, column));
    if (shape.share > 1) {
      __syncthreads();
      shared[threadIdx.x] = acc;
      for (int lines = shape.share / 2; lines > 0; lines /= 2) {
        __syncthreads();
        if (line >= lines) continue;
        Acc& at = shared[threadIdx.x];
        at = fn.Join(at, shared[threadIdx.x + lines * shape.width]);
      }
      acc = shared[threadIdx.x];
    }
    if (is_one && line == 0) {
      out[segment * shape.length + column] = static_cast<T>(fn.Finish(acc, end - begin));
    }
  });
}

template <typename T, typename Fn, typename Terms>
cudaError_t RunReduceSorted(const Terms& terms, const int64_t* starts, void* out,
                            const SegmentShape& shape, const Fn& fn, cudaStream_t stream) {
  return Launch(&ReduceSorted<T, Fn, Terms>, shape.blocks(), kThreads, stream, terms, starts,
                static_cast<T*>(out), shape, fn);
}

template <typename W>
struct SumTerms {
  using Acc = W;
  __device__ W Start() const { return W(0); }
  __device__ W Join(W a, W b) const { return a + b; }
  __device__ W Finish(W sum, int64_t) const { return sum; }
};

/// For several files: the kernels for an op are compiled in one of them.
cudaError_t LaunchSumOfFew(const SegmentCall& call, LateCheck check, cudaStream_t stream);
cudaError_t LaunchSumSorted(const SegmentCall& call, const uint32_t* places, const int64_t* starts,
                            cudaStream_t stream);

/// For at most kFewRows rows.
template <typename T, typename Fn>
__global__ void __launch_bounds__(kThreads)
    ReduceFew(const T* data, Indices ids, T* out, SegmentShape shape, Fn fn, LateCheck check) {
  __shared__ int64_t shared[kFewRows];
  const int rows = static_cast<int>(shape.rows);
  for (int r = threadIdx.x; r < rows; r += kThreads) {
    const int64_t id = IndexAt(ids, r);
    if (id >= shape.segments && blockIdx.x == 0) ReportLate(check, r, id, shape.segments);
    shared[r] = id;
  }
  __syncthreads();
  ForSegments(shape, [&](int64_t segment, int64_t column, int, bool is_one) {
    if (!is_one) return;
    typename Fn::Acc acc = fn.Start();
    int64_t count = 0;
#pragma unroll 4
    for (int r = 0; r < rows; ++r) {
      if (shared[r] != segment) continue;
      acc = fn.Join(acc, static_cast<WideType<T>>(data[r * shape.length + column]));
      ++count;
    }
    out[segment * shape.length + column] = static_cast<T>(fn.Finish(acc, count));
  });
}

template <typename T, typename Fn>
cudaError_t RunReduceFew(const SegmentCall& call, const Fn& fn, LateCheck check,
                         cudaStream_t stream) {
  const SegmentShape shape(call.rows, call.length, call.segments, false);
  return Launch(&ReduceFew<T, Fn>, shape.blocks(), kThreads, stream,
                static_cast<const T*>(call.data), call.ids, static_cast<T*>(call.out), shape, fn,
                check);
}
template <typename T, typename Fn>
cudaError_t RunReduceRows(const SegmentCall& call, const uint32_t* places, const int64_t* starts,
                          const Fn& fn, cudaStream_t stream) {
  const RowTerms<T> terms{static_cast<const T*>(call.data), places, call.length};
  const SegmentShape shape(call.rows, call.length, call.segments, true);
  return RunReduceSorted<T>(terms, starts, call.out, shape, fn, stream);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SEGMENT_CUH_
