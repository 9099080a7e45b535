// OneHot: a dimension that tells where an index is.
#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status OneHot(KernelContext& ctx, int64_t dim) {
  const Tensor &indices = ctx.input(0), &on = ctx.input(2), &off = ctx.input(3);
  if (on.rank() != 0 || off.rank() != 0 || ctx.input(1).rank() != 0) {
    return InvalidArgument("depth, on_value and off_value must be scalars, got shapes ",
                           ctx.input(1).shape().ToString(), ", ", on.shape().ToString(), " and ",
                           off.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t depth, ReadIntegerScalar(ctx.input(1), "depth"));
  if (depth < 0) return InvalidArgument("depth must be at least 0, got ", depth);
  const int rank = indices.rank();
  if (dim < -1 || dim > rank) {
    return InvalidArgument("axis must be -1 or in [0, ", rank, "], got ", dim);
  }
  const int axis = dim == -1 ? rank : static_cast<int>(dim);
  DimVector dims(indices.shape().dims().begin(), indices.shape().dims().end());
  dims.insert(dims.begin() + axis, depth);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, on.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  int64_t inner = 1;
  for (int d = axis; d < rank; ++d) inner *= indices.dim(d);
  return FillOneHot(ctx, indices, depth, inner, on, off, out);
}

}  // namespace troupe::layout
