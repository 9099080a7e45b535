// TileGrad: the sums of the copies that Tile has made.
#include "kernels/kernel_registry.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

absl::Status TileGrad(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ReducedShape reduced, ReduceTiles(input.shape(), ctx.input(1)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), reduced.output));
  return Reduce(ctx, FindReduce(Reduction::kSum, input.type()), input.type(), input.raw_data(),
                reduced.dims, out->mutable_raw_data());
}

REGISTER_KERNEL(KernelSpec("TileGrad").Types("T", NumberTypes()), MakeKernel<TileGrad>);

}  // namespace
}  // namespace troupe
