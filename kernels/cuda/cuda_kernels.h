/// What the kernels of GPUs share, and what registers them.
#ifndef TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_
#define TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include "api/extension.h"
#include "devices/cuda/cuda_device.h"
#include "kernels/cuda/number.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// Where a kernel enqueues; this thread's calls go to its card from now on.
inline cudaStream_t StreamOf(const KernelContext& ctx) {
  static_cast<const CudaDevice*>(ctx.step().device)->Use();
  return static_cast<cudaStream_t>(ctx.step().stream->native());
}

/// InvalidArgument for a type that cards do not compute with here.
absl::StatusOr<Number> NumberOf(ElementType type);

void RegisterElementwise(Extension& extension);
void RegisterMatMul(Extension& extension);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_
