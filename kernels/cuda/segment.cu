// Sums by segments without atomics on floating-point numbers: each result is added up by the
// threads that own it, in a fixed order. Few rows: each segment looks at every id. More: the ids
// are sorted first (sort.h), which keeps the order of rows, so that each segment finds its own.
//
// A block has `lines` of `width` threads, which read neighbouring columns. A line has a segment;
// where segments are long, all lines of a block share one.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/segment.h"

namespace troupe::cuda {
namespace {

/// Segments with more rows than this, on average, have a block's lines together.
constexpr int64_t kLong = 64;

struct SegmentShape {
  int64_t rows, length, segments;
  int width, share;  ///< Powers of two; lines that share a segment.
  int64_t column_tiles, segment_tiles;
};

SegmentShape ShapeOf(const SegmentCall& call, bool share) {
  SegmentShape shape{call.rows, call.length, call.segments, 1, 1, 1, 1};
  while (shape.width < call.length && shape.width < kThreads) shape.width *= 2;
  const int lines = kThreads / shape.width;
  if (share && call.rows / std::max<int64_t>(call.segments, 1) > kLong) shape.share = lines;
  const int64_t per_block = lines / shape.share;
  shape.column_tiles = (call.length + shape.width - 1) / shape.width;
  shape.segment_tiles = (call.segments + per_block - 1) / per_block;
  return shape;
}

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

template <typename T, typename Id>
__global__ void __launch_bounds__(kThreads)
    SumOfFew(const T* data, const Id* ids, T* out, SegmentShape shape, LateCheck check) {
  using W = WideType<T>;
  if (blockIdx.x == 0) {
    for (int64_t r = threadIdx.x; r < shape.rows; r += kThreads) {
      if (ids[r] >= shape.segments) ReportLate(check, r, ids[r], shape.segments);
    }
  }
  ForSegments(shape, [&](int64_t segment, int64_t column, int, bool is_one) {
    if (!is_one) return;
    W sum(0);
#pragma unroll 4
    for (int64_t r = 0; r < shape.rows; ++r) {
      if (ids[r] == segment) sum += static_cast<W>(data[r * shape.length + column]);
    }
    out[segment * shape.length + column] = static_cast<T>(sum);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    SumSorted(const T* data, const uint32_t* places, const int64_t* starts, T* out,
              SegmentShape shape) {
  using W = WideType<T>;
  __shared__ W shared[kThreads];
  ForSegments(shape, [&](int64_t segment, int64_t column, int line, bool is_one) {
    W sum(0);
    const int64_t end = is_one ? starts[segment + 1] : 0;
#pragma unroll 4
    for (int64_t r = is_one ? starts[segment] + line : 0; r < end; r += shape.share) {
      const int64_t row = places != nullptr ? int64_t{places[r]} : r;
      sum += static_cast<W>(data[row * shape.length + column]);
    }
    if (shape.share > 1) {
      __syncthreads();
      shared[threadIdx.x] = sum;
      for (int lines = shape.share / 2; lines > 0; lines /= 2) {
        __syncthreads();
        if (line < lines) shared[threadIdx.x] += shared[threadIdx.x + lines * shape.width];
      }
      sum = shared[threadIdx.x];
    }
    if (is_one && line == 0) out[segment * shape.length + column] = static_cast<T>(sum);
  });
}

/// Where segment `s` begins: how many of the keys, in order, are less.
template <typename Key>
struct FindStart {
  __device__ void operator()(int64_t s) const {
    int64_t low = 0, high = rows;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (keys[middle] < static_cast<Key>(s)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    starts[s] = low;
  }

  const Key* keys;
  int64_t rows;
  int64_t* starts;
};

template <typename Id, typename Key>
struct MakeKey {
  __device__ void operator()(int64_t r) const {
    const int64_t id = ids[r];
    if (id >= segments) ReportLate(check, r, id, segments);
    keys[r] = static_cast<Key>(id < 0 || id > segments ? segments : id);
  }

  const Id* ids;
  Key* keys;
  int64_t segments;
  LateCheck check;
};

template <typename Id>
struct CheckOrder {
  __device__ void operator()(int64_t r) const {
    const int64_t id = ids[r], before = r == 0 ? 0 : ids[r - 1];
    if (id < before || id == INT64_MAX) ReportLate(check, r, id, before);
    if (r == rows - 1) *last = id;
  }

  const Id* ids;
  int64_t rows;
  int64_t* last;
  LateCheck check;
};

template <typename Fn>
cudaError_t VisitSummed(Number type, Fn fn) {
  if (type == Number::kInt32) return fn(TypeTag<uint32_t>());  // Wraps around.
  return VisitFloating(type, fn);
}
template <typename Fn>
cudaError_t VisitIds(bool wide, Fn fn) {
  return wide ? fn(TypeTag<int64_t>()) : fn(TypeTag<int32_t>());
}

unsigned GridOf(const SegmentShape& shape) {
  return static_cast<unsigned>(
      std::min<int64_t>(shape.column_tiles * shape.segment_tiles, INT32_MAX));
}

}  // namespace

cudaError_t LaunchSumOfFew(const SegmentCall& call, LateCheck check, cudaStream_t stream) {
  const SegmentShape shape = ShapeOf(call, false);
  return VisitSummed(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return VisitIds(call.wide_ids, [&](auto id_tag) {
      using Id = typename decltype(id_tag)::Type;
      return Launch(&SumOfFew<T, Id>, GridOf(shape), kThreads, stream,
                    static_cast<const T*>(call.data), static_cast<const Id*>(call.ids),
                    static_cast<T*>(call.out), shape, check);
    });
  });
}

cudaError_t LaunchSegmentKeys(const SegmentCall& call, bool wide_keys, void* keys, LateCheck check,
                              cudaStream_t stream) {
  return VisitIds(call.wide_ids, [&](auto tag) {
    using Id = typename decltype(tag)::Type;
    const auto* ids = static_cast<const Id*>(call.ids);
    if (wide_keys) {
      return ForEach(
          call.rows, stream,
          MakeKey<Id, uint64_t>{ids, static_cast<uint64_t*>(keys), call.segments, check});
    }
    return ForEach(call.rows, stream,
                   MakeKey<Id, uint32_t>{ids, static_cast<uint32_t*>(keys), call.segments, check});
  });
}

cudaError_t LaunchSumSorted(const SegmentCall& call, bool wide_keys, const void* keys,
                            const uint32_t* places, int64_t* starts, cudaStream_t stream) {
  const cudaError_t found =
      wide_keys
          ? ForEach(call.segments + 1, stream,
                    FindStart<uint64_t>{static_cast<const uint64_t*>(keys), call.rows, starts})
          : ForEach(call.segments + 1, stream,
                    FindStart<uint32_t>{static_cast<const uint32_t*>(keys), call.rows, starts});
  if (found != cudaSuccess) return found;
  const SegmentShape shape = ShapeOf(call, true);
  return VisitSummed(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&SumSorted<T>, GridOf(shape), kThreads, stream, static_cast<const T*>(call.data),
                  places, starts, static_cast<T*>(call.out), shape);
  });
}

cudaError_t LaunchCheckSorted(const SegmentCall& call, int64_t* last, LateCheck check,
                              cudaStream_t stream) {
  return VisitIds(call.wide_ids, [&](auto tag) {
    using Id = typename decltype(tag)::Type;
    return ForEach(call.rows, stream,
                   CheckOrder<Id>{static_cast<const Id*>(call.ids), call.rows, last, check});
  });
}

}  // namespace troupe::cuda
