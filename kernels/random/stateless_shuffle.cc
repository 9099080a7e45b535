// StatelessShuffle.
#include "kernels/kernel_registry.h"
#include "kernels/random/shuffle_rows.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

absl::Status StatelessShuffle(KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(KeyInputs::Check(ctx));
  TROUPE_ASSIGN_OR_RETURN(const Philox position, KeyInputs::Position(ctx));
  return layout::ShuffleRows(ctx, [&](uint64_t) { return PhiloxWords(position); });
}

REGISTER_KERNEL(KernelSpec("StatelessShuffle").Types("T", AllTypes()),
                MakeKernel<StatelessShuffle>);

}  // namespace
}  // namespace troupe
