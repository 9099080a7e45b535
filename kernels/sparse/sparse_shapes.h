/// Inputs, shapes and errors of ops of sparse tensors that have kernels for several devices.
#ifndef TROUPE_KERNELS_SPARSE_SPARSE_SHAPES_H_
#define TROUPE_KERNELS_SPARSE_SPARSE_SHAPES_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/common/integer_input.h"
#include "kernels/sparse/sparse_tensor.h"

namespace troupe {

/// SparseReshape's shapes, from inputs 0 to 2. InvalidArgument unless they have as many elements
/// and the indices fit the first one.
struct SparseReshapeShapes {
  Shape from, to;
  static absl::StatusOr<SparseReshapeShapes> Read(const KernelContext& ctx);
};

/// The shape of tensors that are joined along an axis. InvalidArgument if they do not fit.
absl::StatusOr<Shape> SparseJoinedShape(absl::Span<const SparseTensor> inputs, int axis);

/// The parts of a dimension: the first `larger` ones have one more than `part`.
struct SparseParts {
  int axis;
  int64_t part, larger;

  /// InvalidArgument if there are more parts than the dimension's size.
  static absl::StatusOr<SparseParts> Of(const Shape& shape, const Tensor& split_dim,
                                        int64_t num_split);
  int64_t begin(int64_t k) const { return part * k + std::min(k, larger); }
  /// The one that an index along the axis is in.
  int64_t PartOf(int64_t index) const {
    const int64_t in_larger = (part + 1) * larger;
    return index < in_larger ? index / (part + 1) : larger + (index - in_larger) / part;
  }
};

/// The slice of a sparse tensor from `start` on.
struct SparseSliceBounds {
  DimVector start;
  Shape shape;
  static absl::StatusOr<SparseSliceBounds> Of(const Shape& from, const Tensor& start,
                                              const Tensor& size);
};

/// SparseSliceGrad's start. InvalidArgument if the inputs do not fit.
absl::StatusOr<DimVector> ReadSparseSliceGrad(const KernelContext& ctx);
/// For a gradient of so many elements, of which another number belongs to the input's.
absl::Status SparseSliceGradNotMet(int64_t size, int64_t met);

/// SparseFillEmptyRows's tensor, which has rows. InvalidArgument if the inputs do not fit.
absl::StatusOr<SparseTensor> ReadSparseRows(KernelContext& ctx);
absl::Status SparseRowOutOfRange(int64_t element, int64_t row, int64_t rows);
/// InvalidArgument unless SparseFillEmptyRowsGrad's inputs are vectors.
absl::Status CheckSparseFillEmptyRowsGrad(const KernelContext& ctx);
absl::Status SparsePlaceOutOfRange(int64_t element, int64_t place, int64_t size);

/// SparseTensorDenseMatMul's shapes. InvalidArgument if they have no product.
struct SparseProductShape {
  Shape a, product;
  int64_t inner;
  static absl::StatusOr<SparseProductShape> Read(const KernelContext& ctx, bool adjoint_a,
                                                 bool adjoint_b);
};

/// Makes output `i` the vector of a shape's sizes, on the host.
inline absl::Status PutShape(KernelContext& ctx, int i, const Shape& shape) {
  return PutIntegers(ctx, i, ElementType::kInt64, shape.dims());
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SPARSE_SPARSE_SHAPES_H_
