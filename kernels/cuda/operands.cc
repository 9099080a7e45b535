#include "kernels/cuda/operands.h"

#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"

namespace troupe::cuda {

absl::StatusOr<Broadcast> BroadcastOperands(const Shape& out,
                                            std::initializer_list<const Shape*> operands) {
  const BroadcastWalk walk(out, operands);
  if (walk.outer().size() >= Broadcast::kMaxRank) {
    return absl::UnimplementedError(StrCat("broadcasting to ", out.ToString(), " has more than ",
                                           Broadcast::kMaxRank, " dimensions that differ"));
  }
  Broadcast broadcast;
  const int count = static_cast<int>(operands.size());
  for (const BroadcastWalk::Dim& dim : walk.outer()) {
    for (int i = 0; i < count; ++i) broadcast.strides[i][broadcast.rank] = dim.strides[i];
    broadcast.sizes[broadcast.rank++] = dim.size;
  }
  for (int i = 0; i < count; ++i) broadcast.strides[i][broadcast.rank] = walk.run_step(i);
  broadcast.sizes[broadcast.rank++] = walk.run_length();
  return broadcast;
}

absl::StatusOr<BinaryCall> BroadcastCall(KernelContext& ctx, ElementType type) {
  // What the inputs are, before one of them becomes the output.
  const Shape a = ctx.input(0).shape(), b = ctx.input(1).shape();
  BinaryCall call{.a = ctx.input(0).raw_data(), .b = ctx.input(1).raw_data()};
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(a, b));
  TROUPE_ASSIGN_OR_RETURN(call.broadcast, BroadcastOperands(shape, {&a, &b}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardEitherOrAllocate(0, 1, 0, type, shape));
  call.out = out->mutable_raw_data();
  call.n = out->num_elements();
  return call;
}

}  // namespace troupe::cuda
