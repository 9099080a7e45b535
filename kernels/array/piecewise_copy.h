/// Copies that take each dimension to pieces: rotations, mirror images, partial reversals.
#ifndef TROUPE_KERNELS_ARRAY_PIECEWISE_COPY_H_
#define TROUPE_KERNELS_ARRAY_PIECEWISE_COPY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "kernels/common/strided_copy.h"

namespace troupe {

/// Places [to, to + size) of a dimension of the output have the elements `from`, from + step, ...
/// of the input; `step` is 1 or -1.
struct DimPiece {
  int64_t to, from, size, step;
};
using DimPieces = absl::InlinedVector<DimPiece, 3>;

/// Copies every combination of pieces of the dimensions. Pieces must not be empty, and do not
/// overlap in the output. Each type of devices with a memory of its own has its own definition, as
/// of `layout_engine.h`; Unimplemented for more dimensions than it takes.
absl::Status CopyPieces(KernelContext& ctx, const Tensor& in, absl::Span<const DimPieces> pieces,
                        Tensor* out);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_PIECEWISE_COPY_H_
