// BiasAdd, BiasAddV1, BiasAddGrad.
#include <memory>

#include "kernels/kernel_registry.h"
#include "kernels/math/elementwise.h"
#include "kernels/math/loops.h"
#include "kernels/reduce/reduce.h"

namespace troupe {
namespace {

// The dimension of channels: the last, or of NCHW images the second.
int ChannelDim(const Shape& shape, bool channels_first) {
  return channels_first && shape.rank() > 2 ? 1 : shape.rank() - 1;
}

absl::Status ReadFormat(KernelConstruction& c, bool* channels_first) {
  std::string format = c.attrs().GetOr<std::string>("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") {
    return InvalidArgument("data_format must be NHWC or NCHW, not ", format);
  }
  *channels_first = format == "NCHW";
  return absl::OkStatus();
}

class BiasAddKernel final : public Kernel {
 public:
  BiasAddKernel(KernelConstruction& c, absl::Status* status) {
    *status = ReadFormat(c, &channels_first_);
    const ElementType type = RemoveRef(c.input_type(0));
    add_ = FindBinary(simd::kAdd, type);
    grain_ = KernelContext::GrainFor(BinaryCost(simd::kAdd, type));
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    if (value.rank() < 2) {
      return InvalidArgument("the value must have at least 2 dimensions, got ",
                             value.shape().ToString());
    }
    if (bias.rank() != 1) {
      return InvalidArgument("the bias must have 1 dimension, got ", bias.shape().ToString());
    }
    const int channel = ChannelDim(value.shape(), channels_first_);
    if (bias.dim(0) != value.dim(channel)) {
      return InvalidArgument("the bias must have one value for each of the ", value.dim(channel),
                             " channels of ", value.shape().ToString(), ", got ",
                             bias.shape().ToString());
    }
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
    *status = ReadFormat(c, &channels_first_);
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
