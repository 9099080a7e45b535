// FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3, BatchNormWithGlobalNormalization and their
// gradients of GPUs.
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/nn/batch_norm_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a batch normalization";

class BatchNormKernel : public OneTypeKernel {
 public:
  BatchNormKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (status->ok()) *status = attrs_.Read(construction);
  }

 protected:
  /// Reduces all dimensions but that of channels, of tensors of the first input's type.
  static ReducePlan PlanFor(const KernelContext& ctx, const ChannelLayout& layout, bool aligned) {
    const auto size = static_cast<int64_t>(ElementSize(ctx.input(0).type()));
    return PlanReduce({{layout.outer, true}, {layout.channels, false}, {layout.inner, true}},
                      aligned ? BatchNormPack(size) : 1);
  }
  static bool IsAligned(const Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.raw_data()) % 16 == 0;
  }
  static absl::StatusOr<float*> ChannelOutput(KernelContext& ctx, int i, int64_t channels) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(i, ElementType::kFloat, Shape({channels})));
    return out->mutable_data<float>();
  }
  /// Sets all bytes of n floats.
  static absl::Status SetBytes(KernelContext& ctx, float* at, int byte, int64_t n) {
    if (n == 0) return absl::OkStatus();
    return CudaStatus(cudaMemsetAsync(at, byte, n * sizeof(float), StreamOf(ctx)),
                      "cudaMemsetAsync");
  }

  BatchNormAttrs attrs_;
};

class FusedBatchNormKernel final : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout, CheckBatchNorm(ctx, attrs_));
    const int64_t channels = layout.channels;
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
    float* out[4];  // batch mean and variance, saved mean and variance
    for (int i = 0; i < 4; ++i) {
      TROUPE_ASSIGN_OR_RETURN(out[i], ChannelOutput(ctx, i + 1, channels));
    }
    if (ctx.num_outputs() == 6) {  // reserve_space_3, of which there is no use
      TROUPE_ASSIGN_OR_RETURN(Tensor * reserve,
                              ctx.AllocateOutput(5, ElementType::kFloat, Shape()));
      TROUPE_RETURN_IF_ERROR(SetBytes(ctx, reserve->mutable_data<float>(), 0, 1));
    }
    if (x.num_elements() == 0) {
      for (int i = 0; i < 4; ++i) {  // The statistics of nothing are no numbers.
        TROUPE_RETURN_IF_ERROR(SetBytes(ctx, out[i], i < 2 ? 0xff : 0, channels));
      }
      return absl::OkStatus();
    }
    const ReducePlan plan = PlanFor(ctx, layout, IsAligned(x));
    constexpr int64_t kFloats = kMomentsSize / sizeof(float);
    const int64_t coefficients = (3 * channels + kFloats - 1) / kFloats * kFloats;  // Aligned.
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(ElementType::kFloat, Shape({coefficients + kFloats * plan.scratch})));
    BatchNormCall call{type_,          layout.outer, channels, layout.inner, attrs_.is_training,
                       attrs_.epsilon, attrs_.factor};
    call.x = x.raw_data();
    call.scale = ctx.input(1).unchecked_data<float>();
    call.offset = ctx.input(2).unchecked_data<float>();
    call.given_mean = ctx.input(3).unchecked_data<float>();
    call.given_variance = ctx.input(4).unchecked_data<float>();
    call.y = y->mutable_raw_data();
    call.mean = out[0];
    call.variance = out[1];
    call.saved_mean = out[2];
    call.saved_variance = out[3];
    call.coefficients = scratch.mutable_data<float>();
    call.scratch = call.coefficients + coefficients;
    return CudaStatus(LaunchBatchNorm(call, plan, StreamOf(ctx)), kWhat);
  }
};

class FusedBatchNormGradKernel final : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    const Tensor& x = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ChannelLayout layout, CheckBatchNormGrad(ctx, attrs_));
    const int64_t channels = layout.channels;
    TROUPE_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.type(), x.shape()));
    TROUPE_ASSIGN_OR_RETURN(float* scale_gradient, ChannelOutput(ctx, 1, channels));
    TROUPE_ASSIGN_OR_RETURN(float* offset_gradient, ChannelOutput(ctx, 2, channels));
    TROUPE_RETURN_IF_ERROR(ChannelOutput(ctx, 3, 0).status());
    TROUPE_RETURN_IF_ERROR(ChannelOutput(ctx, 4, 0).status());
    if (x.num_elements() == 0) {
      TROUPE_RETURN_IF_ERROR(SetBytes(ctx, scale_gradient, 0, channels));
      return SetBytes(ctx, offset_gradient, 0, channels);
    }
    const ReducePlan plan = PlanFor(ctx, layout, IsAligned(x) && IsAligned(dy));
    const int64_t coefficients = 4 * channels;
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(ElementType::kFloat, Shape({coefficients + 2 * plan.scratch})));
    BatchNormGradCall call{type_,        layout.outer,       channels,
                           layout.inner, attrs_.is_training, attrs_.epsilon};
    call.dy = dy.raw_data();
    call.x = x.raw_data();
    call.scale = ctx.input(2).unchecked_data<float>();
    call.mean = ctx.input(3).unchecked_data<float>();
    call.variance = ctx.input(4).unchecked_data<float>();
    call.dx = dx->mutable_raw_data();
    call.scale_gradient = scale_gradient;
    call.offset_gradient = offset_gradient;
    call.coefficients = scratch.mutable_data<float>();
    call.scratch = call.coefficients + coefficients;
    return CudaStatus(LaunchBatchNormGrad(call, plan, StreamOf(ctx)), kWhat);
  }
};

/// Input i, if things are scaled.
const void* Gamma(const KernelContext& ctx, int i, bool scale) {
  return scale ? ctx.input(i).raw_data() : nullptr;
}

absl::Status GlobalNorm(KernelContext& ctx, float epsilon, bool scale) {
  TROUPE_RETURN_IF_ERROR(CheckGlobalNorm(ctx));
  const Tensor& x = ctx.input(0);
  const int64_t channels = x.dim(3);
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(x.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
  if (y->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(Tensor factor, ctx.AllocateTemp(ElementType::kFloat, Shape({channels})));
  const GlobalNormCall call{type,
                            x.num_elements() / channels,
                            channels,
                            epsilon,
                            x.raw_data(),
                            ctx.input(1).raw_data(),
                            ctx.input(2).raw_data(),
                            ctx.input(3).raw_data(),
                            Gamma(ctx, 4, scale),
                            y->mutable_raw_data(),
                            factor.mutable_data<float>()};
  return CudaStatus(LaunchGlobalNorm(call, StreamOf(ctx)), kWhat);
}

/// Inputs t, m, v, gamma, backprop.
absl::Status GlobalNormGrad(KernelContext& ctx, float epsilon, bool scale) {
  TROUPE_RETURN_IF_ERROR(CheckGlobalNormGrad(ctx));
  const Tensor &x = ctx.input(0), &dy = ctx.input(4);
  const int64_t channels = x.dim(3), rows = x.dim(0) * x.dim(1) * x.dim(2);
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(x.type()));
  void* out[5];  // of t, m, v, beta, gamma
  for (int i = 0; i < 5; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * made, ctx.AllocateOutput(i, x.type(), i == 0 ? x.shape() : Shape({channels})));
    out[i] = made->mutable_raw_data();
  }
  if (channels == 0) return absl::OkStatus();
  constexpr int64_t kAccSize = 2 * sizeof(float);
  const bool aligned = reinterpret_cast<uintptr_t>(x.raw_data()) % 16 == 0 &&
                       reinterpret_cast<uintptr_t>(dy.raw_data()) % 16 == 0;
  const auto size = static_cast<int64_t>(ElementSize(x.type()));
  const ReducePlan plan =
      PlanReduce({{rows, true}, {channels, false}}, aligned ? ReducePack(size, kAccSize) : 1);
  const int64_t factors = (channels + 1) / 2 * 2;  // Accumulators are aligned.
  TROUPE_ASSIGN_OR_RETURN(
      Tensor scratch, ctx.AllocateTemp(ElementType::kFloat, Shape({factors + 2 * plan.scratch})));
  float* const factor = scratch.mutable_data<float>();
  const GlobalNormGradCall call{type,
                                rows,
                                channels,
                                epsilon,
                                x.raw_data(),
                                ctx.input(1).raw_data(),
                                ctx.input(2).raw_data(),
                                Gamma(ctx, 3, scale),
                                dy.raw_data(),
                                out[0],
                                out[1],
                                out[2],
                                out[3],
                                out[4],
                                factor,
                                factor + factors};
  return CudaStatus(LaunchGlobalNormGrad(call, plan, StreamOf(ctx)), kWhat);
}

}  // namespace

void RegisterBatchNorm(Extension& extension) {
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)), factory);
  };
  const std::vector<ElementType> small = {ElementType::kBfloat16, ElementType::kFloat,
                                          ElementType::kHalf};
  add("FusedBatchNorm", {ElementType::kFloat}, MakeKernel<FusedBatchNormKernel>);
  add("FusedBatchNormV2", small, MakeKernel<FusedBatchNormKernel>);
  add("FusedBatchNormV3", small, MakeKernel<FusedBatchNormKernel>);
  add("FusedBatchNormGrad", {ElementType::kFloat}, MakeKernel<FusedBatchNormGradKernel>);
  add("FusedBatchNormGradV2", small, MakeKernel<FusedBatchNormGradKernel>);
  add("FusedBatchNormGradV3", small, MakeKernel<FusedBatchNormGradKernel>);
  const std::vector<ElementType> global = {ElementType::kFloat, ElementType::kHalf};
  add("BatchNormWithGlobalNormalization", global,
      MakeAttrKernel<GlobalNorm, "variance_epsilon", "scale_after_normalization">);
  add("BatchNormWithGlobalNormalizationGrad", global,
      MakeAttrKernel<GlobalNormGrad, "variance_epsilon", "scale_after_normalization">);
}

}  // namespace troupe::cuda
