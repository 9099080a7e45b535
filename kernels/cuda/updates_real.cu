// Optimisers' updates by rules for real numbers.
#include "kernels/cuda/updates.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
cudaError_t Choose(const UpdateRun& run) {
  using N = WideType<T>;
  switch (run.call.rule) {
    case kAdaMax:
      return RunUpdate<AdaMaxRule<N, false>, T, false>(run);
    case kAdagradDA:
      return run.call.by_row ? RunUpdate<AdagradDARule<N, true>, T>(run)
                             : RunUpdate<AdagradDARule<N, false>, T>(run);
    case kAdamWithAmsgrad:
      return RunUpdate<AmsgradRule<N, false>, T, false>(run);
    case kAddSign:
      return RunUpdate<AddSignRule<N, false>, T, false>(run);
    case kPowerSign:
      return RunUpdate<PowerSignRule<N, false>, T, false>(run);
    case kProximalAdagrad:
      return RunUpdate<ProximalAdagradRule<N, false>, T>(run);
    case kProximalGradientDescent:
      return RunUpdate<ProximalGradientDescentRule<N, false>, T>(run);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t LaunchRealUpdate(const UpdateRun& run) {
  return VisitFloating(run.call.type,
                       [&](auto tag) { return Choose<typename decltype(tag)::Type>(run); });
}

}  // namespace troupe::cuda
