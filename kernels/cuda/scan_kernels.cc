// Cumsum, Cumprod and CumulativeLogsumexp of GPUs.
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/scan.h"

namespace troupe::cuda {
namespace {

template <ScanOp kOp>
class ScanKernel final : public OneTypeKernel {
 public:
  ScanKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status),
        exclusive_(construction.Attr<bool>("exclusive")),
        reverse_(construction.Attr<bool>("reverse")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(1), "axis"));
    TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "axis"));
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < input.rank(); ++d) {
      if (d != axis) (d < axis ? outer : inner) *= input.dim(d);
    }
    const int64_t n = input.dim(axis);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), input.shape()));
    if (output->num_elements() == 0) return absl::OkStatus();
    ScanShape shape = PlanScan(outer, n, inner);
    shape.exclusive = exclusive_;
    shape.reverse = reverse_;
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                            ctx.AllocateTemp(ElementType::kUint64, Shape({shape.totals()})));
    return CudaStatus(LaunchScan(kOp, type_, ctx.input(0).raw_data(), output->mutable_raw_data(),
                                 shape, scratch.mutable_raw_data(), StreamOf(ctx)),
                      "a running sum or product");
  }

 private:
  const bool exclusive_, reverse_;
};

}  // namespace

void RegisterScan(Extension& extension) {
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)).HostMemory("axis"),
                     factory);
  };
  std::vector<ElementType> numbers = FloatTypes();
  numbers.push_back(ElementType::kInt64);
  add("Cumsum", numbers, MakeKernel<ScanKernel<ScanOp::kSum>>);
  add("Cumprod", numbers, MakeKernel<ScanKernel<ScanOp::kProduct>>);
  add("CumulativeLogsumexp", FloatTypes(), MakeKernel<ScanKernel<ScanOp::kLogSumExp>>);
}

}  // namespace troupe::cuda
