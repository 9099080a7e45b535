#include "kernels/random/stateless.h"

#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"

namespace troupe {
namespace {

absl::Status CheckSeed(const Tensor& seed) {
  if (seed.rank() == 1 && seed.dim(0) == 2) return absl::OkStatus();
  return InvalidArgument("seed must have shape [2], got shape ", seed.shape().ToString());
}

bool IsPhilox(const Tensor& algorithm) {
  const auto named = static_cast<RandomAlgorithm>(*algorithm.unchecked_data<int32_t>());
  return named == RandomAlgorithm::kPhilox || named == RandomAlgorithm::kAuto;
}

}  // namespace

absl::StatusOr<Philox> PositionOfSeed(const Tensor& seed) {
  TROUPE_RETURN_IF_ERROR(CheckSeed(seed));
  TROUPE_ASSIGN_OR_RETURN(const DimVector words, ReadIntegers(seed, "seed"));
  // One block of another stream makes seeds that are near one another begin far apart.
  constexpr uint64_t kScramblingKey = 0x02461e293ec8f720;
  const Philox::Block block = Philox::Compute(kScramblingKey, static_cast<uint64_t>(words[0]),
                                              static_cast<uint64_t>(words[1]));
  return Philox(uint64_t{block[1]} << 32 | block[0], uint64_t{block[3]} << 32 | block[2]);
}

absl::Status SeedInputs::Check(const KernelContext& ctx) { return CheckSeed(ctx.input(1)); }

absl::Status KeyInputs::Check(const KernelContext& ctx) {
  const Tensor &key = ctx.input(1), &counter = ctx.input(2), &algorithm = ctx.input(3);
  if (algorithm.rank() != 0) {
    return InvalidArgument("alg must be a scalar, got shape ", algorithm.shape().ToString());
  }
  if (key.rank() != 1 || key.dim(0) != 1) {
    return InvalidArgument("key must have shape [1], got shape ", key.shape().ToString());
  }
  const int64_t min_counter = IsPhilox(algorithm) ? 2 : 1;
  if (counter.rank() != 1 || counter.dim(0) < min_counter) {
    return InvalidArgument("counter must be a vector of at least ", min_counter,
                           " elements, got shape ", counter.shape().ToString());
  }
  return absl::OkStatus();
}

absl::Status KeyInputs::CheckAlgorithm(const KernelContext& ctx) {
  const Tensor& algorithm = ctx.input(3);
  if (IsPhilox(algorithm)) return absl::OkStatus();
  return InvalidArgument("alg must be 1 (Philox) or 3 (chosen for the device: Philox), got ",
                         *algorithm.unchecked_data<int32_t>());
}

absl::StatusOr<Philox> KeyInputs::Position(const KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(CheckAlgorithm(ctx));
  const uint64_t* counter = ctx.input(2).unchecked_data<uint64_t>();
  Philox position(*ctx.input(1).unchecked_data<uint64_t>(), counter[1]);
  position.Skip(counter[0]);
  return position;
}

template <typename Inputs>
absl::StatusOr<Tensor*> AllocateStateless(KernelContext& ctx, ElementType type) {
  TROUPE_RETURN_IF_ERROR(Inputs::Check(ctx));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
  return ctx.AllocateOutput(0, type, shape);
}

template absl::StatusOr<Tensor*> AllocateStateless<SeedInputs>(KernelContext&, ElementType);
template absl::StatusOr<Tensor*> AllocateStateless<KeyInputs>(KernelContext&, ElementType);

}  // namespace troupe
