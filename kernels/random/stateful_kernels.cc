// StatefulUniform, -UniformInt, -UniformFullInt, -StandardNormal, -TruncatedNormal,
// -RandomBinomial. NonDeterministicInts.
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/random/binomial.h"
#include "kernels/random/fill.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/stateful.h"

namespace troupe {
namespace {

/// The position of a run, which moves the variable's by `count` times 256 blocks. The variable is
/// given back.
absl::StatusOr<Philox> Advance(Leases& leases, int64_t counter_at, uint64_t count) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * changed, leases[0].mutable_value());
  int64_t* words = changed->mutable_data<int64_t>() + counter_at;
  Philox position(static_cast<uint64_t>(words[2]), static_cast<uint64_t>(words[1]));
  position.Skip(static_cast<uint64_t>(words[0]));
  Philox next = position;
  next.Skip(count * kBlocksPerOutput);
  words[0] = static_cast<int64_t>(next.counter_low());
  words[1] = static_cast<int64_t>(next.counter_high());
  leases[0].Release();
  return position;
}

class StatefulHostKernel : public StatefulFillKernel {
 protected:
  using StatefulFillKernel::StatefulFillKernel;

  absl::Status AdvanceAndFill(KernelContext& ctx, Leases& leases, Tensor* out) const final {
    const auto count = static_cast<uint64_t>(out->num_elements());
    TROUPE_ASSIGN_OR_RETURN(const Philox position, Advance(leases, counter_at(), count));
    return count == 0 ? absl::OkStatus() : FillOutput(ctx, position, out);
  }
  /// `out` is not empty.
  virtual absl::Status FillOutput(KernelContext& ctx, const Philox& position,
                                  Tensor* out) const = 0;
};

template <Distribution kDistribution, bool kAlgorithmInState = false>
class StatefulFloats final : public StatefulHostKernel {
 public:
  StatefulFloats(KernelConstruction& construction, absl::Status*)
      : StatefulHostKernel(construction, kAlgorithmInState) {}

 private:
  absl::Status FillOutput(KernelContext& ctx, const Philox& position, Tensor* out) const override {
    return Fill(ctx, kDistribution, position, out);
  }
};

class StatefulUniformInt final : public StatefulHostKernel {
 public:
  StatefulUniformInt(KernelConstruction& construction, absl::Status*)
      : StatefulHostKernel(construction) {}

 private:
  absl::Status CheckInputs(KernelContext& ctx) const override {
    return ReadRange(ctx.input(3), ctx.input(4)).status();
  }
  absl::Status FillOutput(KernelContext& ctx, const Philox& position, Tensor* out) const override {
    TROUPE_ASSIGN_OR_RETURN(const IntegerRange range, ReadRange(ctx.input(3), ctx.input(4)));
    return FillIntegers(ctx, position, range.low, range.size, out);
  }
};

class StatefulUniformFullInt final : public StatefulHostKernel {
 public:
  StatefulUniformFullInt(KernelConstruction& construction, absl::Status*)
      : StatefulHostKernel(construction) {}

 private:
  absl::Status FillOutput(KernelContext& ctx, const Philox& position, Tensor* out) const override {
    return FillIntegers(ctx, position, 0, 0, out);
  }
};

class StatefulRandomBinomial final : public StatefulRandomKernel {
 public:
  StatefulRandomBinomial(KernelConstruction& construction, absl::Status*)
      : StatefulRandomKernel(construction) {}

 private:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    const Tensor &counts = ctx.input(3), &probs = ctx.input(4);
    TROUPE_ASSIGN_OR_RETURN(const int64_t algorithm, ReadIntegerScalar(ctx.input(1), "algorithm"));
    if (algorithm != static_cast<int64_t>(RandomAlgorithm::kPhilox)) {
      return InvalidArgument("algorithm must be 1 (Philox), got ", algorithm);
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadOutputShape(ctx));
    TROUPE_ASSIGN_OR_RETURN(const Shape sets, BinomialSets(shape, counts, probs));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    const uint64_t num_sets = static_cast<uint64_t>(sets.num_elements());
    const uint64_t n = static_cast<uint64_t>(shape.num_elements());
    // TensorFlow moves the position as if a set took 200 words for each of its samples.
    const uint64_t samples = num_sets == 0 ? 1 : n / num_sets;
    TROUPE_RETURN_IF_ERROR(CheckState(ctx, leases[0]));
    TROUPE_ASSIGN_OR_RETURN(const Philox position,
                            Advance(leases, counter_at(), num_sets * 2 * 100 * (samples + 3) / 4));
    return DrawBinomial(ctx, sets, counts, probs, position, out);
  }
};

class NonDeterministicInts final : public Kernel {
 public:
  NonDeterministicInts(KernelConstruction& construction, absl::Status*)
      : type_(construction.output_type(0)), stream_(0, 0) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    return FillIntegers(ctx, stream_.Reserve(static_cast<uint64_t>(shape.num_elements())), 0, 0,
                        out);
  }

 private:
  const ElementType type_;
  PhiloxStream stream_;  ///< Of a seed drawn at random.
};

std::vector<ElementType> FullIntTypes() {
  return {ElementType::kInt32, ElementType::kInt64, ElementType::kUint32, ElementType::kUint64};
}
KernelSpec Floats(const char* op) { return KernelSpec(op).Types("dtype", FloatTypes()); }

REGISTER_KERNEL(Floats("StatefulUniform"), MakeKernel<StatefulFloats<Distribution::kUniform>>);
REGISTER_KERNEL(Floats("StatefulStandardNormalV2"),
                MakeKernel<StatefulFloats<Distribution::kNormal>>);
REGISTER_KERNEL(Floats("StatefulStandardNormal"),
                (MakeKernel<StatefulFloats<Distribution::kNormal, true>>));
REGISTER_KERNEL(Floats("StatefulTruncatedNormal"),
                MakeKernel<StatefulFloats<Distribution::kTruncatedNormal>>);
REGISTER_KERNEL(KernelSpec("StatefulUniformInt").Types("dtype", IndexTypes()),
                MakeKernel<StatefulUniformInt>);
REGISTER_KERNEL(KernelSpec("StatefulUniformFullInt").Types("dtype", FullIntTypes()),
                MakeKernel<StatefulUniformFullInt>);
REGISTER_KERNEL(KernelSpec("StatefulRandomBinomial")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf}),
                MakeKernel<StatefulRandomBinomial>);
REGISTER_KERNEL(KernelSpec("NonDeterministicInts").Types("dtype", FullIntTypes()),
                MakeKernel<NonDeterministicInts>);

}  // namespace
}  // namespace troupe
