// StatelessRandomBinomial, and the numbers of StatefulRandomBinomial.
#include "kernels/random/binomial.h"

#include <cmath>
#include <utility>
#include <vector>

#include "devices/half.h"
#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/random/draws.h"
#include "kernels/random/sample_loops.h"
#include "kernels/random/stateless.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

using Uniform = FromTheBack<UniformGroup<double>>;

/// log(k!) less Stirling's approximation of it.
double StirlingTail(double k) {
  constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kTails[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/// Numbers for a probability of at most 1/2; those of a higher one are what is left of the count.
class BinomialDistribution {
 public:
  BinomialDistribution() = default;
  /// `p` is in [0, 1], `n` is finite. `by_rejection`: the expected number is at least 10.
  BinomialDistribution(double n, double p, bool of_the_rest, bool by_rejection)
      : n_(n), p_(p), of_the_rest_(of_the_rest), by_rejection_(by_rejection) {
    if (!by_rejection) return;
    deviation_ = std::sqrt(n * p * (1 - p));
    b_ = 1.15 + 2.53 * deviation_;
    a_ = -0.0873 + 0.0248 * b_ + 0.01 * p;
    m_ = std::floor((n + 1) * p);
  }

  double Draw(int64_t i, Philox position) const {
    if (n_ <= 0 || p_ <= 0) return of_the_rest_ ? std::max(n_, 0.0) : 0;
    // Blocks that are set aside for a number.
    position.Skip(static_cast<uint64_t>(i) * (by_rejection_ ? 256 : 42));
    const double drawn = by_rejection_ ? ByRejection(position) : ByInversion(position);
    return of_the_rest_ ? n_ - drawn : drawn;
  }

 private:
  /// How many geometric numbers have a sum of at most n.
  double ByInversion(Philox& position) const {
    Uniform uniform;
    double sum = 0;
    for (double count = 0;; ++count) {
      sum += std::ceil(std::log(uniform(position)) / std::log1p(-p_));
      if (sum > n_) return count;
    }
  }

  /// BTRS of Hörmann, "The Generation of Binomial Random Variates", 1993; names are the paper's. At
  /// least one of four pairs is accepted.
  double ByRejection(Philox& position) const {
    const double c = n_ * p_ + 0.5;
    const double v_r = 0.92 - 4.2 / b_;
    const double r = p_ / (1 - p_);
    const double alpha = (2.83 + 5.1 / b_) * deviation_;
    Uniform uniform;
    while (true) {
      const double u = uniform(position) - 0.5;
      double v = uniform(position);
      const double us = 0.5 - std::abs(u);
      const double k = std::floor((2 * a_ / us + b_) * u + c);
      if (us >= 0.07 && v <= v_r) return k;
      if (!(k >= 0 && k <= n_)) continue;
      v = std::log(v * alpha / (a_ / (us * us) + b_));
      const double bound = (m_ + 0.5) * std::log((m_ + 1) / (r * (n_ - m_ + 1))) +
                           (n_ + 1) * std::log((n_ - m_ + 1) / (n_ - k + 1)) +
                           (k + 0.5) * std::log(r * (n_ - k + 1) / (k + 1)) + StirlingTail(m_) +
                           StirlingTail(n_ - m_) - StirlingTail(k) - StirlingTail(n_ - k);
      if (v <= bound) return k;
    }
  }

  double n_ = 0, p_ = 0;
  bool of_the_rest_ = false, by_rejection_ = false;
  double deviation_ = 0, a_ = 0, b_ = 0, m_ = 0;
};

/// The method is chosen in the type of the parameters, as TensorFlow does it.
template <typename T>
BinomialDistribution MakeBinomial(T count, T probability) {
  const bool of_the_rest = probability > T(0.5f);
  const T p = of_the_rest ? T(T(1.0f) - probability) : probability;
  const bool by_rejection = T(count * p) >= T(10.0f);
  return BinomialDistribution(static_cast<double>(count), static_cast<double>(p), of_the_rest,
                              by_rejection);
}

template <typename T>
absl::Status MakeBinomials(const Shape& sets, const Tensor& counts, const Tensor& probabilities,
                           std::vector<BinomialDistribution>* binomials) {
  for (const T count : counts.unchecked_values<T>()) {
    const double x = static_cast<double>(count);
    if (!std::isfinite(x)) return InvalidArgument("counts must be finite, got ", x);
  }
  for (const T probability : probabilities.unchecked_values<T>()) {
    const double x = static_cast<double>(probability);
    if (!(x >= 0 && x <= 1)) return InvalidArgument("probs must be in the range [0, 1], got ", x);
  }
  const BroadcastWalk walk(sets, {&counts.shape(), &probabilities.shape()});
  walk.ForEach(0, walk.num_runs(), [&](int64_t at, const BroadcastWalk::Offsets& from) {
    for (int64_t j = 0; j < walk.run_length(); ++j) {
      (*binomials)[at + j] =
          MakeBinomial<T>(counts.unchecked_data<T>()[from[0] + j * walk.run_step(0)],
                          probabilities.unchecked_data<T>()[from[1] + j * walk.run_step(1)]);
    }
  });
  return absl::OkStatus();
}

absl::Status StatelessBinomial(KernelContext& ctx, ElementType type) {
  const Tensor &counts = ctx.input(SeedInputs::kRest), &probs = ctx.input(SeedInputs::kRest + 1);
  TROUPE_RETURN_IF_ERROR(SeedInputs::Check(ctx));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
  TROUPE_ASSIGN_OR_RETURN(const Shape sets, BinomialSets(shape, counts, probs));
  TROUPE_ASSIGN_OR_RETURN(const Philox start, SeedInputs::Position(ctx));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type, shape));
  return DrawBinomial(ctx, sets, counts, probs, start, out);
}

REGISTER_KERNEL(KernelSpec("StatelessRandomBinomial")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf}),
                (MakeAttrKernel<StatelessBinomial, "dtype">));

}  // namespace

absl::StatusOr<Shape> BinomialSets(const Shape& shape, const Tensor& counts,
                                   const Tensor& probabilities) {
  TROUPE_ASSIGN_OR_RETURN(Shape sets, BroadcastShapes(counts.shape(), probabilities.shape()));
  TROUPE_RETURN_IF_ERROR(CheckEndsWith(shape, sets));
  return sets;
}

absl::Status DrawBinomial(KernelContext& ctx, const Shape& sets, const Tensor& counts,
                          const Tensor& probabilities, const Philox& start, Tensor* out) {
  if (out->num_elements() == 0) return absl::OkStatus();
  std::vector<BinomialDistribution> binomials(sets.num_elements());
  TROUPE_RETURN_IF_ERROR((SwitchType<float, double, half>(counts.type(), [&]<typename T>() {
    return MakeBinomials<T>(sets, counts, probabilities, &binomials);
  })));
  return SwitchType<float, double, half, int32_t, int64_t>(out->type(), [&]<typename T>() {
    constexpr double kSampleNs = 150;
    DrawSamples<T>(
        ctx, sets.num_elements(), kSampleNs, out, [&](int64_t set) { return &binomials[set]; },
        [&](int64_t i, const BinomialDistribution* binomial) {
          return AsElement<T>(binomial->Draw(i, start));
        });
    return absl::OkStatus();
  });
}

}  // namespace troupe
