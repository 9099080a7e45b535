// BiasAdd, BiasAddV1, BiasAddGrad.
#include <memory>

#include "kernels/kernel_registry.h"
#include "kernels/math/bias_format.h"
#include "kernels/math/elementwise.h"
#include "kernels/math/loops.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

class BiasAddKernel final : public Kernel {
 public:
  BiasAddKernel(KernelConstruction& c, absl::Status* status) {
    *status = ReadBiasFormat(c, &channels_first_);
    const ElementType type = RemoveRef(c.input_type(0));
    add_ = FindBinary(simd::kAdd, type);
    grain_ = KernelContext::GrainFor(BinaryCost(simd::kAdd, type));
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckBias(value.shape(), bias.shape(), channels_first_));
    const int channel = ChannelDim(value.shape(), channels_first_);
    Shape aligned = bias.shape();  // [C, 1, 1 ...] lines up with the channels when broadcast.
    for (int d = channel + 1; d < value.rank(); ++d) aligned.AddDim(1);
    const Shape& shape = value.shape();
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    BroadcastBinary(ctx, add_, grain_, value, shape, bias, aligned, shape, output);
    return absl::OkStatus();
  }

 private:
  simd::BinaryFns add_;
  int64_t grain_;
  bool channels_first_ = false;
};

class BiasAddGradKernel final : public Kernel {
 public:
  BiasAddGradKernel(KernelConstruction& c, absl::Status* status) {
    *status = ReadBiasFormat(c, &channels_first_);
    loops_ = FindReduce(Reduction::kSum, RemoveRef(c.input_type(0)));
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(0);
    if (gradient.rank() < 2) {
      return InvalidArgument("the gradient must have at least 2 dimensions, got ",
                             gradient.shape().ToString());
    }
    const int channel = ChannelDim(gradient.shape(), channels_first_);
    ReduceDims dims;
    for (int d = 0; d < gradient.rank(); ++d) dims.Add(gradient.dim(d), d != channel);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, gradient.type(), Shape({gradient.dim(channel)})));
    return Reduce(ctx, loops_, gradient.type(), gradient.raw_data(), dims,
                  output->mutable_raw_data());
  }

 private:
  ReduceLoops loops_;
  bool channels_first_ = false;
};

REGISTER_KERNEL(KernelSpec("BiasAdd").Types("T", NumberTypes()), MakeKernel<BiasAddKernel>);
REGISTER_KERNEL(KernelSpec("BiasAddV1").Types("T", NumberTypes()), MakeKernel<BiasAddKernel>);
REGISTER_KERNEL(KernelSpec("BiasAddGrad").Types("T", NumberTypes()), MakeKernel<BiasAddGradKernel>);

}  // namespace
}  // namespace troupe
