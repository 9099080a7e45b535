// DynamicStitch: slices of several tensors put in the places that several index tensors name.
#include <algorithm>

#include "kernels/array/indexing_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status DynamicStitch(KernelContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  const Tensor& data0 = ctx.input(n);
  const int lead0 = ctx.input(0).rank();
  int64_t size = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = ctx.input(i), &data = ctx.input(n + i);
    const int lead = indices.rank();
    bool fits = data.rank() >= lead;
    for (int d = 0; fits && d < lead; ++d) fits = data.dim(d) == indices.dim(d);
    if (!fits) {
      return InvalidArgument("data[", i, "] of shape ", data.shape().ToString(),
                             " must start with the shape of indices[", i, "], ",
                             indices.shape().ToString());
    }
    fits = data.rank() - lead == data0.rank() - lead0;
    for (int d = lead; fits && d < data.rank(); ++d) {
      fits = data.dim(d) == data0.dim(d - lead + lead0);
    }
    if (!fits) {
      return InvalidArgument("data[", i, "] of shape ", data.shape().ToString(),
                             " after the shape of indices[", i,
                             "] must agree with data[0] of shape ", data0.shape().ToString());
    }
    for (const int32_t index : indices.unchecked_values<int32_t>()) {
      if (index < 0) {
        return InvalidArgument("indices[", i, "] holds ", index, ", which is negative");
      }
      size = std::max<int64_t>(size, int64_t{index} + 1);
    }
  }
  DimVector dims{size};
  int64_t slice = 1;
  for (int d = lead0; d < data0.rank(); ++d) {
    dims.push_back(data0.dim(d));
    slice *= data0.dim(d);
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, data0.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  return StitchRows(ctx, n, slice, out);
}

}  // namespace troupe::layout
