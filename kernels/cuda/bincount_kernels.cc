// Bincount, DenseBincount and HistogramFixedWidth of GPUs.
#include <type_traits>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/bincount.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/sorted_ids.h"
#include "kernels/reduce/histogram_shape.h"
#include "kernels/type_switch.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a count";

absl::Status Negative(const int64_t* values) { return NegativeNumber(values[1]); }
absl::Status IsNan(const int64_t*) { return HistogramOfNan(); }

/// Sums of weights of float, in their order.
absl::Status SumWeights(KernelContext& ctx, const BincountCall& call, const LateCheck& check,
                        Tensor* output) {
  const int64_t n = call.rows * call.length, bins = call.rows * call.size;
  TROUPE_ASSIGN_OR_RETURN(Tensor ids, ctx.AllocateTemp(ElementType::kInt64, Shape({n})));
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(LaunchBinOf(call, ids.mutable_data<int64_t>(), check, StreamOf(ctx)), kWhat));
  TROUPE_ASSIGN_OR_RETURN(const SortedRows sorted,
                          SortedRows::Of(ctx, IndicesOf(ids), n, bins, {}, check));
  TROUPE_ASSIGN_OR_RETURN(const Tensor starts, sorted.Starts(ctx, bins));
  const SegmentCall sum{.op = SegmentOp::kSum,
                        .type = Number::kFloat,
                        .ids = IndicesOf(ids),
                        .data = ctx.input(2).raw_data(),
                        .out = output->mutable_raw_data(),
                        .rows = n,
                        .length = 1,
                        .segments = bins,
                        .empty_is_zero = true};
  return CudaStatus(
      LaunchReduceSorted(sum, sorted.places, starts.unchecked_data<int64_t>(), StreamOf(ctx)),
      kWhat);
}

absl::Status CountNumbers(KernelContext& ctx, const BinsShape& bins, bool binary) {
  const Tensor &input = ctx.input(0), &weights = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, weights.type(), bins.output));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, Negative));
  BincountCall call{IndicesOf(input), bins.rows, 0, bins.size};
  if (bins.rows > 0) call.length = input.num_elements() / bins.rows;
  const bool weighted = weights.num_elements() > 0 && !binary;
  const cudaStream_t stream = StreamOf(ctx);
  if (output->num_elements() == 0) {  // Numbers may be negative all the same.
    return SortedRows::Of(ctx, call.numbers, input.num_elements(), 0, {.negative = true}, check)
        .status();
  }
  if (output->type() == ElementType::kInt32) {
    return CudaStatus(
        LaunchCountBins(call, binary, weighted ? weights.unchecked_data<int32_t>() : nullptr,
                        output->mutable_data<int32_t>(), check, stream),
        kWhat);
  }
  if (weighted) return SumWeights(ctx, call, check, output);
  TROUPE_ASSIGN_OR_RETURN(Tensor counts, ctx.AllocateTemp(ElementType::kInt32, output->shape()));
  auto* const counted = counts.mutable_data<int32_t>();
  cudaError_t error = LaunchCountBins(call, binary, nullptr, counted, check, stream);
  if (error == cudaSuccess) {
    error = LaunchCast(Number::kInt32, Number::kFloat, /*truncate=*/false, counted,
                       output->mutable_raw_data(), output->num_elements(), stream);
  }
  return CudaStatus(error, kWhat);
}

class BincountKernel final : public Kernel {
 public:
  BincountKernel(KernelConstruction& construction, absl::Status*)
      : dense_(construction.op() == "DenseBincount"),
        binary_(dense_ && construction.Attr<bool>("binary_output")) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BinsShape bins,
                            dense_ ? DenseBincountShape(ctx) : BincountShape(ctx));
    return CountNumbers(ctx, bins, binary_);
  }

 private:
  const bool dense_, binary_;
};

absl::Status HistogramFixedWidth(KernelContext& ctx) {
  const Tensor& values = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t bins, HistogramBins(ctx.input(1), ctx.input(2)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kInt32, Shape({bins})));
  IntervalCall call{Number::kFloat, values.raw_data(), values.num_elements()};
  call.bins = bins;
  TROUPE_RETURN_IF_ERROR(
      (SwitchType<float, double>(values.type(), [&]<typename T>() -> absl::Status {
        const T* const ends = ctx.input(1).unchecked_data<T>();
        call.type = std::is_same_v<T, float> ? Number::kFloat : Number::kDouble;
        call.low = static_cast<double>(ends[0]);
        TROUPE_ASSIGN_OR_RETURN(call.width, IntervalWidth(ends[0], ends[1], bins));
        return absl::OkStatus();
      })));
  TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, IsNan));
  return CudaStatus(LaunchCountIntervals(call, out->mutable_data<int32_t>(), check, StreamOf(ctx)),
                    kWhat);
}

}  // namespace

void RegisterBincount(Extension& extension) {
  using enum ElementType;
  const auto bincount = [&extension](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", {kFloat, kInt32}).HostMemory("size");
  };
  extension.Kernel(bincount("Bincount"), MakeKernel<BincountKernel>);
  extension.Kernel(bincount("DenseBincount").Types("Tidx", IndexTypes()),
                   MakeKernel<BincountKernel>);
  extension.Kernel(KernelSpec("HistogramFixedWidth")
                       .Device("GPU")
                       .Types("T", {kFloat, kDouble})
                       .Types("dtype", {kInt32})
                       .HostMemory("value_range")
                       .HostMemory("nbins"),
                   MakeKernel<HistogramFixedWidth>);
}

}  // namespace troupe::cuda
