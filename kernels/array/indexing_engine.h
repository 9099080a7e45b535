/// What the ops that move slices by index are made of: as `layout_engine.h`, each type of devices
/// with a memory of its own has its own definitions. Indices that lie outside are InvalidArgument,
/// at once or as a late error.
#ifndef TROUPE_KERNELS_ARRAY_INDEXING_ENGINE_H_
#define TROUPE_KERNELS_ARRAY_INDEXING_ENGINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/array/scatter.h"
#include "kernels/kernel.h"

namespace troupe {

/// Sizes of a gather: `out[b, o, i, :] = params[b, o, indices[b, i], :]`.
struct GatherSizes {
  int64_t batch = 1, outer = 1, limit = 1, indices = 1, inner = 1;
};
/// Fills `out`, which has elements.
absl::Status GatherInto(KernelContext& ctx, const GatherSizes& sizes, const Tensor& params,
                        const Tensor& indices, Tensor* out);
/// Fills `out`, which has elements, with the slices of `params` at `indices` [..., depth]; zeros
/// for indices that lie outside if `ignore_bad`.
absl::Status GatherNdInto(KernelContext& ctx, const Tensor& params, const Tensor& indices,
                          bool ignore_bad, Tensor* out);
/// Adds `updates`, or puts them, to the slices of `out` at `indices` [..., depth]. There are
/// updates. Indices that lie outside are left out if `ignore_bad`.
absl::Status ScatterNdInto(KernelContext& ctx, ScatterOp op, const Tensor& indices,
                           const Tensor& updates, bool ignore_bad, Tensor* out);
/// Combines `updates` of shape [indices..., row...], or one for all, with the rows of `out` at
/// `indices`. `zero_divides`: numbers that are not integers may be divided by zero; all others are
/// InvalidArgument.
absl::Status ScatterRowsInto(KernelContext& ctx, ScatterOp op, bool zero_divides,
                             const Tensor& indices, const Tensor& updates, Tensor* out);
/// Fills `out` with the element `default_value`, then puts `values` (or the only one) at `indices`
/// [rows, depth]. `validate`: indices must be in order, each once.
absl::Status PutSparse(KernelContext& ctx, bool validate, const Tensor& indices,
                       const Tensor& values, const Tensor& default_value, Tensor* out);
/// out[o, d, i] is the element `on` where indices[o, i] is d, else the element `off`.
absl::Status FillOneHot(KernelContext& ctx, const Tensor& indices, int64_t depth, int64_t inner,
                        const Tensor& on, const Tensor& off, Tensor* out);
/// Row k of input n + i becomes row indices[k] of `out`, where indices is input i of n; rows have
/// `width` elements. The last one counts, rows that nobody names are zero. Indices are on the host.
absl::Status StitchRows(KernelContext& ctx, int n, int64_t width, Tensor* out);
/// Row k of `data` is the next one of output ids[k]; rows have `width` > 0 elements.
absl::Status DealRows(KernelContext& ctx, const Tensor& data, absl::Span<const int32_t> ids,
                      int64_t width);
/// Row k of `out` becomes row order[k] of `in`.
absl::Status PermuteRows(KernelContext& ctx, absl::Span<const int64_t> order, const Tensor& in,
                         Tensor* out);
/// Fills `out` with `in`, of whose slice b along dimension `batch` the first lengths[b] elements
/// along dimension `seq` are in reverse order. Lengths that are negative or larger than the
/// dimension are InvalidArgument, even if there are no elements.
absl::Status ReverseStarts(KernelContext& ctx, const Tensor& in, const Tensor& lengths, int seq,
                           int batch, Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_INDEXING_ENGINE_H_
