/// Softmax and cross entropies of CUDA.
#ifndef TROUPE_KERNELS_CUDA_SOFTMAX_H_
#define TROUPE_KERNELS_CUDA_SOFTMAX_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// A matrix that may be broadcast: element [r, c] is data[r * row_stride + c * step].
struct RowsOf {
  const void* data;
  int64_t row_stride, step;
};

/// Of real floating-point types. At least one column; `out` may be `in`.
cudaError_t LaunchSoftmax(bool log, Number type, const void* in, void* out, int64_t rows,
                          int64_t cols, cudaStream_t stream);
/// losses[r] and the gradients of their sum with respect to the logits, which may replace logits
/// or labels that are not broadcast.
cudaError_t LaunchCrossEntropy(Number type, RowsOf logits, RowsOf labels, void* losses,
                               void* gradients, int64_t rows, int64_t cols, cudaStream_t stream);
/// The same for labels (int64, else int32) that are the numbers of columns. Those out of range are
/// reported with row, label and cols.
cudaError_t LaunchSparseCrossEntropy(Number type, bool wide_labels, const void* logits,
                                     const void* labels, void* losses, void* gradients,
                                     int64_t rows, int64_t cols, LateCheck check,
                                     cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SOFTMAX_H_
