/// Sparse tensors as values: taken apart along the first dimension, and put on one another again.
#ifndef TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_
#define TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
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

/// InvalidArgument unless the rank is 2 at least.
absl::Status CheckHasRows(const SparseTensor& tensor);

/// Calls `visit(row, part)` for each row of a sparse tensor of rank 2 at least, which must be in
/// row-major order, and stops at an error. One row at a time is held, since the shape may claim any
/// number of rows; those without elements share their tensors.
absl::Status ForEachRow(KernelContext& ctx, const SparseTensor& tensor,
                        absl::FunctionRef<absl::Status(int64_t row, StoredSparse part)> visit);

/// Makes outputs 0 to 2 the sparse tensor that has `parts`, in row-major order of `outer`, as its
/// elements along the dimensions `outer`, which have as many elements. Each other dimension is as
/// large as the largest of the parts. InvalidArgument unless they are sparse tensors with values of
/// `type` and of one rank.
absl::Status PutStacked(KernelContext& ctx, absl::Span<const StoredSparse> parts,
                        absl::Span<const int64_t> outer, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SPARSE_SPARSE_STACK_H_
