/// What the ops that only move elements are made of, beside kernels/common/strided_copy.h. A type
/// of devices with a memory of its own has its own definitions of both, which enqueue, and compiles
/// the ops of kernels/array/layout_ops.h against them.
#ifndef TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_
#define TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_

#include <cstdint>

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

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_LAYOUT_ENGINE_H_
