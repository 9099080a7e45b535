/// Writing to strided slices, of tensors and of variables.
#ifndef TROUPE_KERNELS_ARRAY_STRIDED_SLICE_H_
#define TROUPE_KERNELS_ARRAY_STRIDED_SLICE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe::layout {

/// The attributes of a strided slice: a bit for each position of its bounds.
struct StridedSliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink_axis = 0;
};
StridedSliceMasks ReadMasks(KernelConstruction& c);

/// Replaces the slice that inputs 1 to 3 say of a tensor of shape `shape` by input 4, which is
/// broadcast to it. `sliced` gives the tensor, once the inputs are known to be right; the shape is
/// a copy, as its tensor may be gone by then.
absl::Status AssignSlice(KernelContext& ctx, const StridedSliceMasks& masks, Shape shape,
                         absl::FunctionRef<absl::StatusOr<Tensor*>()> sliced);

}  // namespace troupe::layout

#endif  // TROUPE_KERNELS_ARRAY_STRIDED_SLICE_H_
