/// Rows by the slices that they name, so that those of one slice follow one another in their order.
#ifndef TROUPE_KERNELS_CUDA_ROW_ORDER_CUH_
#define TROUPE_KERNELS_CUDA_ROW_ORDER_CUH_

#include "kernels/cuda/indexing.cuh"

namespace troupe::cuda {

/// Walks, from the first row of each slot, all of its rows in order. Few rows look for others of
/// their slot among all, more are sorted.
struct RowOrder {
  int64_t rows = 0;
  const int64_t* slots = nullptr;   ///< nullptr: the indices themselves.
  const int64_t* sorted = nullptr;  ///< The rows of `slots`, which are in order; nullptr: few rows.
  Indices indices{};
  int64_t limit = 0;  ///< Of the indices; others are left out and reported.
  LateCheck check{};
};

/// Bytes of scratch memory that the functions below need.
int64_t OrderScratch(int64_t rows);
/// For slots of `slices` slices, which the sort overwrites; negative ones are left out.
cudaError_t OrderSlots(int64_t* slots, int64_t rows, int64_t slices, void* scratch, RowOrder* order,
                       cudaStream_t stream);
/// For indices of slices: few are not looked at before they are used.
cudaError_t OrderIndices(Indices indices, int64_t rows, int64_t limit, const LateCheck& check,
                         void* scratch, RowOrder* order, cudaStream_t stream);

/// The slot at position k; -1: none.
__device__ inline int64_t SlotAt(const RowOrder& order, int64_t k) {
  if (order.slots != nullptr) return order.slots[k];
  const int64_t index = IndexAt(order.indices, k);
  return index < 0 || index >= order.limit ? -1 : index;
}
/// The slot at position k if that is its first; else -1.
__device__ inline int64_t FirstSlotAt(const RowOrder& order, int64_t k) {
  const int64_t slot = SlotAt(order, k);
  if (slot < 0) {
    if (order.slots == nullptr) {
      ReportLate(order.check, k, IndexAt(order.indices, k), order.limit);
    }
    return -1;
  }
  if (order.sorted != nullptr) return k > 0 && order.slots[k - 1] == slot ? -1 : slot;
  for (int64_t r = 0; r < k; ++r) {
    if (SlotAt(order, r) == slot) return -1;
  }
  return slot;
}
/// The position after k of the same slot; `rows`: there is none.
__device__ inline int64_t NextOf(const RowOrder& order, int64_t slot, int64_t k) {
  ++k;
  if (order.sorted != nullptr) return k < order.rows && order.slots[k] == slot ? k : order.rows;
  while (k < order.rows && SlotAt(order, k) != slot) ++k;
  return k;
}
__device__ inline int64_t RowAt(const RowOrder& order, int64_t k) {
  return order.sorted != nullptr ? order.sorted[k] : k;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_ROW_ORDER_CUH_
