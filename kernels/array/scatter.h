/// Writing slices to computed places of a tensor: the one engine behind the scatter ops of
/// variables and tensors, the in-place ops and SparseToDense.
#ifndef TROUPE_KERNELS_ARRAY_SCATTER_H_
#define TROUPE_KERNELS_ARRAY_SCATTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

/// What becomes of an element and of the update for it. Integers wrap around; sums and differences
/// of bools are their "or" and "exclusive or".
enum class ScatterOp : uint8_t { kUpdate, kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

/// For each r, in order: combines the `inner` elements of `out` that begin at element `offsets[r]`
/// with row r of `updates`, or with its only element if it is a scalar. Negative offsets are left
/// out; others are multiples of `inner` within `out`. Updates of one element are applied in order,
/// whatever the number of threads. InvalidArgument for a division of integers by zero (nothing is
/// written then), Unimplemented for types that the operation is not defined for.
absl::Status ScatterSlices(KernelContext& ctx, ScatterOp op, const Tensor& updates,
                           absl::Span<const int64_t> offsets, int64_t inner, Tensor* out);

/// InvalidArgument if a number of `updates`, which are to divide, is zero.
absl::Status CheckDivisors(const Tensor& updates);

/// Checks the shapes of indices [..., depth] and of their updates against those of what they index:
/// updates are indices.shape[:-1] + shape[depth:]. InvalidArgument.
absl::Status CheckScatterNd(const Tensor& indices, const Tensor& updates, const Shape& shape);

/// At which element of a tensor of shape `shape` the slice of each index of `indices` [..., depth]
/// begins. An index that lies outside gives -1 if `ignore_bad`, else InvalidArgument with it.
absl::StatusOr<std::vector<int64_t>> NdOffsets(const Tensor& indices, const Shape& shape,
                                               bool ignore_bad);
/// The same for indices of any shape into dimension 0, of slices of `inner` elements.
absl::StatusOr<std::vector<int64_t>> RowOffsets(const Tensor& indices, int64_t limit,
                                                int64_t inner);

/// Number of elements of a slice that `depth` indices pick from a tensor of shape `shape`.
int64_t SliceElements(const Shape& shape, int64_t depth);

/// The attribute `bad_indices_policy`: false for "", DEFAULT and ERROR, true for IGNORE;
/// InvalidArgument for anything else.
absl::Status ReadBadIndicesPolicy(KernelConstruction& construction, bool* ignore);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_SCATTER_H_
