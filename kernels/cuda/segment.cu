// Sums and means by segments. Few rows: each segment looks at every id. More: the ids are sorted
// first (sort.h), which keeps the order of rows, so that each segment finds its own.
#include "kernels/cuda/segment.cuh"

namespace troupe::cuda {
namespace {

template <typename W>
struct MeanTerms : SumTerms<W> {
  __device__ W Finish(W sum, int64_t count) const {
    return count == 0 ? W(0) : sum / static_cast<W>(count);
  }
};

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

template <typename Key>
struct MakeKey {
  __device__ void operator()(int64_t r) const {
    const int64_t id = IndexAt(ids, r);
    if (id < 0 ? bad.negative : id >= segments && bad.large) ReportLate(check, r, id, segments);
    keys[r] = static_cast<Key>(id < 0 || id > segments ? segments : id);
  }

  Indices ids;
  Key* keys;
  int64_t segments;
  BadIds bad;
  LateCheck check;
};

struct CheckOrder {
  __device__ void operator()(int64_t r) const {
    const int64_t id = IndexAt(sorted.ids, r), before = r == 0 ? 0 : IndexAt(sorted.ids, r - 1);
    if (id < before || id == INT64_MAX) ReportLate(sorted.order, r, id, before);
    if (r + 1 < sorted.rows) return;
    if (sorted.last != nullptr) {
      *sorted.last = id;
    } else if (id >= sorted.segments) {
      ReportLate(sorted.beyond, id, sorted.segments);
    }
  }

  SortedIds sorted;
};

/// Calls fn with the type that numbers are summed as.
template <typename Fn>
cudaError_t VisitSummed(Number type, Fn fn) {
  if (type == Number::kInt32) return fn(TypeTag<uint32_t>());  // Wraps around.
  return VisitFloating(type, fn);
}
template <typename Fn>
cudaError_t VisitKey(bool wide, Fn fn) {
  return wide ? fn(TypeTag<uint64_t>()) : fn(TypeTag<uint32_t>());
}

}  // namespace

cudaError_t LaunchSumOfFew(const SegmentCall& call, LateCheck check, cudaStream_t stream) {
  return VisitSummed(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunReduceFew<T>(call, SumTerms<WideType<T>>(), check, stream);
  });
}

cudaError_t LaunchSumSorted(const SegmentCall& call, const uint32_t* places, const int64_t* starts,
                            cudaStream_t stream) {
  if (call.op == SegmentOp::kMean) {
    return VisitFloating(call.type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      return RunReduceRows<T>(call, places, starts, MeanTerms<WideType<T>>(), stream);
    });
  }
  return VisitSummed(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunReduceRows<T>(call, places, starts, SumTerms<WideType<T>>(), stream);
  });
}

cudaError_t LaunchSegmentKeys(Indices ids, int64_t rows, int64_t segments, BadIds bad,
                              bool wide_keys, void* keys, LateCheck check, cudaStream_t stream) {
  return VisitKey(wide_keys, [&](auto tag) {
    using Key = typename decltype(tag)::Type;
    return ForEach(rows, stream, MakeKey<Key>{ids, static_cast<Key*>(keys), segments, bad, check});
  });
}

cudaError_t LaunchSegmentStarts(const void* keys, bool wide_keys, int64_t rows, int64_t segments,
                                int64_t* starts, cudaStream_t stream) {
  return VisitKey(wide_keys, [&](auto tag) {
    using Key = typename decltype(tag)::Type;
    return ForEach(segments + 1, stream,
                   FindStart<Key>{static_cast<const Key*>(keys), rows, starts});
  });
}

cudaError_t LaunchCheckSorted(const SortedIds& sorted, cudaStream_t stream) {
  return ForEach(sorted.rows, stream, CheckOrder{sorted});
}

}  // namespace troupe::cuda
