/// What InplaceUpdate, InplaceAdd and InplaceSub share on all types of devices.
#ifndef TROUPE_KERNELS_STATE_INPLACE_ROWS_H_
#define TROUPE_KERNELS_STATE_INPLACE_ROWS_H_

#include "absl/status/statusor.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"

namespace troupe {

/// Checks inputs x, i (on the host) and v, makes output 0 x, to be changed, and gives the rows that
/// i names; none if x is empty. InvalidArgument for shapes that do not fit.
inline absl::StatusOr<DimVector> TakeRows(KernelContext& ctx) {
  const Tensor &i = ctx.input(1), &v = ctx.input(2);
  const Shape shape = ctx.input(0).shape();
  if (i.rank() != 1) {
    return InvalidArgument("i must be a vector, got shape ", i.shape().ToString());
  }
  bool fits = shape.rank() == v.rank() && shape.rank() > 0 && v.dim(0) == i.dim(0);
  for (int d = 1; fits && d < shape.rank(); ++d) fits = shape.dim(d) == v.dim(d);
  if (!fits) {
    return InvalidArgument("v of shape ", v.shape().ToString(), " must hold ", i.dim(0),
                           " rows (one for each of i) like those of x of shape ", shape.ToString());
  }
  TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
  if (shape.num_elements() == 0) return DimVector();
  // Rows are counted modulo their number.
  TROUPE_ASSIGN_OR_RETURN(DimVector rows, ReadIntegers(i, "i"));
  for (int64_t& row : rows) row = (row % shape.dim(0) + shape.dim(0)) % shape.dim(0);
  return rows;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_STATE_INPLACE_ROWS_H_
