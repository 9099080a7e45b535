// SparseToDense: values at given places of a tensor that is filled with another value.
#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status SparseToDense(KernelContext& ctx, bool validate) {
  const Tensor &values = ctx.input(2), &default_value = ctx.input(3);
  if (ctx.input(0).rank() > 2) {
    return InvalidArgument("sparse_indices must be a scalar, a vector or a matrix, got shape ",
                           ctx.input(0).shape().ToString());
  }
  // A scalar is one index, a vector several, into a vector.
  int64_t rows = ctx.input(0).rank() > 0 ? ctx.input(0).dim(0) : 1;
  const int64_t depth = ctx.input(0).rank() > 1 ? ctx.input(0).dim(1) : 1;
  if (ctx.input(1).rank() != 1 || ctx.input(1).dim(0) != depth) {
    return InvalidArgument("output_shape must be a vector of ", depth,
                           " sizes, as many as an index has components, got shape ",
                           ctx.input(1).shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(1), "output_shape"));
  if (values.rank() > 0 && (values.rank() != 1 || values.dim(0) != rows)) {
    return InvalidArgument("sparse_values must have the shape [] or [", rows, "], got ",
                           values.shape().ToString());
  }
  if (default_value.rank() != 0) {
    return InvalidArgument("default_value must be a scalar, got shape ",
                           default_value.shape().ToString());
  }
  if (depth == 0 && rows > 1 && values.rank() == 0) {
    // So many indices take no memory at all: they are not to be gone through one by one.
    if (validate) {
      return InvalidArgument(
          "sparse_indices[1] is repeated: the only index into a scalar can be "
          "given once, not ",
          rows, " times");
    }
    rows = 1;
  }
  const Tensor indices = ctx.input(0).Reshaped(Shape({rows, depth}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, values.type(), shape));
  return PutSparse(ctx, validate, indices, values, default_value, out);
}

}  // namespace troupe::layout
