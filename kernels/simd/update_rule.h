/// Names of the rules by which optimisers change variables. Plain types only, for all compilers.
#ifndef TROUPE_KERNELS_SIMD_UPDATE_RULE_H_
#define TROUPE_KERNELS_SIMD_UPDATE_RULE_H_

#include <stdint.h>

namespace troupe {

/// Called as the ops are. `update_formulas.h` has the formulas.
enum UpdateRule : uint8_t {
  kAdaMax,
  kAdadelta,
  kAdagrad,
  kAdagradDA,
  kAdagradV2,
  kAdam,
  kAdamWithAmsgrad,
  kAddSign,
  kCenteredRMSProp,
  kFtrl,
  kFtrlV2,
  kGradientDescent,
  kKerasMomentum,
  kMomentum,
  kPowerSign,
  kProximalAdagrad,
  kProximalGradientDescent,
  kRMSProp,
  kNumUpdateRules
};

/// Scalars that a rule takes beside the gradient.
inline constexpr int kMaxUpdateScalars = 6;

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_UPDATE_RULE_H_
