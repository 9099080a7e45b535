/// Letting go of tensors without recursion.
#ifndef TROUPE_KERNELS_DATA_RELEASE_H_
#define TROUPE_KERNELS_DATA_RELEASE_H_

#include <vector>

#include "devices/tensor.h"

namespace troupe {

/// Destroys the tensors. If that destroys resources whose destructors call this function again,
/// their tensors follow later: chains of arrays that hold handles to arrays may be of any length.
void Release(std::vector<Tensor> tensors);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_RELEASE_H_
