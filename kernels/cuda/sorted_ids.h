/// Rows in the order of the segments that they belong to.
#ifndef TROUPE_KERNELS_CUDA_SORTED_IDS_H_
#define TROUPE_KERNELS_CUDA_SORTED_IDS_H_

#include <bit>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/segment.h"
#include "kernels/cuda/sort_memory.h"

namespace troupe::cuda {

/// The ids of a tensor of int64 or int32.
inline Indices IndicesOf(const Tensor& ids) {
  return {ids.raw_data(), ids.type() == ElementType::kInt64 ? Number::kInt64 : Number::kInt32};
}

/// What has been enqueued of a sort. The memory may go when all is enqueued that uses it.
struct SortedRows {
  SortMemory memory;
  bool wide = false;
  const void* keys = nullptr;        ///< Of 8 bytes if `wide`, else 4.
  const uint32_t* places = nullptr;  ///< Where they were.
  int64_t rows = 0;

  /// Sorts numbers of `bits` bits that `make(keys)` enqueues.
  template <typename MakeKeys>
  static absl::StatusOr<SortedRows> Of(KernelContext& ctx, int64_t rows, int bits, MakeKeys make) {
    SortedRows sorted;
    sorted.wide = bits > 32;
    sorted.rows = rows;
    if (rows == 0) return sorted;
    TROUPE_ASSIGN_OR_RETURN(sorted.memory, SortMemory::Allocate(ctx, rows, sorted.wide));
    const SortBuffers& buffers = sorted.memory.buffers;
    int result = 0;
    cudaError_t error = make(buffers.keys[0]);
    if (error == cudaSuccess) {
      error = LaunchSort(buffers, rows, bits, /*fresh=*/true, &result, StreamOf(ctx));
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(error, "a sort"));
    sorted.keys = buffers.keys[result];
    sorted.places = buffers.places[result];
    return sorted;
  }

  /// Those whose id is in [0, segments) come first, in their order.
  static absl::StatusOr<SortedRows> Of(KernelContext& ctx, Indices ids, int64_t rows,
                                       int64_t segments, BadIds bad, const LateCheck& check) {
    const int bits = BitsFor(segments);
    return Of(ctx, rows, bits, [&](void* keys) {
      return LaunchSegmentKeys(ids, rows, segments, bad, bits > 32, keys, check, StreamOf(ctx));
    });
  }

  /// Where each of so many segments begins, and the last one ends.
  absl::StatusOr<Tensor> Starts(KernelContext& ctx, int64_t segments) const {
    TROUPE_ASSIGN_OR_RETURN(Tensor starts,
                            ctx.AllocateTemp(ElementType::kInt64, Shape({segments + 1})));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchSegmentStarts(keys, wide, rows, segments, starts.mutable_data<int64_t>(),
                                       StreamOf(ctx)),
                   "a search for segments"));
    return starts;
  }

  static int BitsFor(int64_t largest) { return std::bit_width(static_cast<uint64_t>(largest)); }
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SORTED_IDS_H_
