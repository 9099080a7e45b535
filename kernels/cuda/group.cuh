/// Groups of neighbouring threads that work on one thing, and packs of neighbouring elements.
#ifndef TROUPE_KERNELS_CUDA_GROUP_CUH_
#define TROUPE_KERNELS_CUDA_GROUP_CUH_

#include <cstring>
#include <limits>

#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kWarps = kThreads / kWarp;

/// Code of a card may use constants of the host, but call no functions.
template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::lowest();
template <typename T>
inline constexpr T kHighest = std::numeric_limits<T>::max();
template <typename T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// kN elements that are read or written at once, at an address that is a multiple of their size.
template <typename T, int kN>
struct alignas(sizeof(T) * kN) Packed {
  T values[kN];
};
template <int kN, typename T>
__device__ Packed<T, kN> LoadPacked(const T* from, int64_t at) {
  return *reinterpret_cast<const Packed<T, kN>*>(from + at);
}
/// To global memory, by instructions of 4 to 16 bytes: of an assignment nvcc makes one for each
/// element at times.
template <int kN, typename T>
__device__ void StorePacked(const Packed<T, kN>& values, T* to, int64_t at) {
#ifdef __CUDACC__
  constexpr int kBytes = sizeof(values);
  if constexpr (kBytes == 4 || kBytes == 8 || kBytes % 16 == 0) {
    uint32_t words[kBytes / 4];
    memcpy(words, &values, kBytes);
    const size_t address = __cvta_generic_to_global(to + at);
    if constexpr (kBytes == 4) {
      asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(words[0]) : "memory");
    } else if constexpr (kBytes == 8) {
      asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(words[0]), "r"(words[1])
                   : "memory");
    } else {
#pragma unroll
      for (int w = 0; w < kBytes / 4; w += 4) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address + 4 * w),
                     "r"(words[w]), "r"(words[w + 1]), "r"(words[w + 2]), "r"(words[w + 3])
                     : "memory");
      }
    }
    return;
  }
#endif
  *reinterpret_cast<Packed<T, kN>*>(to + at) = values;
}

/// Element k of a pack, known to the compiler. A bfloat16 is the upper half of a float: of two in a
/// word each takes one instruction, where the conversion of a single one takes two.
template <typename T, int kN>
__device__ float FloatAt(const Packed<T, kN>& pack, int k) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && kN % 2 == 0) {
    uint32_t words[kN / 2];
    memcpy(words, &pack, sizeof(pack));
    return __uint_as_float(k % 2 == 0 ? words[k / 2] << 16 : words[k / 2] & 0xffff0000u);
  } else {
    return static_cast<float>(pack.values[k]);
  }
}

/// The value of the lane whose number differs by the bits of `mask`. All lanes of the warp call it.
template <typename V>
__device__ V ShuffleXor(V value, int mask) {
  constexpr int kWords = (sizeof(V) + 3) / 4;
  unsigned words[kWords] = {};
  memcpy(words, &value, sizeof(V));
  for (int w = 0; w < kWords; ++w) words[w] = __shfl_xor_sync(~0u, words[w], mask);
  memcpy(&value, words, sizeof(V));
  return value;
}
/// The value of the lane `delta` before this one; its own for the first ones.
template <typename V>
__device__ V ShuffleUp(V value, int delta) {
  constexpr int kWords = (sizeof(V) + 3) / 4;
  unsigned words[kWords] = {};
  memcpy(words, &value, sizeof(V));
  for (int w = 0; w < kWords; ++w) words[w] = __shfl_up_sync(~0u, words[w], delta);
  memcpy(&value, words, sizeof(V));
  return value;
}

/// Joins the values of a group: a power of two up to 32, or kThreads (the block, of so many
/// threads). All threads of the block call it; all of the group get the result, always joined in
/// the same order. `of_warps` is shared memory of kWarps values.
template <typename V, typename Join>
__device__ V JoinGroup(V value, int group, V* of_warps, Join join) {
  for (int mask = (group < kWarp ? group : kWarp) / 2; mask > 0; mask /= 2) {
    // Of two sums of products nvcc joins the second product with the addition, without rounding it:
    // which one that is must not differ between lanes.
    const V other = ShuffleXor(value, mask);
    value =
        (threadIdx.x & static_cast<unsigned>(mask)) == 0 ? join(value, other) : join(other, value);
  }
  if (group <= kWarp) return value;
  __syncthreads();  // They may still be read from the last time.
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = of_warps[0];
  for (int w = 1; w < kWarps; ++w) value = join(value, of_warps[w]);
  return value;
}

/// How many neighbouring threads read a row of so many packs; for `JoinGroup`.
inline int GroupFor(int64_t packs) {
  if (packs >= 4 * kThreads) return kThreads;
  int group = 1;
  while (group < kWarp && group * 4 < packs) group *= 2;
  return group;
}

inline bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_GROUP_CUH_
