/// Conversions of floats of 8 bits and integers of 4 (devices/narrow_types.h), on cards. All
/// enqueue and return.
#ifndef TROUPE_KERNELS_CUDA_NARROW_CAST_H_
#define TROUPE_KERNELS_CUDA_NARROW_CAST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

enum class Narrow : uint8_t { kFloat8E5m2, kFloat8E4m3fn, kInt4, kUint4 };
constexpr bool IsFloat8(Narrow type) {
  return type == Narrow::kFloat8E5m2 || type == Narrow::kFloat8E4m3fn;
}

/// y[i] = x[i] for i < n: from floats of 8 bits to any floating-point type, from integers of 4 bits
/// to int32.
cudaError_t LaunchWiden(Narrow from, Number to, const void* x, void* y, int64_t n,
                        cudaStream_t stream);
/// y[i] = x[i], rounded to nearest even, or, of int32, without its upper bits. `truncate`: bits of
/// the mantissa that `to` does not have are cut off before.
cudaError_t LaunchNarrow(Number from, Narrow to, bool truncate, const void* x, void* y, int64_t n,
                         cudaStream_t stream);
/// Between narrow types.
cudaError_t LaunchNarrowToNarrow(Narrow from, Narrow to, bool truncate, const void* x, void* y,
                                 int64_t n, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_NARROW_CAST_H_
