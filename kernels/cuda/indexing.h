/// Picking and putting slices by index, on cards. Elements are known by their size (1, 2, 4, 8, 16
/// bytes) but where they are added.
#ifndef TROUPE_KERNELS_CUDA_INDEXING_H_
#define TROUPE_KERNELS_CUDA_INDEXING_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// Integers in device memory.
struct Indices {
  const void* data;
  Number type;  ///< int8, uint8, int32 or int64.
};

/// out[b, o, i, :] = params[b, o, indices[b, i], :].
struct GatherSizes {
  int64_t batch = 1, outer = 1, limit = 1, indices = 1, inner = 1;
};
/// An index that is not in [0, limit) gives zeros and is reported: its position, itself, the limit.
cudaError_t LaunchGather(int64_t element, const GatherSizes& sizes, const void* params,
                         Indices indices, void* out, const LateCheck& check, cudaStream_t stream);

/// Rows of indices into the first `depth` dimensions of a tensor, whose slices have `inner`
/// elements.
struct NdIndices {
  static constexpr int kMost = 16;
  Indices indices;
  int64_t rows, depth, inner;
  int64_t sizes[kMost];
  bool ignores_bad;  ///< Else they are reported as those of LaunchGather.
};
/// Slices at the indices; zeros for bad ones.
cudaError_t LaunchGatherNd(int64_t element, const NdIndices& nd, const void* params, void* out,
                           const LateCheck& check, cudaStream_t stream);

/// slots[r] = number of the slice that row r of the indices names; -1 for a bad one.
cudaError_t LaunchSlots(const NdIndices& nd, int64_t* slots, const LateCheck& check,
                        cudaStream_t stream);
/// Reports the first position r with slots[r] <= slots[r - 1]: r, and 1 if they are equal.
cudaError_t LaunchCheckOrder(const int64_t* slots, int64_t rows, const LateCheck& check,
                             cudaStream_t stream);
/// Slice slots[r] of `out` becomes row r of `updates` (of one element for all if `scalar`): of rows
/// with the same slot, the last. `owners`: scratch memory for as many as there are slices, or
/// nullptr if no slot is named twice.
cudaError_t LaunchPut(int64_t element, const int64_t* slots, int64_t rows, int64_t inner,
                      const void* updates, bool scalar, void* out, int64_t slices, int* owners,
                      cudaStream_t stream);

/// What becomes of an element and of the update for it.
enum class CombineOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };
/// Bytes of scratch memory that `LaunchCombine` needs.
int64_t CombineScratch(int64_t rows);
/// Row r of `updates` (of one element for all if `scalar`) is added to slice slots[r] of `out`, or
/// the like, in the order of rows: the same bits every time. Complex numbers, which are only added
/// and subtracted, are pairs of real ones. `zero`: of numbers to divide by that are 0, which leave
/// the element as it is; nullptr: they divide, if they are not integers.
cudaError_t LaunchCombine(CombineOp op, Number type, int64_t* slots, int64_t rows, int64_t inner,
                          const void* updates, bool scalar, void* out, int64_t slices,
                          void* scratch, const LateCheck* zero, cudaStream_t stream);

/// Reports the position of a divisor that is 0, if there is one.
cudaError_t LaunchFindZero(Number type, const void* divisors, int64_t n, const LateCheck& check,
                           cudaStream_t stream);

/// out[o, d, i] = *on where indices[o, i] is d, else *off; both in device memory.
cudaError_t LaunchOneHot(int64_t element, Indices indices, int64_t outer, int64_t depth,
                         int64_t inner, const void* on, const void* off, void* out,
                         cudaStream_t stream);

/// Tensors of rows of `inner` elements.
struct RowTensors {
  static constexpr int kMost = 64;
  int count = 0;
  void* data[kMost];
  int64_t begin[kMost + 1];  ///< Of the rows of each among those of all.
};
/// Row r of `out` becomes row sources[r], of those of all tensors; zeros where that is -1 and rows
/// of tensors that are not given stay what they are.
cudaError_t LaunchStitch(int64_t element, const RowTensors& from, const int64_t* sources,
                         int64_t rows, int64_t inner, void* out, cudaStream_t stream);
/// Row r of all tensors becomes row sources[r] of `data`.
cudaError_t LaunchDeal(int64_t element, const RowTensors& to, const int64_t* sources, int64_t inner,
                       const void* data, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_INDEXING_H_
