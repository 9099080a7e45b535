/// Inputs of stateless random ops: the same inputs give the same numbers, in any process.
#ifndef TROUPE_KERNELS_RANDOM_STATELESS_H_
#define TROUPE_KERNELS_RANDOM_STATELESS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "kernels/common/philox.h"
#include "kernels/kernel.h"

namespace troupe {

/// Numbers of the algorithms that inputs name.
enum class RandomAlgorithm { kPhilox = 1, kThreeFry = 2, kAuto = 3 };

/// Where the numbers of a seed, a vector of two integers, begin.
absl::StatusOr<Philox> PositionOfSeed(const Tensor& seed);

/// The inputs of ops whose input 1 is a seed.
struct SeedInputs {
  static constexpr int kRest = 2;  ///< The first input after it.
  static absl::Status Check(const KernelContext& ctx);
  /// After `Check`.
  static absl::StatusOr<Philox> Position(const KernelContext& ctx) {
    return PositionOfSeed(ctx.input(1));
  }
};

/// The inputs of ops whose inputs 1 to 3 are `key` [1], `counter` [at least 2] and `alg`.
struct KeyInputs {
  static constexpr int kRest = 4;
  /// Looks at `alg`, and at the shapes of the others.
  static absl::Status Check(const KernelContext& ctx);
  /// InvalidArgument for other algorithms than Philox.
  static absl::Status CheckAlgorithm(const KernelContext& ctx);
  /// The same, or what key and counter are, which must be on the host.
  static absl::StatusOr<Philox> Position(const KernelContext& ctx);
};

/// Checks the inputs and makes output 0, of the shape that input 0 is.
template <typename Inputs>
absl::StatusOr<Tensor*> AllocateStateless(KernelContext& ctx, ElementType type);

extern template absl::StatusOr<Tensor*> AllocateStateless<SeedInputs>(KernelContext&, ElementType);
extern template absl::StatusOr<Tensor*> AllocateStateless<KeyInputs>(KernelContext&, ElementType);

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_STATELESS_H_
