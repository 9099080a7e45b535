// RandomShuffle, for all devices.
#include <memory>

#include "kernels/array/layout_ops.h"
#include "kernels/kernel_registry.h"
#include "kernels/random/random_stream_kernel.h"
#include "kernels/random/shuffle_rows.h"

namespace troupe::layout {
namespace {

class RandomShuffleKernel final : public RandomStreamKernel {
 public:
  RandomShuffleKernel(KernelConstruction& construction, absl::Status*)
      : RandomStreamKernel(construction) {}

  absl::Status Compute(KernelContext& ctx) override {
    return ShuffleRows(ctx, [&](uint64_t blocks) { return PhiloxWords(stream_.Reserve(blocks)); });
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> RandomShuffle(KernelConstruction& construction) {
  return MakeKernel<RandomShuffleKernel>(construction);
}

}  // namespace troupe::layout
