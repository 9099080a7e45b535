#include "kernels/nn/volume_patches.h"

#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

class VolumePatchesKernel final : public Kernel {
 public:
  VolumePatchesKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction, "ksizes", /*only_ndhwc=*/true);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    int64_t patch = w.channels, elements = w.batch;
    for (const Window* window : {&w.planes, &w.rows, &w.columns}) {
      patch = MultiplyWithoutOverflow(patch, window->size);
      elements = MultiplyWithoutOverflow(elements, window->output);
      if (patch < 0 || elements < 0) break;
    }
    if (patch < 0 || elements < 0 || MultiplyWithoutOverflow(elements, patch) < 0) {
      return InvalidArgument("the patches of a volume of shape ", in.shape().ToString(),
                             " are too large");
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), w.output_shape(patch)));
    if (out->num_elements() == 0) return absl::OkStatus();
    return FillVolumePatches(ctx, w, in, out);
  }

 private:
  VolumeAttributes attributes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> ExtractVolumePatches(KernelConstruction& construction) {
  return MakeKernel<VolumePatchesKernel>(construction);
}

}  // namespace troupe
