// Random ops of GPUs whose position is in a variable, which is in the card's memory: a launch moves
// it on, and leaves where it was to the one that draws.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/random_start.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/stateful.h"
#include "kernels/state/own_value.h"

namespace troupe::cuda {
namespace {

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "random numbers"); }

class StatefulKernel : public StatefulFillKernel {
 public:
  StatefulKernel(KernelConstruction& construction, absl::Status* status)
      : StatefulFillKernel(construction) {
    const absl::StatusOr<Number> number = NumberOf(type_);
    *status = number.status();
    if (number.ok()) number_ = *number;
  }

 protected:
  absl::Status AdvanceAndFill(KernelContext& ctx, Leases& leases, Tensor* out) const final {
    if (out->num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor position,
                            ctx.AllocateTemp(ElementType::kUint64, Shape({kPositionWords})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * state, OwnValue(ctx, leases[0]));
    int64_t* const words = state->mutable_data<int64_t>();
    auto* const key = position.mutable_data<uint64_t>();
    const uint64_t blocks = static_cast<uint64_t>(out->num_elements()) * kBlocksPerOutput;
    TROUPE_RETURN_IF_ERROR(Enqueued(LaunchAdvance(words, words, blocks, key, StreamOf(ctx))));
    leases[0].Release();
    return FillOutput(ctx, StartAt(key, key + 1), out);
  }
  /// `out` is not empty.
  virtual absl::Status FillOutput(KernelContext& ctx, const PhiloxStart& start,
                                  Tensor* out) const = 0;

  Number number_ = Number::kFloat;

 private:
  static constexpr int64_t kPositionWords = 3;
};

template <decltype(&LaunchUniform) kLaunch>
class Floats final : public StatefulKernel {
 public:
  using StatefulKernel::StatefulKernel;

 private:
  absl::Status FillOutput(KernelContext& ctx, const PhiloxStart& start,
                          Tensor* out) const override {
    return Enqueued(
        kLaunch(number_, start, out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)));
  }
};

/// Of a range that inputs say, or any integers.
template <bool kOfRange>
class Integers final : public StatefulKernel {
 public:
  using StatefulKernel::StatefulKernel;

 private:
  static absl::StatusOr<IntegerRange> Range(KernelContext& ctx) {
    if (kOfRange) return ReadRange(ctx.input(3), ctx.input(4));
    return IntegerRange{};
  }
  absl::Status CheckInputs(KernelContext& ctx) const override { return Range(ctx).status(); }
  absl::Status FillOutput(KernelContext& ctx, const PhiloxStart& start,
                          Tensor* out) const override {
    TROUPE_ASSIGN_OR_RETURN(const IntegerRange range, Range(ctx));
    return Enqueued(LaunchUniformInt(number_, start, static_cast<int64_t>(range.low), range.size,
                                     out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)));
  }
};

}  // namespace

void RegisterStatefulRandom(Extension& extension) {
  using enum ElementType;
  const auto spec = [](const char* op, std::vector<ElementType> types) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("dtype", std::move(types))
        .HostMemory("resource")
        .HostMemory("algorithm")
        .HostMemory("shape");
  };
  extension.Kernel(spec("StatefulUniform", FloatTypes()), MakeKernel<Floats<&LaunchUniform>>);
  extension.Kernel(spec("StatefulStandardNormalV2", FloatTypes()),
                   MakeKernel<Floats<&LaunchNormal>>);
  extension.Kernel(spec("StatefulTruncatedNormal", FloatTypes()),
                   MakeKernel<Floats<&LaunchTruncatedNormal>>);
  extension.Kernel(
      spec("StatefulUniformInt", IndexTypes()).HostMemory("minval").HostMemory("maxval"),
      MakeKernel<Integers<true>>);
  extension.Kernel(spec("StatefulUniformFullInt", {kInt32, kInt64, kUint32, kUint64}),
                   MakeKernel<Integers<false>>);
}

}  // namespace troupe::cuda
