// Angle, Complex, ComplexAbs, Imag and Real of GPUs.
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/operands.h"

namespace troupe::cuda {
namespace {

using enum ElementType;

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "parts of complex numbers"); }

template <ComplexPart kPart>
class PartKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * y, ctx.AllocateOutput(0, x.type() == kComplex64 ? kFloat : kDouble, x.shape()));
    return Enqueued(LaunchComplexPart(kPart, type_, x.raw_data(), y->mutable_raw_data(),
                                      y->num_elements(), StreamOf(ctx)));
  }
};

class Complex final : public Kernel {
 public:
  Complex(KernelConstruction& construction, absl::Status* status)
      : type_(construction.output_type(0)) {
    const absl::StatusOr<Number> number = NumberOf(type_);
    *status = number.status();
    if (number.ok()) number_ = *number;
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BinaryCall call, BroadcastCall(ctx, type_));
    return Enqueued(LaunchMakeComplex(number_, call, StreamOf(ctx)));
  }

 private:
  const ElementType type_;
  Number number_ = Number::kComplex64;
};

}  // namespace

void RegisterComplex(Extension& extension) {
  const auto add = [&extension](const char* op, ElementType from, ElementType to,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", {from}).Types("Tout", {to}), factory);
  };
  const auto add_part = [&](const char* op, KernelFactory factory) {
    add(op, kComplex64, kFloat, factory);
    add(op, kComplex128, kDouble, factory);
  };
  add_part("Angle", MakeKernel<PartKernel<ComplexPart::kAngle>>);
  add_part("ComplexAbs", MakeKernel<PartKernel<ComplexPart::kAbs>>);
  add_part("Imag", MakeKernel<PartKernel<ComplexPart::kImag>>);
  add_part("Real", MakeKernel<PartKernel<ComplexPart::kReal>>);
  add("Complex", kFloat, kComplex64, MakeKernel<Complex>);
  add("Complex", kDouble, kComplex128, MakeKernel<Complex>);
}

}  // namespace troupe::cuda
