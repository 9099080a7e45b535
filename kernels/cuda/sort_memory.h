/// Memory for sorting (`LaunchSort`).
#ifndef TROUPE_KERNELS_CUDA_SORT_MEMORY_H_
#define TROUPE_KERNELS_CUDA_SORT_MEMORY_H_

#include "kernels/cuda/sort.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// The buffers and what holds them. It may go when all is enqueued that uses them.
struct SortMemory {
  /// For n keys of 4 bytes, or 8 if `wide`. Unimplemented for more than kMaxSorted.
  static absl::StatusOr<SortMemory> Allocate(KernelContext& ctx, int64_t n, bool wide) {
    if (n > kMaxSorted) {
      return absl::UnimplementedError(
          StrCat("GPUs sort at most ", kMaxSorted, " elements, got ", n));
    }
    SortMemory memory;
    const int64_t even = (n + 1) / 2 * 2;  // All parts begin at multiples of 8 bytes.
    const int64_t key_bytes = (wide ? 8 : 4) * even, place_bytes = 4 * even;
    TROUPE_ASSIGN_OR_RETURN(
        memory.memory,
        ctx.AllocateTemp(ElementType::kUint8,
                         Shape({2 * key_bytes + 2 * place_bytes + 8 * SortCounts(n)})));
    char* at = static_cast<char*>(memory.memory.mutable_raw_data());
    const auto take = [&at](int64_t bytes) { return std::exchange(at, at + bytes); };
    memory.buffers.wide = wide;
    for (void*& keys : memory.buffers.keys) keys = take(key_bytes);
    for (uint32_t*& places : memory.buffers.places) {
      places = reinterpret_cast<uint32_t*>(take(place_bytes));
    }
    memory.buffers.counts = reinterpret_cast<uint64_t*>(at);
    return memory;
  }

  Tensor memory;
  SortBuffers buffers;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SORT_MEMORY_H_
