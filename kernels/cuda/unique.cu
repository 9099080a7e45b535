#include "kernels/cuda/unique.h"

#include <cstring>

#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
template <typename T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
struct MakeKey {
  const T* in;
  KeyOf<T>* keys;
  __device__ void operator()(int64_t i) const {
    BitsOf<T> bits;
    memcpy(&bits, &in[i], sizeof(bits));
    if constexpr (kIsFloating<T>) {
      const auto x = static_cast<WideType<T>>(in[i]);
      if (x != x) bits = static_cast<BitsOf<T>>(~BitsOf<T>{0});
      if (x == 0) bits = 0;  // Whatever its sign.
    }
    keys[i] = bits;
  }
};

template <typename K>
struct FindHeads {
  const K* keys;
  const uint32_t* places;
  UniqueOrder order;
  K nan;
  bool has_nan;
  __device__ void operator()(int64_t k) const {
    const K key = keys[k];
    const bool head = k == 0 || key != keys[k - 1] || (has_nan && key == nan);
    const uint32_t place = places[k];
    order.places[k] = place;
    order.heads[k] = head ? 1 : 0;
    order.is_first[place] = head ? 1 : 0;
  }
};

struct NumberFirst {
  UniqueFound found;
  __device__ void operator()(int64_t j) const {
    found.numbers[found.first[j]] = static_cast<int32_t>(j);
  }
};

template <typename Index>
struct NumberAll {
  UniqueOrder order;
  UniqueFound found;
  Index* idx;
  Index* counts;
  __device__ void operator()(int64_t k) const {
    // The last head at or before k.
    int64_t low = 0, high = found.distinct;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (found.heads[middle] <= k ? low : high) = middle;
    }
    const int64_t head = found.heads[low];
    const int32_t number = found.numbers[order.places[head]];
    idx[order.places[k]] = static_cast<Index>(number);
    if (counts == nullptr || k != head) return;
    const int64_t end = low + 1 < found.distinct ? found.heads[low + 1] : order.n;
    counts[number] = static_cast<Index>(end - head);
  }
};

template <typename Index>
cudaError_t NumberElements(const UniqueOrder& order, const UniqueFound& found, void* idx,
                           void* counts, cudaStream_t stream) {
  return ForEach(
      order.n, stream,
      NumberAll<Index>{order, found, static_cast<Index*>(idx), static_cast<Index*>(counts)});
}

bool HasNan(Number type) {
  return type == Number::kHalf || type == Number::kBfloat16 || type == Number::kFloat ||
         type == Number::kDouble;
}

/// Of integers only the bits count.
template <typename Fn>
cudaError_t VisitKeyed(Number type, Fn fn) {
  if (type == Number::kInt32) type = Number::kUint32;
  const cudaError_t error = VisitUnsigned(type == Number::kBool ? Number::kUint8 : type, fn);
  return error == cudaErrorNotSupported ? VisitFloating(type, fn) : error;
}

}  // namespace

int UniqueKeyBits(Number type) {
  int bits = 0;
  VisitKeyed(type, [&bits](auto tag) {
    bits = 8 * static_cast<int>(sizeof(typename decltype(tag)::Type));
    return cudaSuccess;
  });
  return bits;
}

cudaError_t LaunchUniqueKeys(Number type, const void* in, void* keys, int64_t n,
                             cudaStream_t stream) {
  return VisitKeyed(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(n, stream, MakeKey<T>{static_cast<const T*>(in), static_cast<KeyOf<T>*>(keys)});
  });
}

cudaError_t LaunchUniqueHeads(Number type, const void* keys, const uint32_t* places,
                              const UniqueOrder& order, cudaStream_t stream) {
  const int bits = UniqueKeyBits(type);
  if (bits == 64) {
    return ForEach(order.n, stream,
                   FindHeads<uint64_t>{static_cast<const uint64_t*>(keys), places, order,
                                       ~uint64_t{0}, HasNan(type)});
  }
  return ForEach(
      order.n, stream,
      FindHeads<uint32_t>{static_cast<const uint32_t*>(keys), places, order,
                          static_cast<uint32_t>((uint64_t{1} << bits) - 1), HasNan(type)});
}

cudaError_t LaunchUniqueNumbers(const UniqueOrder& order, const UniqueFound& found, bool wide,
                                void* idx, void* counts, cudaStream_t stream) {
  const cudaError_t error = ForEach(found.distinct, stream, NumberFirst{found});
  if (error != cudaSuccess) return error;
  return wide ? NumberElements<int64_t>(order, found, idx, counts, stream)
              : NumberElements<int32_t>(order, found, idx, counts, stream);
}

}  // namespace troupe::cuda
