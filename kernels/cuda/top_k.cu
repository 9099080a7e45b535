// Few: a group of threads for each row looks for the largest element behind the last one found, k
// times, out of a cache after the first time. Many: all elements are sorted, then their rows.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/top_k.h"

namespace troupe::cuda {
namespace {

template <typename T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// Ordered like the elements; NaN comes last, and is equal to itself.
template <typename T>
__device__ KeyOf<T> Key(T value) {
  using K = KeyOf<T>;
  constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
  if constexpr (kIsFloating<T>) {
    const WideType<T> x = static_cast<WideType<T>>(value);
    if (x != x) return static_cast<K>(~K(0));
    if (x == 0) return kSign;
    K bits;
    memcpy(&bits, &x, sizeof(bits));
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(static_cast<K>(value) ^ kSign);
  } else {
    return static_cast<K>(value);
  }
}

template <typename K>
struct Found {
  K key;
  int64_t index;  ///< Below 0: nothing.
};
/// `a` comes before `b`.
template <typename K>
__device__ bool Before(const Found<K>& a, const Found<K>& b) {
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}
template <typename K>
__device__ Found<K> First(const Found<K>& a, const Found<K>& b) {
  if (a.index < 0) return b;
  return b.index < 0 || Before(a, b) ? a : b;
}

__device__ inline void PutIndex(void* indices, bool wide, int64_t at, int64_t index) {
  if (wide) {
    static_cast<int64_t*>(indices)[at] = index;
  } else {
    static_cast<int32_t*>(indices)[at] = static_cast<int32_t>(index);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) TopFew(TopKCall call, int group) {
  using K = KeyOf<T>;
  __shared__ Found<K> of_warps[kWarps];
  const int lane = threadIdx.x % group, per_block = kThreads / group;
  const int64_t step = int64_t{gridDim.x} * per_block;
  for (int64_t first = int64_t{blockIdx.x} * per_block; first < call.rows; first += step) {
    const int64_t row = first + threadIdx.x / group;
    const int64_t end = row < call.rows ? call.n : 0;
    const T* const in = static_cast<const T*>(call.in) + row * call.n;
    Found<K> last{K(0), -1};
    for (int64_t i = 0; i < call.k; ++i) {
      Found<K> best{K(0), -1};
#pragma unroll 4
      for (int64_t c = lane; c < end; c += group) {
        const Found<K> one{Key(in[c]), c};
        if (last.index < 0 || Before(last, one)) best = First(best, one);
      }
      last = JoinGroup(best, group, of_warps, [](Found<K> a, Found<K> b) { return First(a, b); });
      if (lane > 0 || end == 0) continue;
      static_cast<T*>(call.values)[row * call.k + i] = in[last.index];
      PutIndex(call.indices, call.wide_indices, row * call.k + i, last.index);
    }
  }
}

template <typename T>
struct TopKey {
  __device__ void operator()(int64_t i) const { keys[i] = ~Key(in[i]); }
  const T* in;
  KeyOf<T>* keys;
};

template <typename K>
struct RowKey {
  __device__ void operator()(int64_t i) const { keys[i] = static_cast<K>(places[i] / n); }
  const uint32_t* places;
  int64_t n;
  K* keys;
};

template <typename T>
struct TakeTop {
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / call.k, place = places[row * call.n + (i - row * call.k)];
    static_cast<T*>(call.values)[i] = static_cast<const T*>(call.in)[place];
    PutIndex(call.indices, call.wide_indices, i, place - row * call.n);
  }
  TopKCall call;
  const uint32_t* places;
};

template <typename Fn>
cudaError_t VisitReal(Number type, Fn fn) {
  const cudaError_t error = VisitFloating(type, fn);
  return error == cudaErrorNotSupported ? VisitInteger(type, fn) : error;
}
int64_t SizeOf(Number type) {
  int64_t size = 0;
  VisitReal(type, [&](auto tag) {
    size = sizeof(typename decltype(tag)::Type);
    return cudaSuccess;
  });
  return size;
}

/// How many larger ones there are, and whether one is not finite.
struct Rank {
  int64_t larger;
  int64_t bad;
};

template <typename Target>
__global__ void __launch_bounds__(kThreads)
    InTopK(const float* predictions, const Target* targets, int64_t rows, int64_t n, int64_t k,
           bool* out, int group) {
  __shared__ Rank of_warps[kWarps];
  const int lane = threadIdx.x % group, per_block = kThreads / group;
  const int64_t step = int64_t{gridDim.x} * per_block;
  for (int64_t first = int64_t{blockIdx.x} * per_block; first < rows; first += step) {
    const int64_t row = first + threadIdx.x / group;
    const int64_t target = row < rows ? static_cast<int64_t>(targets[row]) : -1;
    const bool is_one = target >= 0 && target < n;
    const float* const from = predictions + row * n;
    const float wanted = is_one ? from[target] : 0;
    Rank rank{0, 0};
#pragma unroll 4
    for (int64_t c = lane; c < (is_one ? n : 0); c += group) {
      const float x = from[c];
      if (x > wanted) ++rank.larger;
      if (!(x - x == 0)) ++rank.bad;  // Not finite.
    }
    rank = JoinGroup(rank, group, of_warps, [](Rank a, Rank b) {
      return Rank{a.larger + b.larger, a.bad + b.bad};
    });
    if (lane == 0 && row < rows) out[row] = is_one && rank.bad == 0 && rank.larger < k;
  }
}

unsigned GridOf(int64_t rows, int group) {
  const int64_t per_block = kThreads / group;
  return static_cast<unsigned>(std::min<int64_t>((rows + per_block - 1) / per_block, INT32_MAX));
}

}  // namespace

cudaError_t LaunchTopFew(const TopKCall& call, cudaStream_t stream) {
  const int group = GroupFor(call.n);
  return VisitReal(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&TopFew<T>, GridOf(call.rows, group), kThreads, stream, call, group);
  });
}

cudaError_t LaunchTopKeys(const TopKCall& call, void* keys, cudaStream_t stream) {
  return VisitReal(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(call.rows * call.n, stream,
                   TopKey<T>{static_cast<const T*>(call.in), static_cast<KeyOf<T>*>(keys)});
  });
}

cudaError_t LaunchTopRows(const TopKCall& call, const uint32_t* places, bool wide, void* keys,
                          cudaStream_t stream) {
  if (wide) {
    return ForEach(call.rows * call.n, stream,
                   RowKey<uint64_t>{places, call.n, static_cast<uint64_t*>(keys)});
  }
  return ForEach(call.rows * call.n, stream,
                 RowKey<uint32_t>{places, call.n, static_cast<uint32_t*>(keys)});
}

cudaError_t LaunchTakeTop(const TopKCall& call, const uint32_t* places, cudaStream_t stream) {
  return VisitSize(SizeOf(call.type), [&](auto tag) {
    return ForEach(call.rows * call.k, stream, TakeTop<typename decltype(tag)::Type>{call, places});
  });
}

cudaError_t LaunchInTopK(bool wide_targets, const float* predictions, const void* targets,
                         int64_t rows, int64_t n, int64_t k, bool* out, cudaStream_t stream) {
  const int group = GroupFor(n);
  if (wide_targets) {
    return Launch(&InTopK<int64_t>, GridOf(rows, group), kThreads, stream, predictions,
                  static_cast<const int64_t*>(targets), rows, n, k, out, group);
  }
  return Launch(&InTopK<int32_t>, GridOf(rows, group), kThreads, stream, predictions,
                static_cast<const int32_t*>(targets), rows, n, k, out, group);
}

}  // namespace troupe::cuda
