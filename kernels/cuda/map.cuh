/// Kernels that compute each element of an output from one element of each operand. A thread takes
/// 16 bytes at a time where the operands lie together.
#ifndef TROUPE_KERNELS_CUDA_MAP_CUH_
#define TROUPE_KERNELS_CUDA_MAP_CUH_

#include <utility>

#include "kernels/cuda/division.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/group.cuh"

namespace troupe::cuda {

/// Where operands are read that have the output's elements in order, or one element for all.
struct FlatWalk {
  int64_t steps[Broadcast::kMaxOperands] = {1, 1, 1};
  bool packed = false;

  __device__ int64_t step(int operand) const { return steps[operand]; }
  __device__ int64_t At(int operand, int64_t i) const { return i * steps[operand]; }
};

/// Where broadcast operands are read.
template <int kOperands>
struct StridedWalk {
  int rank = 1;
  bool packed = false;
  bool small;
  Divisor sizes[Broadcast::kMaxRank];
  int64_t strides[kOperands][Broadcast::kMaxRank];

  StridedWalk(const Broadcast& broadcast, int64_t n) : rank(broadcast.rank), small(IsSmall(n)) {
    for (int d = 0; d < rank; ++d) {
      sizes[d] = Divisor(broadcast.sizes[d]);
      for (int k = 0; k < kOperands; ++k) strides[k][d] = broadcast.strides[k][d];
    }
  }
  __device__ int64_t step(int operand) const { return strides[operand][rank - 1]; }
  __device__ int64_t At(int operand, int64_t i) const {
    return small ? Sum<true>(strides[operand], i) : Sum<false>(strides[operand], i);
  }

 private:
  template <bool kSmall>
  __device__ int64_t Sum(const int64_t* stride, int64_t i) const {
    int64_t at = 0, index;
#pragma unroll 1  // Registers are few.
    for (int d = rank - 1; d > 0; --d) {
      i = sizes[d].template Divide<kSmall>(i, &index);
      at += index * stride[d];
    }
    return at + i * stride[0];
  }
};

/// `kSize` elements from the output's element `i` on; after `count` of them the last one again.
template <int kSize, typename T, typename Walk>
__device__ Packed<T, kSize> Load(const T* from, const Walk& walk, int operand, int64_t i,
                                 int count) {
  Packed<T, kSize> pack;
  if (walk.packed && count == kSize) {
    const int64_t at = walk.At(operand, i);
    if (walk.step(operand) != 0) return LoadPacked<kSize>(from, at);
    const T value = from[at];
    for (int k = 0; k < kSize; ++k) pack.values[k] = value;
    return pack;
  }
  for (int k = 0; k < kSize; ++k) {
    pack.values[k] = from[walk.At(operand, i + (k < count ? k : count - 1))];
  }
  return pack;
}

/// The first `count` elements of a pack.
template <typename R, int kSize, typename Walk>
__device__ void Store(const Packed<R, kSize>& pack, const Walk& walk, R* out, int64_t i,
                      int count) {
  if (walk.packed && count == kSize) {
    StorePacked(pack, out, i);
    return;
  }
  for (int k = 0; k < kSize; ++k) {
    if (k < count) out[i + k] = pack.values[k];
  }
}

template <typename R, int kSize, typename Fn, typename... Packs>
__device__ Packed<R, kSize> ApplyToPacks(const Fn& fn, const Packs&... packs) {
  Packed<R, kSize> result;
  for (int k = 0; k < kSize; ++k) result.values[k] = fn(packs.values[k]...);
  return result;
}

/// Elements of a pack: those of the largest type take 16 bytes.
template <typename... Ts>
inline constexpr int kPackSize = 16 / static_cast<int>(std::max({sizeof(Ts)...}));

template <typename Fn, typename Walk, typename R, typename... Ts, size_t... kOperands>
__device__ void MapPacks(const Fn& fn, const Walk& walk, R* out, int64_t n,
                         std::index_sequence<kOperands...>, const Ts*... operands) {
  constexpr int kSize = kPackSize<R, Ts...>;
  const int64_t packs = (n + kSize - 1) / kSize, step = int64_t{gridDim.x} * kThreads;
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs; p += step) {
    const int64_t i = p * kSize;
    const int count = n - i < kSize ? static_cast<int>(n - i) : kSize;
    const Packed<R, kSize> result = ApplyToPacks<R, kSize>(
        fn, Load<kSize>(operands, walk, static_cast<int>(kOperands), i, count)...);
    Store(result, walk, out, i, count);
  }
}

template <typename Fn, typename Walk, typename R, typename... Ts>
__global__ void __launch_bounds__(kThreads)
    MapKernel(Fn fn, Walk walk, R* out, int64_t n, const Ts*... operands) {
  MapPacks(fn, walk, out, n, std::index_sequence_for<Ts...>(), operands...);
}

template <int kSize, typename T>
bool CanPack(const T* data, int64_t step) {
  return step == 0 || reinterpret_cast<uintptr_t>(data) % (sizeof(T) * kSize) == 0;
}

/// Enqueues out[i] = fn(operands[i]...) for i < n, where an operand of step 0 has one element for
/// all. `out` may be an operand of its own type with a step of 1. `fn` is copied.
template <typename Fn, typename R, typename... Ts>
cudaError_t MapFlat(Fn fn, FlatWalk walk, int64_t n, cudaStream_t stream, R* out,
                    const Ts*... operands) {
  if (n <= 0) return cudaSuccess;
  constexpr int kSize = kPackSize<R, Ts...>;
  int k = 0;
  walk.packed = CanPack<kSize>(out, 1) && (CanPack<kSize>(operands, walk.steps[k++]) && ...);
  return Launch(&MapKernel<Fn, FlatWalk, R, Ts...>, Blocks((n + kSize - 1) / kSize), kThreads,
                stream, fn, walk, out, n, operands...);
}

/// The same with operands that are broadcast.
template <typename Fn, typename R, typename... Ts>
cudaError_t MapStrided(Fn fn, const Broadcast& broadcast, int64_t n, cudaStream_t stream, R* out,
                       const Ts*... operands) {
  if (n <= 0) return cudaSuccess;
  if (broadcast.rank == 1) {
    FlatWalk flat;
    for (size_t k = 0; k < sizeof...(Ts); ++k) flat.steps[k] = broadcast.strides[k][0];
    return MapFlat(fn, flat, n, stream, out, operands...);
  }
  using Walk = StridedWalk<sizeof...(Ts)>;
  constexpr int kSize = kPackSize<R, Ts...>;
  Walk walk(broadcast, n);
  const int last = walk.rank - 1;
  int k = 0;
  walk.packed =
      CanPack<kSize>(out, 1) && (CanPack<kSize>(operands, walk.strides[k++][last]) && ...);
  // A pack must not reach over the end of a row.
  walk.packed = walk.packed && broadcast.sizes[last] % kSize == 0;
  for (int d = 0; d < last; ++d) {
    for (const auto& strides : walk.strides) {
      walk.packed = walk.packed && (strides[last] == 0 || strides[d] % kSize == 0);
    }
  }
  return Launch(&MapKernel<Fn, Walk, R, Ts...>, Blocks((n + kSize - 1) / kSize), kThreads, stream,
                fn, walk, out, n, operands...);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_MAP_CUH_
