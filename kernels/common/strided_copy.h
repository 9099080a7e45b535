/// Moving blocks of elements: the one loop behind slices, transpositions, concatenation, padding,
/// tiling, broadcasting.
#ifndef TROUPE_KERNELS_COMMON_STRIDED_COPY_H_
#define TROUPE_KERNELS_COMMON_STRIDED_COPY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "devices/element_type.h"
#include "devices/shape.h"
#include "kernels/kernel.h"

namespace troupe {

using DimVector = absl::InlinedVector<int64_t, 8>;

/// Copies `dims`-shaped elements of any type, in parallel if there are many. Strides are in
/// elements; a stride of 0 in the source repeats, a negative one runs backwards. `dst` and `src`
/// point at the first element; the blocks must not overlap. Contiguous runs are copied as such,
/// transpositions in tiles.
void StridedCopy(KernelContext& ctx, ElementType type, absl::Span<const int64_t> dims, void* dst,
                 absl::Span<const int64_t> dst_strides, const void* src,
                 absl::Span<const int64_t> src_strides);

/// `rows` runs of `run` elements that begin `dst_stride` and `src_stride` elements apart.
void CopyRuns(KernelContext& ctx, ElementType type, int64_t rows, int64_t run, void* dst,
              int64_t dst_stride, const void* src, int64_t src_stride);

/// Makes output 0 input 0, to be changed: its own buffer where nobody else reads it, else a copy.
absl::Status ForwardOrCopy(KernelContext& ctx);

/// Writes `count` copies of the element at `value`.
void FillElements(KernelContext& ctx, ElementType type, void* dst, int64_t count,
                  const void* value);

/// Writes `count` zeros (empty strings, empty handles).
void ZeroElements(KernelContext& ctx, ElementType type, void* dst, int64_t count);

/// Copies `count` adjacent elements, on this thread.
void CopyElements(ElementType type, void* dst, const void* src, int64_t count);

/// The address of element `index` of an array of `type`.
inline void* ElementAt(ElementType type, void* base, int64_t index) {
  return static_cast<char*>(base) + index * static_cast<int64_t>(ElementSize(type));
}
inline const void* ElementAt(ElementType type, const void* base, int64_t index) {
  return static_cast<const char*>(base) + index * static_cast<int64_t>(ElementSize(type));
}

/// Distances between neighbours along each dimension of a row-major tensor.
DimVector RowMajorStrides(absl::Span<const int64_t> dims);

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_STRIDED_COPY_H_
