// StatelessRandomUniform, -Normal, -UniformInt, -UniformFullInt, StatelessTruncatedNormal, their
// second versions, and what makes the keys and counters of those.
#include "kernels/common/registration.h"
#include "kernels/random/fill.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

template <typename Inputs, Distribution kDistribution>
absl::Status FillStateless(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Philox position, Inputs::Position(ctx));
  return Fill(ctx, kDistribution, position, out);
}

template <typename Inputs>
absl::Status UniformIntStateless(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const IntegerRange range,
                          ReadRange(ctx.input(Inputs::kRest), ctx.input(Inputs::kRest + 1)));
  TROUPE_ASSIGN_OR_RETURN(const Philox position, Inputs::Position(ctx));
  return FillIntegers(ctx, position, range.low, range.size, out);
}

template <typename Inputs>
absl::Status UniformFullIntStateless(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Philox position, Inputs::Position(ctx));
  return FillIntegers(ctx, position, 0, 0, out);
}

absl::Status KeyAndCounter(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const Philox position, PositionOfSeed(ctx.input(0)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * key, ctx.AllocateOutput(0, ElementType::kUint64, Shape({1})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * counter,
                          ctx.AllocateOutput(1, ElementType::kUint64, Shape({2})));
  *key->mutable_data<uint64_t>() = position.key();
  counter->mutable_data<uint64_t>()[0] = position.counter_low();
  counter->mutable_data<uint64_t>()[1] = position.counter_high();
  return absl::OkStatus();
}

template <int kOutput>
absl::Status Algorithm(KernelContext& ctx) {
  return ctx.SetScalar(kOutput, static_cast<int32_t>(RandomAlgorithm::kPhilox));
}

absl::Status KeyCounterAndAlgorithm(KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(KeyAndCounter(ctx));
  return Algorithm<2>(ctx);
}

std::vector<ElementType> FullIntTypes() {
  return {ElementType::kInt32, ElementType::kInt64, ElementType::kUint32, ElementType::kUint64};
}

template <typename Inputs>
void RegisterFills(const char* uniform, const char* normal, const char* truncated,
                   const char* uniform_int, const char* full_int) {
  const auto fill = [](const char* op, const std::vector<ElementType>& types,
                       KernelFactory factory) {
    KernelRegistry::Global()->Register(KernelSpec(op).Types("dtype", types), factory);
  };
  fill(uniform, FloatTypes(),
       (MakeAttrKernel<FillStateless<Inputs, Distribution::kUniform>, "dtype">));
  fill(normal, FloatTypes(),
       (MakeAttrKernel<FillStateless<Inputs, Distribution::kNormal>, "dtype">));
  fill(truncated, FloatTypes(),
       (MakeAttrKernel<FillStateless<Inputs, Distribution::kTruncatedNormal>, "dtype">));
  fill(uniform_int, IndexTypes(), (MakeAttrKernel<UniformIntStateless<Inputs>, "dtype">));
  fill(full_int, FullIntTypes(), (MakeAttrKernel<UniformFullIntStateless<Inputs>, "dtype">));
}

[[maybe_unused]] const bool kRegistered = [] {
  RegisterFills<SeedInputs>("StatelessRandomUniform", "StatelessRandomNormal",
                            "StatelessTruncatedNormal", "StatelessRandomUniformInt",
                            "StatelessRandomUniformFullInt");
  RegisterFills<KeyInputs>("StatelessRandomUniformV2", "StatelessRandomNormalV2",
                           "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2",
                           "StatelessRandomUniformFullIntV2");
  return true;
}();

KernelSpec OnHost(const char* op) { return Cheap(op).Device("DEFAULT").HostMemory("*"); }

REGISTER_KERNEL(OnHost("StatelessRandomGetKeyCounter"), MakeKernel<KeyAndCounter>);
REGISTER_KERNEL(OnHost("StatelessRandomGetAlg"), MakeKernel<Algorithm<0>>);
REGISTER_KERNEL(OnHost("StatelessRandomGetKeyCounterAlg"), MakeKernel<KeyCounterAndAlgorithm>);

}  // namespace
}  // namespace troupe
