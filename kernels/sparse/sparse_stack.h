/// Sparse tensors as values: taken apart along the first dimension, and put on one another again.
#ifndef TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_
#define TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"
#include "kernels/sparse/sparse_tensor.h"

namespace troupe {

/// A sparse tensor that is not among the inputs.
struct StoredSparse {
  Tensor indices, values, shape;
};

/// The rows of a sparse tensor of rank 2 at least, which must be in row-major order.
absl::StatusOr<std::vector<StoredSparse>> SplitRows(KernelContext& ctx, const SparseTensor& tensor);

/// Makes outputs 0 to 2 the sparse tensor that has `parts`, in row-major order of `outer`, as its
/// elements along the dimensions `outer`, which have as many elements. Each other dimension is as
/// large as the largest of the parts. InvalidArgument unless they are sparse tensors with values of
/// `type` and of one rank.
absl::Status PutStacked(KernelContext& ctx, absl::Span<const StoredSparse> parts,
                        absl::Span<const int64_t> outer, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_
