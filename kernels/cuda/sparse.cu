// Elements of sparse tensors change their places.
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/sparse.h"

namespace troupe::cuda {
namespace {

__device__ void PutKey(const SparseKeys& keys, int64_t i, int64_t key) {
  if (keys.wide) {
    static_cast<uint64_t*>(keys.data)[i] = static_cast<uint64_t>(key);
  } else {
    static_cast<uint32_t*>(keys.data)[i] = static_cast<uint32_t>(key);
  }
}
__device__ int64_t KeyAt(const void* keys, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(keys)[i]
              : int64_t{static_cast<const uint32_t*>(keys)[i]};
}

/// False, and reported, if element i is not in its shape.
__device__ bool IsInShape(const SparseIndicesIn& elements, int64_t i, const LateCheck& check) {
  const int rank = elements.shape.rank;
  for (int d = 0; d < rank; ++d) {
    const int64_t index = elements.indices[i * rank + d], limit = elements.shape.sizes[d];
    if (index >= 0 && index < limit) continue;
    ReportLate(check, i * rank + d, index, limit);
    return false;
  }
  return true;
}

__device__ void Unravel(int64_t place, const SparseDims& in, int64_t* index) {
  for (int d = in.rank - 1; d >= 0; --d) {
    const int64_t outer = place / in.sizes[d];
    index[d] = place - outer * in.sizes[d];
    place = outer;
  }
}

struct PutPlaceKey {
  __device__ void operator()(int64_t i) const {
    int64_t place = 0;
    if (IsInShape(elements, i, check)) {
      for (int d = 0; d < in.rank; ++d) {
        place = place * in.sizes[d] + offset.sizes[d] + elements.indices[i * in.rank + d];
      }
    }
    PutKey(keys, begin + i, place);
  }

  SparseIndicesIn elements;
  SparseDims offset, in;
  SparseKeys keys;
  int64_t begin;
  LateCheck check;
};

struct PutColumnKey {
  __device__ void operator()(int64_t i) const {
    const int64_t index = IndexAt(column.indices, i * column.rank + column.column);
    const bool good = index >= 0 && index < column.limit;
    if (!good) ReportLate(check, i, index, column.limit);
    PutKey(keys, i, good ? index : column.limit);
  }

  SparseColumn column;
  SparseKeys keys;
  LateCheck check;
};

struct UnravelKey {
  __device__ void operator()(int64_t i) const {
    Unravel(KeyAt(keys, wide, i), in, indices + i * in.rank);
  }

  const void* keys;
  bool wide;
  SparseDims in;
  int64_t* indices;
};

struct ReshapeIndex {
  __device__ void operator()(int64_t i) const {
    if (!IsInShape(from, i, check)) return;
    int64_t place = 0;
    for (int d = 0; d < from.shape.rank; ++d) {
      place = place * from.shape.sizes[d] + from.indices[i * from.shape.rank + d];
    }
    Unravel(place, to, indices + i * to.rank);
  }

  SparseIndicesIn from;
  SparseDims to;
  int64_t* indices;
  LateCheck check;
};

struct MarkSlice {
  __device__ void operator()(int64_t i) const {
    bool inside = i < elements.n && IsInShape(elements, i, check);
    for (int d = 0; d < start.rank && inside; ++d) {
      const int64_t index = elements.indices[i * start.rank + d];
      // The difference of the smaller and the larger one fits 64 bits without a sign.
      inside = index >= start.sizes[d] &&
               static_cast<uint64_t>(index) - static_cast<uint64_t>(start.sizes[d]) <
                   static_cast<uint64_t>(size.sizes[d]);
    }
    at[i] = inside ? 1 : 0;
  }

  SparseIndicesIn elements;
  SparseDims start, size;
  uint64_t* at;
  LateCheck check;
};

struct ListKept {
  __device__ void operator()(int64_t i) const {
    if (at[i + 1] != at[i]) places[at[i]] = static_cast<uint32_t>(i);
  }

  const uint64_t* at;
  uint32_t* places;
};

struct TakeIndex {
  __device__ void operator()(int64_t i) const {
    const int64_t k = i / start.rank, d = i - k * start.rank;
    out[i] = indices[places[k] * int64_t{start.rank} + d] - start.sizes[d];
  }

  const int64_t* indices;
  const uint32_t* places;
  SparseDims start;
  int64_t* out;
};

struct PutPartKey {
  __device__ void operator()(int64_t i) const {
    int64_t key = 0;
    if (IsInShape(elements, i, check)) {
      const int64_t index = elements.indices[i * elements.shape.rank + axis];
      const int64_t in_larger = (part + 1) * larger;
      key = index < in_larger ? index / (part + 1) : larger + (index - in_larger) / part;
    }
    keys[i] = static_cast<uint32_t>(key);
  }

  SparseIndicesIn elements;
  int axis;
  int64_t part, larger;
  uint32_t* keys;
  LateCheck check;
};

template <typename T>
struct FindMatch {
  __device__ void operator()(int64_t i) const {
    const int rank = match.start.rank;
    const int64_t* const index = match.to + i * rank;
    int64_t low = 0, high = match.num_from;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (Compare(match.from + middle * rank, index) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool found = low < match.num_from && Compare(match.from + low * rank, index) == 0;
    static_cast<T*>(match.out)[i] = found ? static_cast<const T*>(match.values)[low] : T();
    if (found) atomicAdd(match.met, 1u);
  }
  __device__ int Compare(const int64_t* a, const int64_t* b) const {
    for (int d = 0; d < match.start.rank; ++d) {
      const auto moved = static_cast<int64_t>(static_cast<uint64_t>(b[d]) -
                                              static_cast<uint64_t>(match.start.sizes[d]));
      if (a[d] != moved) return a[d] < moved ? -1 : 1;
    }
    return 0;
  }

  SparseMatch match;
};

struct CheckMet {
  __device__ void operator()(int64_t) const {
    if (*met != number) ReportLate(check, *met, number);
  }

  const unsigned* met;
  int64_t number;
  LateCheck check;
};

struct CountFilled {
  __device__ void operator()(int64_t r) const {
    int64_t count = 0;
    if (r < rows) {
      count = starts[r + 1] - starts[r];
      if (count == 0) count = 1;
    }
    at[r] = static_cast<uint64_t>(count);
  }

  const int64_t* starts;
  int64_t rows;
  uint64_t* at;
};

/// First the elements, then the rows.
template <typename T>
struct FillRow {
  __device__ void operator()(int64_t i) const {
    if (i < fill.n) {
      MoveElement(i);
    } else {
      LookAtRow(i - fill.n);
    }
  }
  __device__ void MoveElement(int64_t r) const {
    const int64_t row = KeyAt(fill.keys, fill.wide, r), place = fill.places[r];
    if (row >= fill.rows) return;  // It has been reported.
    const int64_t to = static_cast<int64_t>(fill.at[row]) + r - fill.starts[row];
    fill.map[place] = to;
    static_cast<T*>(fill.out_values)[to] = static_cast<const T*>(fill.values)[place];
    for (int64_t d = 0; d < fill.rank; ++d) {
      fill.out_indices[to * fill.rank + d] = fill.indices[place * fill.rank + d];
    }
  }
  __device__ void LookAtRow(int64_t row) const {
    const bool empty = fill.starts[row] == fill.starts[row + 1];
    fill.empty[row] = empty;
    if (!empty) return;
    const auto to = static_cast<int64_t>(fill.at[row]);
    static_cast<T*>(fill.out_values)[to] = *static_cast<const T*>(fill.filling);
    for (int64_t d = 0; d < fill.rank; ++d) {
      fill.out_indices[to * fill.rank + d] = d == 0 ? row : 0;
    }
  }

  FillRows fill;
};

struct MarkTaken {
  __device__ void operator()(int64_t i) const {
    if (map[i] < 0 || map[i] >= size) {
      ReportLate(check, i, map[i], size);
    } else {
      taken[map[i]] = 1;
    }
  }

  const int64_t* map;
  int64_t size;
  uint8_t* taken;
  LateCheck check;
};

template <typename T>
struct TakeRest {
  using To = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  __device__ void operator()(int64_t i) const {
    rest[i] = taken[i] != 0 ? To(0) : static_cast<To>(values[i]);
  }

  const T* values;
  const uint8_t* taken;
  To* rest;
};

cudaError_t ScanInPlace(uint64_t* at, int64_t n, void* scratch, cudaStream_t stream) {
  ScanShape scan = PlanScan(1, n, 1);
  scan.exclusive = true;
  return LaunchScan(ScanOp::kSum, Number::kInt64, at, at, scan, scratch, stream);
}

}  // namespace

cudaError_t LaunchPlaceKeys(const SparseIndicesIn& elements, const SparseDims& offset,
                            const SparseDims& in, SparseKeys keys, int64_t begin, LateCheck check,
                            cudaStream_t stream) {
  return ForEach(elements.n, stream, PutPlaceKey{elements, offset, in, keys, begin, check});
}

cudaError_t LaunchColumnKeys(const SparseColumn& column, SparseKeys keys, LateCheck check,
                             cudaStream_t stream) {
  return ForEach(column.n, stream, PutColumnKey{column, keys, check});
}

cudaError_t LaunchUnravel(const void* keys, bool wide, int64_t n, const SparseDims& in,
                          int64_t* indices, cudaStream_t stream) {
  return ForEach(n, stream, UnravelKey{keys, wide, in, indices});
}

cudaError_t LaunchSparseReshape(const SparseIndicesIn& from, const SparseDims& to, int64_t* indices,
                                LateCheck check, cudaStream_t stream) {
  return ForEach(from.n, stream, ReshapeIndex{from, to, indices, check});
}

cudaError_t LaunchCountSlice(const SparseIndicesIn& elements, const SparseDims& start,
                             const SparseDims& size, uint64_t* at, void* scratch, LateCheck check,
                             cudaStream_t stream) {
  const cudaError_t error =
      ForEach(elements.n + 1, stream, MarkSlice{elements, start, size, at, check});
  return error == cudaSuccess ? ScanInPlace(at, elements.n + 1, scratch, stream) : error;
}

cudaError_t LaunchListKept(const uint64_t* at, int64_t n, uint32_t* places, cudaStream_t stream) {
  return ForEach(n, stream, ListKept{at, places});
}

cudaError_t LaunchTakeIndices(const int64_t* indices, const uint32_t* places, int64_t n,
                              const SparseDims& start, int64_t* out, cudaStream_t stream) {
  return ForEach(n * start.rank, stream, TakeIndex{indices, places, start, out});
}

cudaError_t LaunchPartKeys(const SparseIndicesIn& elements, int axis, int64_t part, int64_t larger,
                           uint32_t* keys, LateCheck check, cudaStream_t stream) {
  return ForEach(elements.n, stream, PutPartKey{elements, axis, part, larger, keys, check});
}

cudaError_t LaunchMatch(int64_t element, const SparseMatch& match, LateCheck check,
                        cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(match.met, 0, sizeof(*match.met), stream);
  if (error != cudaSuccess) return error;
  error = VisitSize(element, [&](auto tag) {
    return ForEach(match.n, stream, FindMatch<typename decltype(tag)::Type>{match});
  });
  if (error != cudaSuccess) return error;
  return ForEach(1, stream, CheckMet{match.met, match.num_from, check});
}

cudaError_t LaunchFilledStarts(const int64_t* starts, int64_t rows, uint64_t* at, void* scratch,
                               cudaStream_t stream) {
  const cudaError_t error = ForEach(rows + 1, stream, CountFilled{starts, rows, at});
  return error == cudaSuccess ? ScanInPlace(at, rows + 1, scratch, stream) : error;
}

cudaError_t LaunchFillRows(int64_t element, const FillRows& fill, cudaStream_t stream) {
  return VisitSize(element, [&](auto tag) {
    return ForEach(fill.n + fill.rows, stream, FillRow<typename decltype(tag)::Type>{fill});
  });
}

cudaError_t LaunchMarkTaken(const int64_t* map, int64_t n, int64_t size, uint8_t* taken,
                            LateCheck check, cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(taken, 0, static_cast<size_t>(size), stream);
  return error == cudaSuccess ? ForEach(n, stream, MarkTaken{map, size, taken, check}) : error;
}

cudaError_t LaunchRest(Number type, const void* values, const uint8_t* taken, int64_t n, void* rest,
                       cudaStream_t stream) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(n, stream,
                   TakeRest<T>{static_cast<const T*>(values), taken,
                               static_cast<typename TakeRest<T>::To*>(rest)});
  };
  const cudaError_t error = VisitFloating(type, run);
  return error == cudaErrorNotSupported ? VisitInteger(type, run) : error;
}

}  // namespace troupe::cuda
