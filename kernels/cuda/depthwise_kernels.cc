// DepthwiseConv2dNative and its gradients on GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/depthwise.h"
#include "kernels/nn/depthwise_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a depthwise convolution";

class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction, /*only_nhwc=*/false);
    const absl::StatusOr<Number> type = NumberOf(construction.output_type(0));
    if (status->ok()) *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  static Depthwise DepthwiseOf(const ConvShape& s) {
    return {s.batch,        s.in_depth,        s.in_depth == 0 ? 0 : s.out_depth / s.in_depth,
            AxisOf(s.rows), AxisOf(s.columns), s.channels_first};
  }
  /// Makes output 0, of shape `result`, from two tensors by launch(stream, output); sums of nothing
  /// are 0.
  template <typename Launch>
  static absl::Status Run(KernelContext& ctx, const Tensor& a, const Tensor& b, const Shape& result,
                          Launch launch) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), result));
    if (out->num_elements() == 0) return absl::OkStatus();
    void* const to = out->mutable_raw_data();
    const cudaStream_t stream = StreamOf(ctx);
    const bool empty = a.num_elements() == 0 || b.num_elements() == 0;
    return CudaStatus(empty ? cudaMemsetAsync(to, 0, out->bytes(), stream) : launch(stream, to),
                      kWhat);
  }

  DepthwiseAttributes attributes_;
  Number type_ = Number::kFloat;
};

class DepthwiseConvKernel final : public DepthwiseKernel {
 public:
  using DepthwiseKernel::DepthwiseKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            attributes_.Resolve(input.shape(), filter.shape()));
    return Run(ctx, input, filter, shape.output_shape(), [&](cudaStream_t stream, void* out) {
      return LaunchDepthwise(type_, DepthwiseOf(shape), input.raw_data(), filter.raw_data(), out,
                             stream);
    });
  }
};

class DepthwiseBackpropInputKernel final : public DepthwiseKernel {
 public:
  using DepthwiseKernel::DepthwiseKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input, ReadShapeVector(ctx.input(0), "input_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return Run(ctx, filter, gradient, input, [&](cudaStream_t stream, void* out) {
      return LaunchDepthwiseInputGrad(type_, DepthwiseOf(shape), filter.raw_data(),
                                      gradient.raw_data(), out, stream);
    });
  }
};

class DepthwiseBackpropFilterKernel final : public DepthwiseKernel {
 public:
  using DepthwiseKernel::DepthwiseKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, ReadShapeVector(ctx.input(1), "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    const Depthwise d = DepthwiseOf(shape);
    const ElementType sum_type =
        type_ == Number::kDouble ? ElementType::kDouble : ElementType::kFloat;
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                            ctx.AllocateTemp(sum_type, Shape({d.filter_sums().scratch()})));
    return Run(ctx, input, gradient, filter, [&](cudaStream_t stream, void* out) {
      return LaunchDepthwiseFilterGrad(type_, d, input.raw_data(), gradient.raw_data(),
                                       scratch.mutable_raw_data(), out, stream);
    });
  }
};

}  // namespace

void RegisterDepthwise(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", FloatTypes()).Cost(KernelCost::kExpensive);
  };
  extension.Kernel(spec("DepthwiseConv2dNative"), MakeKernel<DepthwiseConvKernel>);
  extension.Kernel(spec("DepthwiseConv2dNativeBackpropInput").HostMemory("input_sizes"),
                   MakeKernel<DepthwiseBackpropInputKernel>);
  extension.Kernel(spec("DepthwiseConv2dNativeBackpropFilter").HostMemory("filter_sizes"),
                   MakeKernel<DepthwiseBackpropFilterKernel>);
}

}  // namespace troupe::cuda
