// Slices put by index. Whatever rows name the same slice, the last one counts.
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) Slots(NdIndices nd, int64_t* slots, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x; r < nd.rows; r += step) {
    slots[r] = SlotOf(nd, r, check);
  }
}

__global__ void __launch_bounds__(kThreads)
    CheckOrder(const int64_t* slots, int64_t rows, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = 1 + int64_t{blockIdx.x} * kThreads + threadIdx.x; r < rows; r += step) {
    if (slots[r] <= slots[r - 1]) ReportLate(check, r, slots[r] == slots[r - 1]);
  }
}

/// The last row of each slot.
__global__ void __launch_bounds__(kThreads) Own(const int64_t* slots, int64_t rows, int* owners) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x; r < rows; r += step) {
    if (slots[r] >= 0) atomicMax(&owners[slots[r]], static_cast<int>(r));
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    Put(const int64_t* slots, int64_t n, Divisor inner, int64_t width, const T* updates,
        bool scalar, T* out, const int* owners) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t row = inner.template Divide<kSmall>(i, &column), slot = slots[row];
    if (slot < 0 || (owners != nullptr && owners[slot] != row)) continue;
    out[slot * width + column] = updates[scalar ? 0 : i];
  }
}

}  // namespace

cudaError_t LaunchSlots(const NdIndices& nd, int64_t* slots, const LateCheck& check,
                        cudaStream_t stream) {
  return Launch(&Slots, Blocks(nd.rows), kThreads, stream, nd, slots, check);
}

cudaError_t LaunchCheckOrder(const int64_t* slots, int64_t rows, const LateCheck& check,
                             cudaStream_t stream) {
  if (rows < 2) return cudaSuccess;
  return Launch(&CheckOrder, Blocks(rows), kThreads, stream, slots, rows, check);
}

cudaError_t LaunchPut(int64_t element, const int64_t* slots, int64_t rows, int64_t inner,
                      const void* updates, bool scalar, void* out, int64_t slices, int* owners,
                      cudaStream_t stream) {
  if (owners != nullptr) {
    cudaError_t error =
        cudaMemsetAsync(owners, 0xff, static_cast<size_t>(slices) * sizeof(int), stream);
    if (error != cudaSuccess) return error;
    error = Launch(&Own, Blocks(rows), kThreads, stream, slots, rows, owners);
    if (error != cudaSuccess) return error;
  }
  const int64_t unit = scalar ? element : Unit().Add(inner * element).Add(updates).Add(out).bytes();
  const int64_t width = inner * element / unit, n = rows * width;
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Put<T, true> : &Put<T, false>, Blocks(n), kThreads, stream, slots,
                  n, Divisor(width), width, static_cast<const T*>(updates), scalar,
                  static_cast<T*>(out), owners);
  });
}

}  // namespace troupe::cuda
