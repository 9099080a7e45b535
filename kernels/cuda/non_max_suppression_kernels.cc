// NonMaxSuppressionV2, V3 and V4 of GPUs.
#include "kernels/cuda/non_max_suppression.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/sort_memory.h"
#include "kernels/image/suppression.h"

namespace troupe::cuda {
namespace {

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "picking boxes"); }

class SuppressionKernel final : public LateShapeKernel {
 public:
  SuppressionKernel(KernelConstruction& construction, absl::Status*)
      : has_count_(construction.num_outputs() > 1),
        pad_(construction.Attr<bool>("pad_to_max_output_size")) {}

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(
        const SuppressionLimits limits,
        ReadSuppressionLimits(ctx, {0, 0, std::numeric_limits<float>::lowest()}));
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    const int64_t n = boxes.dim(0), most = std::min(limits.max_count, n);
    SuppressCall call{boxes.unchecked_data<float>()};
    call.n = n;
    call.max_count = pad_ ? limits.max_count : most;
    call.overlap_threshold = limits.overlap_threshold;
    if (has_count_) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * count, ctx.AllocateOutput(1, ElementType::kInt32, Shape()));
      call.count32 = count->mutable_data<int32_t>();
    }
    Search search;
    if (pad_ || most == 0) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                              ctx.AllocateOutput(0, ElementType::kInt32, Shape({call.max_count})));
      call.picked = out->mutable_data<int32_t>();
    } else {
      TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
      TROUPE_ASSIGN_OR_RETURN(Tensor picked, ctx.AllocateTemp(ElementType::kInt32, Shape({most})));
      call.count = search.found.mutable_data<int64_t>();
      call.picked = picked.mutable_data<int32_t>();
      search.keep = std::move(picked);
    }
    TROUPE_RETURN_IF_ERROR(
        Enqueue(ctx, scores.unchecked_data<float>(), limits.score_threshold, call));
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& picked) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kInt32, Shape({found[0]})));
    if (found[0] == 0) return absl::OkStatus();
    return Enqueued(cudaMemcpyAsync(out->mutable_raw_data(),
                                    std::any_cast<const Tensor&>(picked).raw_data(), out->bytes(),
                                    cudaMemcpyDeviceToDevice, StreamOf(ctx)));
  }

 private:
  static absl::Status Enqueue(KernelContext& ctx, const float* scores, float threshold,
                              SuppressCall call) {
    TROUPE_ASSIGN_OR_RETURN(const SortMemory sort, SortMemory::Allocate(ctx, call.n, false));
    const cudaStream_t stream = StreamOf(ctx);
    int result = 0;
    if (call.n > 0) {
      TROUPE_RETURN_IF_ERROR(Enqueued(LaunchScoreKeys(
          scores, call.n, threshold, static_cast<uint32_t*>(sort.buffers.keys[0]), stream)));
      TROUPE_RETURN_IF_ERROR(
          Enqueued(LaunchSort(sort.buffers, call.n, /*bits=*/32, /*fresh=*/true, &result, stream)));
    }
    call.keys = static_cast<const uint32_t*>(sort.buffers.keys[result]);
    call.places = sort.buffers.places[result];
    return Enqueued(LaunchSuppress(call, stream));
  }

  const bool has_count_, pad_;
};

}  // namespace

void RegisterNonMaxSuppression(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("T", {ElementType::kFloat})
        .HostMemory("max_output_size")
        .HostMemory("iou_threshold");
  };
  extension.Kernel(spec("NonMaxSuppressionV2"), MakeKernel<SuppressionKernel>);
  for (const char* op : {"NonMaxSuppressionV3", "NonMaxSuppressionV4"}) {
    extension.Kernel(spec(op).HostMemory("score_threshold"), MakeKernel<SuppressionKernel>);
  }
}

}  // namespace troupe::cuda
