/// Base of kernels of GPUs that compute with the type of their first input.
#ifndef TROUPE_KERNELS_CUDA_ONE_TYPE_KERNEL_H_
#define TROUPE_KERNELS_CUDA_ONE_TYPE_KERNEL_H_

#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

class OneTypeKernel : public Kernel {
 public:
  OneTypeKernel(KernelConstruction& construction, absl::Status* status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  Number type_ = Number::kFloat;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_ONE_TYPE_KERNEL_H_
