// StatefulUniform, -UniformInt, -UniformFullInt, -StandardNormal, -TruncatedNormal,
// -RandomBinomial: the position is in a variable, so that it is saved and restored with the others.
// NonDeterministicInts.
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/random/binomial.h"
#include "kernels/random/fill.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/stateless.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

/// The variable holds int64s: the counter's two halves and the key, after the algorithm's number in
/// the first version of the ops.
class StatefulRandomKernel : public VariableKernel {
 protected:
  explicit StatefulRandomKernel(KernelConstruction& construction, bool algorithm_in_state = false)
      : VariableKernel(construction, 1),
        type_(construction.output_type(0)),
        algorithm_in_state_(algorithm_in_state) {}

  absl::StatusOr<Shape> ReadOutputShape(KernelContext& ctx) const {
    const Tensor& shape = ctx.input(algorithm_in_state_ ? 1 : 2);
    if (shape.type() != ElementType::kInt32 && shape.type() != ElementType::kInt64) {
      return InvalidArgument("the shape must be of type int32 or int64, got ",
                             ElementTypeName(shape.type()));
    }
    return ReadShapeVector(shape, "the shape");
  }

  /// The position of a run, which moves the variable's by `count` times 256 blocks. The variable is
  /// given back.
  absl::StatusOr<Philox> Advance(KernelContext& ctx, Leases& leases, uint64_t count) const {
    if (!leases[0].value().valid()) {
      return absl::NotFoundError(StrCat("the state '", leases[0].variable()->name(),
                                        "' of a random generator is not initialized"));
    }
    const Tensor& state = leases[0].value();
    const int64_t before = algorithm_in_state_ ? 1 : 0;
    if (state.type() != ElementType::kInt64 || state.rank() != 1 || state.dim(0) < before) {
      return InvalidArgument("the state of a random generator must be a vector of int64, got ",
                             ElementTypeName(state.type()), state.shape().ToString());
    }
    int64_t algorithm;
    if (algorithm_in_state_) {
      algorithm = state.unchecked_data<int64_t>()[0];
    } else {
      TROUPE_ASSIGN_OR_RETURN(algorithm, ReadIntegerScalar(ctx.input(1), "algorithm"));
    }
    TROUPE_RETURN_IF_ERROR(CheckAlgorithm(algorithm));
    if (state.dim(0) < before + 3) {
      return InvalidArgument("the state of Philox must have at least ", before + 3,
                             " elements, got shape ", state.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * changed, leases[0].mutable_value());
    int64_t* words = changed->mutable_data<int64_t>() + before;
    Philox position(static_cast<uint64_t>(words[2]), static_cast<uint64_t>(words[1]));
    position.Skip(static_cast<uint64_t>(words[0]));
    Philox next = position;
    next.Skip(count * kBlocksPerOutput);
    words[0] = static_cast<int64_t>(next.counter_low());
    words[1] = static_cast<int64_t>(next.counter_high());
    leases[0].Release();
    return position;
  }

  const ElementType type_;

 private:
  static absl::Status CheckAlgorithm(int64_t number) {
    switch (number) {  // Not as an algorithm, which has 32 bits.
      case static_cast<int64_t>(RandomAlgorithm::kPhilox):
      case static_cast<int64_t>(RandomAlgorithm::kAuto):
        return absl::OkStatus();
      case static_cast<int64_t>(RandomAlgorithm::kThreeFry):
        return absl::UnimplementedError("ThreeFry is not implemented: ask for Philox, 1");
    }
    return InvalidArgument("algorithm must be 1 (Philox) or 3 (chosen for the device: Philox), ",
                           "got ", number);
  }

  const bool algorithm_in_state_;
};

/// Fills a tensor; `count` outputs move the position.
class StatefulFillKernel : public StatefulRandomKernel {
 protected:
  using StatefulRandomKernel::StatefulRandomKernel;

  absl::Status Apply(KernelContext& ctx, Leases& leases) final {
    TROUPE_RETURN_IF_ERROR(CheckInputs(ctx));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadOutputShape(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    const uint64_t count = static_cast<uint64_t>(shape.num_elements());
    TROUPE_ASSIGN_OR_RETURN(const Philox position, Advance(ctx, leases, count));
    return count == 0 ? absl::OkStatus() : FillOutput(ctx, position, out);
  }
  virtual absl::Status CheckInputs(KernelContext&) const { return absl::OkStatus(); }
  /// `out` is not empty.
  virtual absl::Status FillOutput(KernelContext& ctx, const Philox& position,
                                  Tensor* out) const = 0;
};

template <Distribution kDistribution, bool kAlgorithmInState = false>
class StatefulFloats final : public StatefulFillKernel {
 public:
  StatefulFloats(KernelConstruction& construction, absl::Status*)
      : StatefulFillKernel(construction, kAlgorithmInState) {}

 private:
  absl::Status FillOutput(KernelContext& ctx, const Philox& position, Tensor* out) const override {
    return Fill(ctx, kDistribution, position, out);
  }
};

class StatefulUniformInt final : public StatefulFillKernel {
 public:
  StatefulUniformInt(KernelConstruction& construction, absl::Status*)
      : StatefulFillKernel(construction) {}

 private:
  absl::Status CheckInputs(KernelContext& ctx) const override {
    return ReadRange(ctx.input(3), ctx.input(4)).status();
  }
  absl::Status FillOutput(KernelContext& ctx, const Philox& position, Tensor* out) const override {
    TROUPE_ASSIGN_OR_RETURN(const IntegerRange range, ReadRange(ctx.input(3), ctx.input(4)));
    return FillIntegers(ctx, position, range.low, range.size, out);
  }
};

class StatefulUniformFullInt final : public StatefulFillKernel {
 public:
  StatefulUniformFullInt(KernelConstruction& construction, absl::Status*)
      : StatefulFillKernel(construction) {}

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
    TROUPE_ASSIGN_OR_RETURN(const Philox position,
                            Advance(ctx, leases, num_sets * 2 * 100 * (samples + 3) / 4));
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
