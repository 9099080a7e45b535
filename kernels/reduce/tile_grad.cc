// TileGrad: the sums of the copies that Tile has made.
#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

absl::Status TileGrad(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const DimVector multiples, ReadIntegerVector(ctx.input(1), "multiples"));
  bool fits = static_cast<int>(multiples.size()) == input.rank();
  for (int d = 0; fits && d < input.rank(); ++d) {
    fits = multiples[d] > 0 && input.dim(d) % multiples[d] == 0;
  }
  if (!fits) {
    return InvalidArgument("multiples must have a positive divisor for each dimension of the ",
                           "input of shape ", input.shape().ToString());
  }
  Shape shape = input.shape();
  ReduceDims dims;
  for (int d = 0; d < input.rank(); ++d) {
    shape.set_dim(d, input.dim(d) / multiples[d]);
    dims.Add(multiples[d], true);
    dims.Add(shape.dim(d), false);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  return Reduce(ctx, FindReduce(Reduction::kSum, input.type()), input.type(), input.raw_data(),
                dims, out->mutable_raw_data());
}

REGISTER_KERNEL(KernelSpec("TileGrad").Types("T", NumberTypes()), MakeKernel<TileGrad>);

}  // namespace
}  // namespace troupe
