// SparseToDense: values at given places of a tensor that is filled with another value.
#include <vector>

#include "kernels/array/index_view.h"
#include "kernels/array/scatter.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

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
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, NdOffsets(indices, shape, false));
  if (validate) {
    // Within the tensor, lexicographic order is that of the offsets.
    for (int64_t r = 1; r < rows; ++r) {
      if (offsets[r] > offsets[r - 1]) continue;
      return InvalidArgument("sparse_indices[", r, "] ",
                             offsets[r] == offsets[r - 1] ? "is repeated" : "is out of order",
                             ": indices must be in lexicographic order, each once");
    }
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, values.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  FillElements(ctx, values.type(), out->mutable_raw_data(), out->num_elements(),
               default_value.raw_data());
  return ScatterSlices(ctx, ScatterOp::kUpdate, values, offsets, 1, out);
}

REGISTER_KERNEL(KernelSpec("SparseToDense")
                    .Types("T", WithString(PlainTypes()))
                    .Types("Tindices", IndexTypes()),
                (MakeAttrKernel<SparseToDense, "validate_indices">));

}  // namespace
}  // namespace troupe
