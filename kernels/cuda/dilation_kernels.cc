// Dilation2D and its gradients on GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dilation.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/nn/dilation_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a dilation";

class DilationKernel : public OneTypeKernel {
 public:
  DilationKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (status->ok()) *status = attributes_.Read(construction);
  }

 protected:
  static Dilation DilationOf(const DilationShape& s) {
    return {s.batch, s.depth, AxisOf(s.rows), AxisOf(s.columns)};
  }

  /// Output 0, of the shape of input `like`, from the taps that the output stems from, by
  /// launch(dilation, taps, stream, output).
  template <typename Launch>
  absl::Status Back(KernelContext& ctx, int like, Launch launch) const {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const DilationShape s, attributes_.ResolveGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, in.type(), ctx.input(like).shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const cudaStream_t stream = StreamOf(ctx);
    if (gradient.num_elements() == 0) {
      return CudaStatus(cudaMemsetAsync(out->mutable_raw_data(), 0, out->bytes(), stream), kWhat);
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor taps, ctx.AllocateTemp(ElementType::kInt32, gradient.shape()));
    const Dilation dilation = DilationOf(s);
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchDilationTaps(type_, dilation, in.raw_data(), filter.raw_data(),
                                      taps.mutable_data<int32_t>(), stream),
                   kWhat));
    return launch(dilation, taps.unchecked_data<int32_t>(), stream, out->mutable_raw_data());
  }

  DilationAttributes attributes_;
};

class Dilation2DKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const DilationShape s, attributes_.Resolve(in.shape(), filter.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return CudaStatus(LaunchDilation(type_, DilationOf(s), in.raw_data(), filter.raw_data(),
                                     out->mutable_raw_data(), StreamOf(ctx)),
                      kWhat);
  }
};

class DilationBackpropInputKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    return Back(
        ctx, 0, [&](const Dilation& d, const int32_t* taps, cudaStream_t stream, void* out) {
          return CudaStatus(
              LaunchDilationInputGrad(type_, d, taps, ctx.input(2).raw_data(), out, stream), kWhat);
        });
  }
};

class DilationBackpropFilterKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    return Back(
        ctx, 1,
        [&](const Dilation& d, const int32_t* taps, cudaStream_t stream,
            void* out) -> absl::Status {
          const ElementType sum_type =
              type_ == Number::kDouble ? ElementType::kDouble : ElementType::kFloat;
          TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                                  ctx.AllocateTemp(sum_type, Shape({d.filter_sums().scratch()})));
          return CudaStatus(LaunchDilationFilterGrad(type_, d, taps, ctx.input(2).raw_data(),
                                                     scratch.mutable_raw_data(), out, stream),
                            kWhat);
        });
  }
};

}  // namespace

void RegisterDilation(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", FloatTypes());
  };
  extension.Kernel(spec("Dilation2D"), MakeKernel<Dilation2DKernel>);
  extension.Kernel(spec("Dilation2DBackpropInput"), MakeKernel<DilationBackpropInputKernel>);
  extension.Kernel(spec("Dilation2DBackpropFilter"), MakeKernel<DilationBackpropFilterKernel>);
}

}  // namespace troupe::cuda
