#include "kernels/image/extract_patches.h"

#include <vector>

#include "devices/status_macros.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

class PatchesKernel final : public Kernel {
 public:
  PatchesKernel(KernelConstruction& c, absl::Status* status) {
    std::vector<int64_t> paddings;
    *status = ReadPadding(c, &padding_, &paddings);
    if (!status->ok()) return;
    const auto sizes = c.Attr<std::vector<int64_t>>("ksizes");
    const auto strides = c.Attr<std::vector<int64_t>>("strides");
    const auto rates = c.Attr<std::vector<int64_t>>("rates");
    for (const auto* numbers : {&sizes, &strides, &rates}) {
      if (numbers->size() != 4) {
        *status = InvalidArgument("ksizes, strides and rates must have 4 numbers");
        return;
      }
      if ((*numbers)[0] != 1 || (*numbers)[3] != 1) {
        *status = absl::UnimplementedError(
            "patches over batch or channels: ksizes, strides and rates must be [1, y, x, 1]");
        return;
      }
      if ((*numbers)[1] <= 0 || (*numbers)[2] <= 0) {
        *status = InvalidArgument("ksizes, strides and rates must be positive");
        return;
      }
    }
    rows_ = {0, 0, sizes[1], strides[1], rates[1]};
    columns_ = {0, 0, sizes[2], strides[2], rates[2]};
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    if (images.rank() != 4) {
      return InvalidArgument("`images` must be [batch, height, width, channels], got shape ",
                             images.shape().ToString());
    }
    const int64_t channels = images.dim(3);
    Window rows = rows_, columns = columns_;
    rows.input = images.dim(1);
    columns.input = images.dim(2);
    int64_t depth = 0;
    if (__builtin_mul_overflow(rows.size, columns.size, &depth) ||
        __builtin_mul_overflow(depth, channels, &depth)) {
      return InvalidArgument("patches of ", rows.size, " x ", columns.size, " x ", channels,
                             " are too large");
    }
    TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, {}, images.dim(0), depth, &rows, &columns));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out,
        ctx.AllocateOutput(0, images.type(),
                           Shape({images.dim(0), rows.output, columns.output, depth})));
    if (out->num_elements() == 0) return absl::OkStatus();
    return FillPatches(ctx, rows, columns, images, out);
  }

 private:
  PaddingMode padding_ = PaddingMode::kValid;
  Window rows_, columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> ExtractImagePatches(KernelConstruction& construction) {
  return MakeKernel<PatchesKernel>(construction);
}

}  // namespace troupe
