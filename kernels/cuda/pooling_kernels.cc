// MaxPool, AvgPool and their gradients, all versions.
#include <algorithm>
#include <array>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/pooling.h"
#include "kernels/nn/pool_shape.h"

namespace troupe::cuda {
namespace {

class PoolKernel : public Kernel {
 public:
  PoolKernel(KernelConstruction& construction, absl::Status* status)
      : attributes_(construction.num_inputs()) {
    *status = attributes_.Read(construction, /*takes_nchw=*/true);
    const absl::StatusOr<Number> type = NumberOf(construction.output_type(0));
    if (status->ok()) *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  absl::StatusOr<PoolShape> Resolve(const KernelContext& ctx, const Shape& input,
                                    bool allows_depth) const {
    return attributes_.Resolve(ctx, input, allows_depth);
  }

  static Pooling PoolingOf(const PoolShape& s) {
    const auto axis = [](const Window& w) {
      return PoolingAxis{w.input, w.output, w.size, w.stride, w.pad_before};
    };
    return {s.batch, s.depth, axis(s.rows), axis(s.columns), s.channels_first};
  }

  static absl::Status Launched(cudaError_t error) { return CudaStatus(error, "a pooling"); }

  Number type_ = Number::kFloat;

 private:
  PoolAttributes attributes_;
};

class MaxPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), true));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (s.depth_window > 1) {
      return Launched(LaunchMaxPoolDepth(type_, out->num_elements(), s.depth_window, in.raw_data(),
                                         out->mutable_raw_data(), StreamOf(ctx)));
    }
    return Launched(
        LaunchMaxPool(type_, PoolingOf(s), in.raw_data(), out->mutable_raw_data(), StreamOf(ctx)));
  }
};

class MaxPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", ctx.input(1).shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (s.rows.input > INT32_MAX / s.columns.input) {
      return absl::UnimplementedError(
          StrCat("MaxPoolGrad of GPUs takes images of less than 2^31 pixels, got ", s.rows.input,
                 " x ", s.columns.input));
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                            ctx.AllocateTemp(ElementType::kInt32, s.output_shape()));
    return Launched(LaunchMaxPoolGrad(type_, PoolingOf(s), in.raw_data(), gradient.raw_data(),
                                      static_cast<int32_t*>(scratch.mutable_raw_data()),
                                      out->mutable_raw_data(), StreamOf(ctx)));
  }
};

class MaxPoolGradGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &pooled = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchMaxPoolGradGrad(type_, PoolingOf(s), in.raw_data(), pooled.raw_data(),
                                          gradient.raw_data(), out->mutable_raw_data(),
                                          StreamOf(ctx)));
  }
};

class AvgPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(
        LaunchAvgPool(type_, PoolingOf(s), in.raw_data(), out->mutable_raw_data(), StreamOf(ctx)));
  }
};

class AvgPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    std::array<int64_t, 4> dims;
    TROUPE_RETURN_IF_ERROR(ReadPoolSizes(ctx.input(0), "orig_input_shape", &dims));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, shape, false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchAvgPoolGrad(type_, PoolingOf(s), gradient.raw_data(),
                                      out->mutable_raw_data(), StreamOf(ctx)));
  }
};

}  // namespace

void RegisterPooling(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", FloatTypes());
  };
  const auto spec_v2 = [&spec](const char* op) {
    return spec(op).HostMemory("ksize").HostMemory("strides");
  };
  extension.Kernel(spec("MaxPool"), MakeKernel<MaxPoolKernel>);
  extension.Kernel(spec_v2("MaxPoolV2"), MakeKernel<MaxPoolKernel>);
  extension.Kernel(spec("MaxPoolGrad"), MakeKernel<MaxPoolGradKernel>);
  extension.Kernel(spec_v2("MaxPoolGradV2"), MakeKernel<MaxPoolGradKernel>);
  extension.Kernel(spec("MaxPoolGradGrad"), MakeKernel<MaxPoolGradGradKernel>);
  extension.Kernel(spec_v2("MaxPoolGradGradV2"), MakeKernel<MaxPoolGradGradKernel>);
  extension.Kernel(spec("AvgPool"), MakeKernel<AvgPoolKernel>);
  extension.Kernel(spec("AvgPoolGrad").HostMemory("orig_input_shape"),
                   MakeKernel<AvgPoolGradKernel>);
}

}  // namespace troupe::cuda
