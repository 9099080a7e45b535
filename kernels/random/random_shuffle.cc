// RandomShuffle: the shuffle of Fisher and Yates on the rows.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class RandomShuffleKernel : public Kernel {
 public:
  RandomShuffleKernel(KernelConstruction& construction, absl::Status*)
      : stream_(construction.Attr<int64_t>("seed"), construction.Attr<int64_t>("seed2")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const int64_t rows = in.rank() == 0 ? 1 : in.dim(0);
    if (in.num_elements() <= 1 || rows <= 1) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    // A row takes one word of a block of four.
    PhiloxWords words(stream_.Reserve(static_cast<uint64_t>(rows - 1 + 3) / 4));
    std::vector<int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i + 1 < rows; ++i) {
      // TensorFlow draws 32 bits, too, so that with more rows than that only the first are chosen
      // from.
      const uint32_t left = static_cast<uint32_t>(rows - i);
      const uint32_t word = words();
      std::swap(order[i], order[i + (left == 0 ? word : word % left)]);
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    const int64_t row_size = in.num_elements() / rows;
    return SwitchBySize(in.type(), [&]<typename T>() -> absl::Status {
      const T* from = static_cast<const T*>(in.raw_data());
      T* to = static_cast<T*>(out->mutable_raw_data());
      ctx.ParallelFor(rows, std::max<int64_t>(1, 65536 / row_size),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          std::copy_n(from + order[i] * row_size, row_size, to + i * row_size);
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  PhiloxStream stream_;
};

REGISTER_KERNEL(KernelSpec("RandomShuffle").Types("T", AllTypes()),
                MakeKernel<RandomShuffleKernel>);

}  // namespace
}  // namespace troupe
