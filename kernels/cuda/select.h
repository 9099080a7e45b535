/// Element-wise kernels of CUDA with more than two operands. All enqueue and return.
#ifndef TROUPE_KERNELS_CUDA_SELECT_H_
#define TROUPE_KERNELS_CUDA_SELECT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/elementwise.h"

namespace troupe::cuda {

/// out[i] = condition[i] ? x[i] : y[i] for i < n, broadcast (operands 0, 1 and 2), of elements of
/// 1, 2, 4, 8 or 16 bytes. `out` may be x or y if that is not broadcast.
cudaError_t LaunchSelect(int64_t element, const bool* condition, const void* x, const void* y,
                         void* out, int64_t n, const Broadcast& broadcast, cudaStream_t stream);

/// out[i] = x[i], at most high[i], at least low[i], for i < n; of scalars the one element counts.
/// `out` may be x.
cudaError_t LaunchClip(Number type, const void* x, const void* low, bool low_is_scalar,
                       const void* high, bool high_is_scalar, void* out, int64_t n,
                       cudaStream_t stream);

struct Addends {
  static constexpr int kMost = 128;
  int count = 0;
  const void* data[kMost];
};
/// out[i] = the sum of the addends' elements i, in their order, rounded once, for i < n. `out` may
/// be one of them.
cudaError_t LaunchAddN(Number type, const Addends& addends, void* out, int64_t n,
                       cudaStream_t stream);

/// out[i] = *value for i < n, of elements of 1, 2, 4, 8 or 16 bytes; `value` is in the card's
/// memory.
cudaError_t LaunchSpread(int64_t element, const void* value, void* out, int64_t n,
                         cudaStream_t stream);

/// out[i] = start + i * delta for i < n; both are on the host, of the type.
cudaError_t LaunchRange(Number type, const void* start, const void* delta, void* out, int64_t n,
                        cudaStream_t stream);

struct RowNumbers {
  static constexpr int kMost = 128;
  int count = 0;
  int64_t rows[kMost];
};
enum class RowUpdate : uint8_t { kAssign, kAdd, kSub };
/// x[rows[k]] += v[k], or the like, for one k after the other; rows have `width` elements.
cudaError_t LaunchUpdateRows(RowUpdate update, Number type, void* x, const RowNumbers& rows,
                             const void* v, int64_t width, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SELECT_H_
