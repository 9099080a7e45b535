// Pad, PadV2: a border of constant elements.
#include <algorithm>

#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {

absl::Status Pad(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  const Tensor& paddings = ctx.input(1);
  if (paddings.rank() != 2 || paddings.dim(0) != rank || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must have the shape [", rank, ",2] for an input of shape ",
                           input.shape().ToString(), ", got ", paddings.shape().ToString());
  }
  Tensor value;
  if (ctx.num_inputs() > 2) {
    value = ctx.input(2);
    if (value.rank() != 0) {
      return InvalidArgument("constant_values must be a scalar, got shape ",
                             value.shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector pads, ReadIntegers(paddings, "paddings"));
  DimVector before(rank), inside(input.shape().dims().begin(), input.shape().dims().end());
  DimVector dims(rank);
  bool padded = false;
  for (int d = 0; d < rank; ++d) {
    before[d] = pads[2 * d];
    const int64_t after = pads[2 * d + 1];
    constexpr int64_t kMost = int64_t{1} << 61;
    if (before[d] < 0 || after < 0 || before[d] > kMost || after > kMost) {
      return InvalidArgument("paddings must not be negative (or huge), got ", before[d], " and ",
                             after, " for dimension ", d);
    }
    dims[d] = std::min(inside[d], kMost) + before[d] + after;
    padded = padded || dims[d] != inside[d];
  }
  if (!padded) {
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  PadBlock(ctx, input.type(), dims, before, inside, out->mutable_raw_data(), input.raw_data(),
           value.valid() ? value.raw_data() : nullptr);
  return absl::OkStatus();
}

}  // namespace troupe::layout
