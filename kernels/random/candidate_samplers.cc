// UniformCandidateSampler, LogUniformCandidateSampler, ComputeAccidentalHits: classes to train
// against. The classes are TensorFlow's for the same seeds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/common/registration.h"
#include "kernels/random/candidate_sampler.h"
#include "kernels/random/draws.h"

namespace troupe {
namespace {

/// Every class alike.
class UniformClasses {
 public:
  UniformClasses(KernelConstruction& construction, absl::Status*)
      : range_(construction.Attr<int64_t>("range_max")) {}
  int64_t range() const { return range_; }
  int64_t Draw(PhiloxWords& words) const {
    return static_cast<int64_t>(UniformBelow(words, static_cast<uint64_t>(range_)));
  }
  float Probability(int64_t) const { return static_cast<float>(1.0 / static_cast<double>(range_)); }

 private:
  int64_t range_;
};

/// P(class) = (log(class + 2) - log(class + 1)) / log(range + 1): nearly Zipf's, for classes sorted
/// by falling frequency.
class LogUniformClasses {
 public:
  LogUniformClasses(KernelConstruction& construction, absl::Status*)
      : range_(construction.Attr<int64_t>("range_max")),
        log_range_(std::log1p(static_cast<double>(range_))) {}
  int64_t range() const { return range_; }
  int64_t Draw(PhiloxWords& words) const {
    // Rounding may have gone beyond the range, even of int64.
    const double drawn = std::exp(UniformDouble(words) * log_range_);
    const int64_t value = static_cast<int64_t>(std::min(drawn, 9.2e18)) - 1;
    return value % range_;
  }
  float Probability(int64_t value) const {
    const double x = static_cast<double>(value);
    return static_cast<float>(std::log((x + 2.0) / (x + 1.0)) / log_range_);
  }

 private:
  int64_t range_;
  double log_range_;
};

template <typename T>
absl::Status PutOut(KernelContext& ctx, int i, const std::vector<T>& values) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * out,
      ctx.AllocateOutput(i, kElementType<T>, Shape({static_cast<int64_t>(values.size())})));
  std::copy(values.begin(), values.end(), out->mutable_data<T>());
  return absl::OkStatus();
}

absl::Status ComputeAccidentalHits(KernelContext& ctx, int64_t num_true) {
  const Tensor &true_classes = ctx.input(0), &candidates = ctx.input(1);
  if (true_classes.rank() != 2 || true_classes.dim(1) != num_true) {
    return InvalidArgument("true_classes must be a matrix of num_true = ", num_true,
                           " columns, got shape ", true_classes.shape().ToString());
  }
  if (candidates.rank() != 1) {
    return InvalidArgument("sampled_candidates must be a vector, got shape ",
                           candidates.shape().ToString());
  }
  // The last of equal candidates counts.
  absl::flat_hash_map<int64_t, int64_t> position;
  for (int64_t i = 0; i < candidates.num_elements(); ++i) {
    position[candidates.unchecked_data<int64_t>()[i]] = i;
  }
  std::vector<int32_t> rows;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < true_classes.num_elements(); ++i) {
    const auto found = position.find(true_classes.unchecked_data<int64_t>()[i]);
    if (found == position.end()) continue;
    rows.push_back(static_cast<int32_t>(i / num_true));
    ids.push_back(found->second);
  }
  const std::vector<float> weights(rows.size(), std::numeric_limits<float>::lowest());
  TROUPE_RETURN_IF_ERROR(PutOut<int32_t>(ctx, 0, rows));
  TROUPE_RETURN_IF_ERROR(PutOut<int64_t>(ctx, 1, ids));
  return PutOut<float>(ctx, 2, weights);
}

REGISTER_KERNEL(KernelSpec("UniformCandidateSampler"),
                MakeKernel<CandidateSampler<UniformClasses>>);
REGISTER_KERNEL(KernelSpec("LogUniformCandidateSampler"),
                MakeKernel<CandidateSampler<LogUniformClasses>>);
REGISTER_KERNEL(KernelSpec("ComputeAccidentalHits"),
                (MakeAttrKernel<ComputeAccidentalHits, "num_true">));

}  // namespace
}  // namespace troupe
