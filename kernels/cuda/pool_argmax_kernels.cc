// MaxPoolWithArgmax and MaxPoolGradWithArgmax of GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/pool_argmax.h"
#include "kernels/nn/pool_argmax.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a pooling with indices";

absl::Status BadIndexInImage(const int64_t* values) {
  return BadArgmax(values[0], values[1], 0, values[2]);
}
absl::Status BadIndexInBatch(const int64_t* values) {
  return InvalidArgument("argmax has ", values[1], " at ", values[0],
                         ", which is not in its image, that begins with ", values[2]);
}

class ArgmaxKernel : public ArgmaxPoolKernel {
 public:
  ArgmaxKernel(KernelConstruction& construction, absl::Status* status)
      : ArgmaxPoolKernel(construction, status) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    if (status->ok()) *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  ArgmaxPool PoolOf(const PoolShape& s) const {
    return {s.batch, s.depth, AxisOf(s.rows), AxisOf(s.columns), include_batch_};
  }

  Number type_ = Number::kFloat;
};

class MaxPoolWithArgmaxKernel final : public ArgmaxKernel {
 public:
  using ArgmaxKernel::ArgmaxKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * argmax,
                            ctx.AllocateOutput(1, ElementType::kInt64, s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return CudaStatus(LaunchMaxPoolArgmax(type_, PoolOf(s), in.raw_data(), out->mutable_raw_data(),
                                          argmax->mutable_data<int64_t>(), StreamOf(ctx)),
                      kWhat);
  }
};

class MaxPoolGradWithArgmaxKernel final : public ArgmaxKernel {
 public:
  using ArgmaxKernel::ArgmaxKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &gradient = ctx.input(1), &argmax = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, ResolveGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor strays, ctx.AllocateTemp(ElementType::kInt32, Shape()));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check,
                            CheckLate(ctx, include_batch_ ? BadIndexInBatch : BadIndexInImage));
    return CudaStatus(
        LaunchMaxPoolArgmaxGrad(type_, PoolOf(s), gradient.raw_data(),
                                argmax.unchecked_data<int64_t>(), strays.mutable_data<int32_t>(),
                                check, out->mutable_raw_data(), StreamOf(ctx)),
        kWhat);
  }
};

}  // namespace

void RegisterPoolArgmax(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("T", FloatTypes())
        .Types("Targmax", {ElementType::kInt64});
  };
  extension.Kernel(spec("MaxPoolWithArgmax"), MakeKernel<MaxPoolWithArgmaxKernel>);
  extension.Kernel(spec("MaxPoolGradWithArgmax"), MakeKernel<MaxPoolGradWithArgmaxKernel>);
}

}  // namespace troupe::cuda
