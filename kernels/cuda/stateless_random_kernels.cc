// Stateless random ops of GPUs. Seeds are on the host; keys and counters, which the second versions
// of the ops take, are in the card's memory.
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/random_start.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/sample_loops.h"
#include "kernels/random/stateless.h"

namespace troupe::cuda {
namespace {

using TypeList = std::vector<ElementType>;

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "random numbers"); }

absl::StatusOr<PhiloxStart> StartOf(SeedInputs, const KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Philox position, SeedInputs::Position(ctx));
  return StartAt(position);
}
absl::StatusOr<PhiloxStart> StartOf(KeyInputs, const KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(KeyInputs::CheckAlgorithm(ctx));
  return StartAt(ctx.input(1).unchecked_data<uint64_t>(), ctx.input(2).unchecked_data<uint64_t>());
}

template <typename Inputs, decltype(&LaunchUniform) kLaunch>
absl::Status Floats(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const PhiloxStart start, StartOf(Inputs(), ctx));
  TROUPE_ASSIGN_OR_RETURN(const Number number, NumberOf(type));
  return Enqueued(
      kLaunch(number, start, out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)));
}

/// Of a range that inputs say, or any integers.
template <typename Inputs, bool kOfRange>
absl::Status Integers(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  IntegerRange range = {};
  if constexpr (kOfRange) {
    TROUPE_ASSIGN_OR_RETURN(range,
                            ReadRange(ctx.input(Inputs::kRest), ctx.input(Inputs::kRest + 1)));
  }
  TROUPE_ASSIGN_OR_RETURN(const PhiloxStart start, StartOf(Inputs(), ctx));
  TROUPE_ASSIGN_OR_RETURN(const Number number, NumberOf(type));
  return Enqueued(LaunchUniformInt(number, start, static_cast<int64_t>(range.low), range.size,
                                   out->mutable_raw_data(), out->num_elements(), StreamOf(ctx)));
}

template <typename Inputs>
absl::Status Gamma(KernelContext& ctx, ElementType type) {
  const Tensor& alpha = ctx.input(Inputs::kRest);
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  GammaCall call{.alpha = alpha.raw_data(), .out = out->mutable_raw_data()};
  TROUPE_ASSIGN_OR_RETURN(call.start, StartOf(Inputs(), ctx));
  TROUPE_RETURN_IF_ERROR(CheckEndsWith(out->shape(), alpha.shape()));
  TROUPE_ASSIGN_OR_RETURN(call.type, NumberOf(type));
  call.sets = alpha.num_elements();
  call.samples = out->num_elements() / call.sets;
  return Enqueued(LaunchGamma(call, StreamOf(ctx)));
}

class Registrations {
 public:
  explicit Registrations(Extension& extension) : extension_(extension) {}

  template <typename Inputs>
  void Add(const std::string& suffix) {
    const TypeList bits = {ElementType::kInt32, ElementType::kInt64, ElementType::kUint32,
                           ElementType::kUint64};
    AddOne<Inputs, Floats<Inputs, &LaunchUniform>>("StatelessRandomUniform" + suffix, FloatTypes());
    AddOne<Inputs, Floats<Inputs, &LaunchNormal>>("StatelessRandomNormal" + suffix, FloatTypes());
    AddOne<Inputs, Floats<Inputs, &LaunchTruncatedNormal>>("StatelessTruncatedNormal" + suffix,
                                                           FloatTypes());
    AddOne<Inputs, Integers<Inputs, true>>("StatelessRandomUniformInt" + suffix, IndexTypes(),
                                           {"minval", "maxval"});
    AddOne<Inputs, Integers<Inputs, false>>("StatelessRandomUniformFullInt" + suffix, bits);
  }
  template <typename Inputs, auto kCompute>
  void AddOne(const std::string& op, const TypeList& types,
              std::initializer_list<const char*> on_host = {}) {
    KernelSpec spec = KernelSpec(op).Device("GPU").Types("dtype", types).HostMemory("shape");
    spec.HostMemory(std::is_same_v<Inputs, SeedInputs> ? "seed" : "alg");
    for (const char* argument : on_host) spec.HostMemory(argument);
    extension_.Kernel(spec, MakeAttrKernel<kCompute, "dtype">);
  }

 private:
  Extension& extension_;
};

}  // namespace

void RegisterStatelessRandom(Extension& extension) {
  Registrations registrations(extension);
  registrations.Add<SeedInputs>("");
  registrations.Add<KeyInputs>("V2");
  registrations.AddOne<SeedInputs, Gamma<SeedInputs>>("StatelessRandomGammaV2", FloatTypes());
  registrations.AddOne<KeyInputs, Gamma<KeyInputs>>("StatelessRandomGammaV3", FloatTypes());
}

}  // namespace troupe::cuda
