// Optimisers' updates by rules that need no order among numbers.
#include "kernels/cuda/updates.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
cudaError_t Choose(const UpdateRun& run) {
  using N = WideType<T>;
  const bool flag = run.call.flag;
  switch (run.call.rule) {
    case kAdadelta:
      return RunUpdate<AdadeltaRule<N, false>, T>(run);
    case kAdagrad:
      return flag ? RunUpdate<AdagradRule<N, true>, T>(run)
                  : RunUpdate<AdagradRule<N, false>, T>(run);
    case kAdagradV2:
      return flag ? RunUpdate<AdagradV2Rule<N, true>, T>(run)
                  : RunUpdate<AdagradV2Rule<N, false>, T>(run);
    case kAdam:
      return flag ? RunUpdate<AdamRule<N, true>, T, false>(run)
                  : RunUpdate<AdamRule<N, false>, T, false>(run);
    case kCenteredRMSProp:
      return run.call.by_row ? RunUpdate<CenteredRMSPropRule<N, true>, T>(run)
                             : RunUpdate<CenteredRMSPropRule<N, false>, T, false>(run);
    case kGradientDescent:
      return RunUpdate<GradientDescentRule<N, false>, T, false>(run);
    case kKerasMomentum:
      return flag ? RunUpdate<KerasMomentumRule<N, true>, T>(run)
                  : RunUpdate<KerasMomentumRule<N, false>, T>(run);
    case kMomentum:
      return flag ? RunUpdate<MomentumRule<N, true>, T>(run)
                  : RunUpdate<MomentumRule<N, false>, T>(run);
    case kRMSProp:
      return run.call.by_row ? RunUpdate<RMSPropRule<N, true>, T>(run)
                             : RunUpdate<RMSPropRule<N, false>, T, false>(run);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t LaunchFieldUpdate(const UpdateRun& run) {
  switch (run.call.type) {
    case Number::kComplex64:
      return Choose<Complex<float>>(run);
    case Number::kComplex128:
      return Choose<Complex<double>>(run);
    default:
      return VisitFloating(run.call.type,
                           [&](auto tag) { return Choose<typename decltype(tag)::Type>(run); });
  }
}

}  // namespace troupe::cuda
