// MaxPool3D, AvgPool3D and their gradients on GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/volume_pool.h"
#include "kernels/nn/pool_shape.h"
#include "kernels/nn/volume_windows.h"

namespace troupe::cuda {
namespace {

class VolumePoolKernel : public Kernel {
 public:
  VolumePoolKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction, "ksize", /*only_ndhwc=*/false);
    const absl::StatusOr<Number> type = NumberOf(construction.output_type(0));
    if (status->ok()) *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  static VolumePool PoolOf(const VolumeWindows& w) {
    return {w.batch,        w.channels,        AxisOf(w.planes),
            AxisOf(w.rows), AxisOf(w.columns), w.channels_first};
  }
  static absl::Status Launched(cudaError_t error) {
    return CudaStatus(error, "a pooling of volumes");
  }

  VolumeAttributes attributes_;
  Number type_ = Number::kFloat;
};

/// MaxPool3D and AvgPool3D.
template <decltype(&LaunchVolumeMax) kLaunch>
class PoolKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, in.type(), w.output_shape(w.channels)));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(
        kLaunch(type_, PoolOf(w), in.raw_data(), out->mutable_raw_data(), StreamOf(ctx)));
  }
};

/// MaxPool3DGrad and MaxPool3DGradGrad, of gradients of the output, or of the input.
template <decltype(&LaunchVolumeMaxGrad) kLaunch, bool kOfOutput>
class MaxGradKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &pooled = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(in.shape()));
    const Shape output = w.output_shape(w.channels);
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), output));
    TROUPE_RETURN_IF_ERROR(
        CheckPoolShape("grad", gradient.shape(), kOfOutput ? output : in.shape()));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(0, gradient.type(), kOfOutput ? in.shape() : output));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(kLaunch(type_, PoolOf(w), in.raw_data(), pooled.raw_data(), gradient.raw_data(),
                            out->mutable_raw_data(), StreamOf(ctx)));
  }
};

class AvgGradKernel final : public VolumePoolKernel {
 public:
  using VolumePoolKernel::VolumePoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "orig_input_shape"));
    TROUPE_ASSIGN_OR_RETURN(const VolumeWindows w, attributes_.Resolve(shape));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), w.output_shape(w.channels)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchVolumeAvgGrad(type_, PoolOf(w), gradient.raw_data(),
                                        out->mutable_raw_data(), StreamOf(ctx)));
  }
};

}  // namespace

void RegisterVolumePooling(Extension& extension) {
  for (const ElementType type : {ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat}) {
    const auto spec = [type](const char* op) {
      return KernelSpec(op).Device("GPU").Types("T", {type});
    };
    extension.Kernel(spec("MaxPool3D"), MakeKernel<PoolKernel<&LaunchVolumeMax>>);
    extension.Kernel(spec("MaxPool3DGrad").Types("TInput", {type}),
                     (MakeKernel<MaxGradKernel<&LaunchVolumeMaxGrad, true>>));
    extension.Kernel(spec("MaxPool3DGradGrad"),
                     (MakeKernel<MaxGradKernel<&LaunchVolumeMaxGradGrad, false>>));
    extension.Kernel(spec("AvgPool3D"), MakeKernel<PoolKernel<&LaunchVolumeAvg>>);
    extension.Kernel(spec("AvgPool3DGrad").HostMemory("orig_input_shape"),
                     MakeKernel<AvgGradKernel>);
  }
}

}  // namespace troupe::cuda
