#include "kernels/sparse/sparse_shapes.h"

#include "devices/status_macros.h"

namespace troupe {
namespace {

/// `sizes` with its -1, if there is one, replaced by what makes `num_elements` of all.
absl::StatusOr<Shape> CompleteShape(DimVector sizes, const Shape& from) {
  int unknown = -1;
  int64_t known = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) {
      if (sizes[i] < 0) return InvalidArgument("new_shape[", i, "] must not be ", sizes[i]);
      known = MultiplyWithoutOverflow(known, sizes[i]);
      if (known < 0) return InvalidArgument("new_shape has too many elements");
    } else if (unknown >= 0) {
      return InvalidArgument("only one size of new_shape may be -1, got those of the dimensions ",
                             unknown, " and ", i);
    } else {
      unknown = static_cast<int>(i);
    }
  }
  if (unknown >= 0) {
    if (known == 0 || from.num_elements() % known != 0) {
      return InvalidArgument("the shape ", from.ToString(), " with ", from.num_elements(),
                             " elements cannot be reshaped to sizes with the product ", known,
                             " and one more");
    }
    sizes[unknown] = from.num_elements() / known;
  }
  TROUPE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(sizes));
  if (shape.num_elements() != from.num_elements()) {
    return InvalidArgument("the shape ", from.ToString(), " cannot be reshaped to ",
                           shape.ToString(), ": they have ", from.num_elements(), " and ",
                           shape.num_elements(), " elements");
  }
  return shape;
}

}  // namespace

absl::StatusOr<SparseReshapeShapes> SparseReshapeShapes::Read(const KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Shape from, ReadShapeVector(ctx.input(1), "input_shape"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadIntegerVector(ctx.input(2), "new_shape"));
  TROUPE_ASSIGN_OR_RETURN(const Shape to, CompleteShape(sizes, from));
  if (indices.rank() != 2 || indices.dim(1) != from.rank()) {
    return InvalidArgument("input_indices of shape ", indices.shape().ToString(),
                           " are not for the shape ", from.ToString());
  }
  if (from.rank() == 0 && indices.dim(0) > 1) {
    return InvalidArgument("a scalar has one element at most, got ", indices.dim(0));
  }
  return SparseReshapeShapes{from, to};
}

absl::StatusOr<Shape> SparseJoinedShape(absl::Span<const SparseTensor> inputs, int axis) {
  const Shape& first = inputs[0].shape;
  DimVector sizes(first.dims().begin(), first.dims().end());
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    for (int d = 0; d < first.rank() || shape.rank() != first.rank(); ++d) {
      if (shape.rank() != first.rank() || (d != axis && shape.dim(d) != sizes[d])) {
        return InvalidArgument("inputs of the shapes ", first.ToString(), " and ", shape.ToString(),
                               " (input ", i, ") cannot be joined along dimension ", axis);
      }
    }
    if (__builtin_add_overflow(sizes[axis], shape.dim(axis), &sizes[axis])) {
      return InvalidArgument("the sizes of dimension ", axis, " have too large a sum");
    }
  }
  return Shape::Create(sizes);
}

absl::StatusOr<SparseParts> SparseParts::Of(const Shape& shape, const Tensor& split_dim,
                                            int64_t num_split) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(split_dim, "split_dim"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, shape.rank(), "split_dim"));
  const int64_t size = shape.dim(axis);
  if (num_split > size) {
    return InvalidArgument("dimension ", axis, " of the shape ", shape.ToString(),
                           " cannot be split into ", num_split);
  }
  return SparseParts{axis, size / num_split, size % num_split};
}

absl::StatusOr<SparseSliceBounds> SparseSliceBounds::Of(const Shape& from,
                                                        const Tensor& start_tensor,
                                                        const Tensor& size_tensor) {
  TROUPE_ASSIGN_OR_RETURN(const DimVector start, ReadIntegerVector(start_tensor, "start"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(size_tensor, "size"));
  const int rank = from.rank();
  if (static_cast<int>(start.size()) != rank || static_cast<int>(size.size()) != rank) {
    return InvalidArgument("start and size must have ", rank,
                           " elements for a tensor of the shape ", from.ToString(), ", got ",
                           start.size(), " and ", size.size());
  }
  DimVector sizes(rank);
  for (int d = 0; d < rank; ++d) {
    const int64_t dim = from.dim(d);
    if (size[d] < 0) return InvalidArgument("size[", d, "] must not be negative, got ", size[d]);
    // A start before the tensor is TensorFlow's: there is nothing there.
    sizes[d] = start[d] >= dim ? 0 : start[d] < dim - size[d] ? size[d] : dim - start[d];
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  return SparseSliceBounds{start, shape};
}

absl::StatusOr<DimVector> ReadSparseSliceGrad(const KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &input = ctx.input(1), &output = ctx.input(3);
  TROUPE_RETURN_IF_ERROR(CheckIndicesAndValues(output, grad, "output"));
  TROUPE_RETURN_IF_ERROR(CheckRowsOf(input, output.dim(1), "input_indices"));
  TROUPE_ASSIGN_OR_RETURN(DimVector start, ReadIntegerVector(ctx.input(2), "input_start"));
  if (static_cast<int64_t>(start.size()) != output.dim(1)) {
    return InvalidArgument("input_start must have ", output.dim(1), " elements, got ",
                           start.size());
  }
  return start;
}

absl::Status SparseSliceGradNotMet(int64_t size, int64_t met) {
  return absl::InternalError(
      StrCat("of the ", size, " output_indices only ", met, " belong to an element of the input"));
}

absl::StatusOr<SparseTensor> ReadSparseRows(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(SparseTensor input, ReadSparse(ctx, 0, "input"));
  if (ctx.input(3).rank() != 0) {
    return InvalidArgument("default_value must be a scalar, got shape ",
                           ctx.input(3).shape().ToString());
  }
  if (input.rank() == 0) return InvalidArgument("a scalar has no rows to be filled");
  return input;
}

absl::Status SparseRowOutOfRange(int64_t element, int64_t row, int64_t rows) {
  return InvalidArgument("indices[", element, ",0] = ", row, " is not in [0, ", rows, ")");
}

absl::Status CheckSparseFillEmptyRowsGrad(const KernelContext& ctx) {
  const Tensor &map = ctx.input(0), &grad = ctx.input(1);
  if (map.rank() == 1 && grad.rank() == 1) return absl::OkStatus();
  return InvalidArgument("reverse_index_map and grad_values must be vectors, got shapes ",
                         map.shape().ToString(), " and ", grad.shape().ToString());
}

absl::Status SparsePlaceOutOfRange(int64_t element, int64_t place, int64_t size) {
  return InvalidArgument("reverse_index_map[", element, "] = ", place, " is not in [0, ", size,
                         "), the elements of grad_values");
}

absl::StatusOr<SparseProductShape> SparseProductShape::Read(const KernelContext& ctx,
                                                            bool adjoint_a, bool adjoint_b) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &b = ctx.input(3);
  TROUPE_RETURN_IF_ERROR(CheckIndicesAndValues(indices, values, "a"));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(2), "a_shape"));
  if (shape.rank() != 2 || indices.dim(1) != 2 || b.rank() != 2) {
    return InvalidArgument("both factors must be matrices, got the shapes ", shape.ToString(),
                           " with indices of shape ", indices.shape().ToString(), " and ",
                           b.shape().ToString());
  }
  const int64_t rows = shape.dim(adjoint_a ? 1 : 0), inner = shape.dim(adjoint_a ? 0 : 1);
  if (inner != b.dim(adjoint_b ? 1 : 0)) {
    return InvalidArgument("matrices of the shapes ", shape.ToString(),
                           adjoint_a ? " (adjoint)" : "", " and ", b.shape().ToString(),
                           adjoint_b ? " (adjoint)" : "", " have no product");
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape product, Shape::Create({rows, b.dim(adjoint_b ? 0 : 1)}));
  return SparseProductShape{shape, product, inner};
}

}  // namespace troupe
