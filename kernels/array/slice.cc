// Slice: a block of a tensor given by its begin and its sizes.
#include "kernels/array/layout_ops.h"
#include "kernels/array/shared_slice.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status Slice(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const troupe::Shape& shape = input.shape();
  const int rank = shape.rank();
  TROUPE_ASSIGN_OR_RETURN(const DimVector begin, ReadIntegerVector(ctx.input(1), "begin"));
  TROUPE_ASSIGN_OR_RETURN(DimVector size, ReadIntegerVector(ctx.input(2), "size"));
  if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
    return InvalidArgument("begin and size must have one element for each dimension of the ",
                           "input of shape ", shape.ToString(), ", got ", begin.size(), " and ",
                           size.size());
  }
  bool whole = true, rows = true;
  for (int i = 0; i < rank; ++i) {
    if (begin[i] < 0 || begin[i] > shape.dim(i)) {
      return InvalidArgument("begin[", i, "] must be in [0, ", shape.dim(i), "], got ", begin[i]);
    }
    if (size[i] == -1) size[i] = shape.dim(i) - begin[i];
    if (size[i] < 0 || size[i] > shape.dim(i) - begin[i]) {
      return InvalidArgument("size[", i, "] must be in [0, ", shape.dim(i) - begin[i],
                             "] or -1, got ", size[i]);
    }
    const bool all = size[i] == shape.dim(i);
    whole = whole && all;
    rows = rows && (all || i == 0);
  }
  if (whole) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  troupe::Shape out_shape{absl::Span<const int64_t>(size)};
  if (rows && WorthSharing(input, out_shape.num_elements())) {
    ctx.set_output(0, input.Slice(begin[0], begin[0] + size[0]));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), out_shape));
  const DimVector strides = RowMajorStrides(shape.dims());
  int64_t offset = 0;
  for (int i = 0; i < rank; ++i) offset += begin[i] * strides[i];
  StridedCopy(ctx, input.type(), size, out->mutable_raw_data(), RowMajorStrides(size),
              ElementAt(input.type(), input.raw_data(), offset), strides);
  return absl::OkStatus();
}

}  // namespace troupe::layout
