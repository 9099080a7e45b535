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

}  // namespace troupe::cuda
