/// What the ops that only move elements are made of, beside kernels/common/strided_copy.h. A type
/// of devices with a memory of its own has its own definitions of both, which enqueue, and compiles
/// the ops of kernels/array/layout_ops.h against them.
#ifndef TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_
#define TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/element_type.h"
#include "kernels/common/strided_copy.h"
#include "kernels/kernel.h"

namespace troupe {

/// The same columns of all rows of a matrix, as a matrix of its own.
template <typename Data>
struct Columns {
  Data* data;
  int64_t begin, count;
};

/// Fills the columns of a row-major matrix of `rows` times `width` elements.
void JoinColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width, void* matrix,
                 absl::Span<const Columns<const void>> parts);
/// Copies them out.
void CutColumns(KernelContext& ctx, ElementType type, int64_t rows, int64_t width,
                const void* matrix, absl::Span<const Columns<void>> parts);

/// Makes `out` of shape `dims` from `in` of shape `inside`, which begins there at `before`; around
/// it is the element at `value`, on the host, or zero if that is nullptr.
void PadBlock(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims,
              absl::Span<const int64_t> before, absl::Span<const int64_t> inside, void* out,
              const void* in, const void* value);

/// Of `rows` rows of matrices of `height` rows and `width` columns, keeps what is up to `lower`
/// below the diagonal or up to `upper` above; zeros for the rest. `to` may be `from`.
void KeepBand(KernelContext& ctx, ElementType type, int64_t rows, int64_t height, int64_t width,
              int64_t lower, int64_t upper, void* to, const void* from);

/// The diagonals from `lower` to `upper` of `batch` matrices, 0 the main one, positive ones above
/// it; and rows of `Width()` elements that hold them, for each matrix `count()`, the uppermost
/// diagonal first. One that is shorter than its row lies at its left end, or at its right one, as
/// is said of those above the main one and of those below; the main one at the left if either does.
struct MatrixBand {
  int64_t count() const { return upper - lower + 1; }
  int64_t Length(int64_t diagonal) const {
    return std::min(rows + std::min<int64_t>(diagonal, 0),
                    columns - std::max<int64_t>(diagonal, 0));
  }
  /// The longest diagonal: that which is nearest to the main one, or as long.
  int64_t Width() const {
    return std::min(rows + std::min<int64_t>(upper, 0), columns - std::max<int64_t>(lower, 0));
  }

  int64_t lower = 0, upper = 0;
  int64_t batch = 1, rows = 0, columns = 0;
  bool left_above = true, left_below = true;
};
/// Copies the diagonals to the matrices, or from them.
void CopyBand(KernelContext& ctx, ElementType type, const MatrixBand& band, void* dst,
              bool dst_is_matrix, const void* src);

/// Blocks of the dimensions of space, which come after the batch, and how far those are padded.
struct SpaceBlocks {
  DimVector sizes, before, after;
  int64_t count = 1;  ///< Elements of a block.
  int rank() const { return static_cast<int>(sizes.size()); }
};
/// Copies between a tensor with space and one with blocks in the batch, which is `out` if
/// `to_batch`. Place k of the blocks is slice k of the batch, and element i of it is element
/// i * block + k - before of the space; zero if there is none. `out` has elements. Unimplemented
/// for more blocks than the type of device takes.
absl::Status MoveBlocks(KernelContext& ctx, const SpaceBlocks& blocks, bool to_batch,
                        const Tensor& in, Tensor* out);

/// A dimension of `inside` elements and how many mirror images come before and after it.
struct Mirror {
  int64_t before, inside, after;
};
/// Makes each element of `out`, which has some, the sum of itself and its images in `in`, in the
/// order of `in`. `skipped`: elements at either end that have no image, 0 or 1. Unimplemented for
/// more dimensions than the type of device takes.
absl::Status AddMirrored(KernelContext& ctx, absl::Span<const Mirror> mirrors, int64_t skipped,
                         const Tensor& in, Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_
