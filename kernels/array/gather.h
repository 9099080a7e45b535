/// Picking slices of a tensor by index: the engine behind the gather ops of tensors and variables.
#ifndef TROUPE_KERNELS_ARRAY_GATHER_H_
#define TROUPE_KERNELS_ARRAY_GATHER_H_

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

/// Makes output 0: `params` of shape [batch..., outer..., limit, inner...] at `indices` [batch...,
/// i...], of shape [batch..., outer..., i..., inner...]. `batch_dims` <= `axis` < params.rank(),
/// `batch_dims` <= indices.rank() (the caller's invariants). InvalidArgument for batch dimensions
/// that differ and, with the index, for one that is not in [0, limit).
absl::Status GatherSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices, int axis,
                          int batch_dims);

/// Makes output 0: the slices of `params` at `indices` [..., depth], of shape indices.shape[:-1] +
/// params.shape[depth:]. An index that lies outside gives zeros if `ignore_bad`, else
/// InvalidArgument with it.
absl::Status GatherNdSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices,
                            bool ignore_bad);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_GATHER_H_
