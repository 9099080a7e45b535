// Sums by segments of rows that are picked by index, and what their gradients need.
#include "kernels/cuda/scan.h"
#include "kernels/cuda/segment.cuh"

namespace troupe::cuda {
namespace {

/// By what a sum of `count` terms is multiplied.
template <typename W>
__device__ W Factor(SegmentScale scale, int64_t count) {
  if (scale == SegmentScale::kNone) return W(1);
  const double divisor = static_cast<double>(count);
  return static_cast<W>(1 / (scale == SegmentScale::kMean ? divisor : sqrt(divisor)));
}

/// The sum, times the factor of its number of terms.
template <typename W>
struct ScaledSum : SumTerms<W> {
  __device__ W Finish(W sum, int64_t count) const {
    return count == 0 ? W(0) : sum * Factor<W>(scale, count);
  }
  SegmentScale scale;
};

template <typename T>
struct PickedTerms {
  using W = WideType<T>;
  __device__ W operator()(int64_t r, int64_t column) const {
    const int64_t place = call.places != nullptr ? int64_t{call.places[r]} : r;
    const int64_t row = IndexAt(call.indices, place);
    if (row < 0 || row >= call.rows) {
      ReportLate(check, place, row, call.rows);
      return W(0);
    }
    const W value = static_cast<W>(static_cast<const T*>(call.data)[row * call.length + column]);
    return call.factors == nullptr ? value : value * static_cast<const W*>(call.factors)[row];
  }

  PickedCall call;
  LateCheck check;
};

struct CountIds {
  __device__ void operator()(int64_t r) const {
    const int64_t id = IndexAt(ids, r);
    if (id < 0 || id >= segments) {
      ReportLate(check, r, id, segments);
    } else {
      atomicAdd(reinterpret_cast<unsigned*>(sizes) + id, 1u);
    }
  }

  Indices ids;
  int64_t segments;
  int32_t* sizes;
  LateCheck check;
};

template <typename W>
struct MakeFactor {
  __device__ void operator()(int64_t s) const { factors[s] = Factor<W>(scale, sizes[s]); }

  SegmentScale scale;
  const int32_t* sizes;
  W* factors;
};

template <typename Key>
struct MarkLast {
  __device__ void operator()(int64_t r) const {
    at[r] = r < rows && (r + 1 == rows || keys[r] != keys[r + 1]) ? 1 : 0;
  }

  const Key* keys;
  int64_t rows;
  uint64_t* at;
};

template <typename Key>
struct NameKeys {
  __device__ void operator()(int64_t r) const {
    if (r == rows) {
      starts[at[r]] = r;
      return;
    }
    if (r > 0 && keys[r] == keys[r - 1]) return;
    const auto u = static_cast<int64_t>(at[r]);
    starts[u] = r;
    if (wide) {
      static_cast<int64_t*>(named)[u] = static_cast<int64_t>(keys[r]);
    } else {
      static_cast<int32_t*>(named)[u] = static_cast<int32_t>(keys[r]);
    }
  }

  const Key* keys;
  int64_t rows;
  const uint64_t* at;
  int64_t* starts;
  bool wide;
  void* named;
};

template <typename Fn>
cudaError_t VisitKey(bool wide, Fn fn) {
  return wide ? fn(TypeTag<uint64_t>()) : fn(TypeTag<uint32_t>());
}

}  // namespace

cudaError_t LaunchSumPicked(const PickedCall& call, LateCheck check, cudaStream_t stream) {
  const SegmentShape shape(call.pairs, call.length, call.segments, true);
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunReduceSorted<T>(PickedTerms<T>{call, check}, call.starts, call.out, shape,
                              ScaledSum<WideType<T>>{{}, call.scale}, stream);
  });
}

cudaError_t LaunchSegmentSizes(Indices ids, int64_t rows, int64_t segments, int32_t* sizes,
                               LateCheck check, cudaStream_t stream) {
  const cudaError_t error =
      cudaMemsetAsync(sizes, 0, static_cast<size_t>(segments) * sizeof(*sizes), stream);
  if (error != cudaSuccess) return error;
  return ForEach(rows, stream, CountIds{ids, segments, sizes, check});
}

cudaError_t LaunchSegmentFactors(Number type, SegmentScale scale, const int32_t* sizes,
                                 int64_t segments, void* factors, cudaStream_t stream) {
  if (type == Number::kDouble) {
    return ForEach(segments, stream,
                   MakeFactor<double>{scale, sizes, static_cast<double*>(factors)});
  }
  return ForEach(segments, stream, MakeFactor<float>{scale, sizes, static_cast<float*>(factors)});
}

cudaError_t LaunchNumberKeys(const void* keys, bool wide_keys, int64_t rows, uint64_t* at,
                             void* scratch, cudaStream_t stream) {
  const cudaError_t error = VisitKey(wide_keys, [&](auto tag) {
    using Key = typename decltype(tag)::Type;
    return ForEach(rows + 1, stream, MarkLast<Key>{static_cast<const Key*>(keys), rows, at});
  });
  if (error != cudaSuccess) return error;
  ScanShape scan = PlanScan(1, rows + 1, 1);
  scan.exclusive = true;
  return LaunchScan(ScanOp::kSum, Number::kInt64, at, at, scan, scratch, stream);
}

cudaError_t LaunchNamedKeys(const void* keys, bool wide_keys, int64_t rows, const uint64_t* at,
                            int64_t* starts, bool wide_named, void* named, cudaStream_t stream) {
  return VisitKey(wide_keys, [&](auto tag) {
    using Key = typename decltype(tag)::Type;
    return ForEach(
        rows + 1, stream,
        NameKeys<Key>{static_cast<const Key*>(keys), rows, at, starts, wide_named, named});
  });
}

}  // namespace troupe::cuda
