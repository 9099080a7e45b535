// Bitwise ops of GPUs.
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/operands.h"

namespace troupe::cuda {
namespace {

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "a kernel of bits"); }

template <BitsOp kOp>
class BitsKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BinaryCall call, BroadcastCall(ctx, ctx.input(0).type()));
    return Enqueued(LaunchBits(kOp, type_, call, StreamOf(ctx)));
  }
};

class InvertKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return Enqueued(
        LaunchInvert(type_, x, y->mutable_raw_data(), y->num_elements(), StreamOf(ctx)));
  }
};

class PopulationCount final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, ElementType::kUint8, x.shape()));
    return Enqueued(LaunchPopulationCount(type_, x.raw_data(), y->mutable_data<uint8_t>(),
                                          y->num_elements(), StreamOf(ctx)));
  }
};

}  // namespace

void RegisterBits(Extension& extension) {
  using enum ElementType;
  const auto add = [&extension](const char* op, KernelFactory factory) {
    // Tensors of int32 are on the host.
    extension.Kernel(KernelSpec(op).Device("GPU").Types(
                         "T", {kInt8, kInt16, kInt64, kUint8, kUint16, kUint32, kUint64}),
                     factory);
  };
  add("BitwiseAnd", MakeKernel<BitsKernel<BitsOp::kAnd>>);
  add("BitwiseOr", MakeKernel<BitsKernel<BitsOp::kOr>>);
  add("BitwiseXor", MakeKernel<BitsKernel<BitsOp::kXor>>);
  add("Invert", MakeKernel<InvertKernel>);
  add("LeftShift", MakeKernel<BitsKernel<BitsOp::kLeftShift>>);
  add("PopulationCount", MakeKernel<PopulationCount>);
  add("RightShift", MakeKernel<BitsKernel<BitsOp::kRightShift>>);
}

}  // namespace troupe::cuda
