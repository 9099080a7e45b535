// UniformCandidateSampler, LogUniformCandidateSampler, ComputeAccidentalHits: classes to train
// against. The classes are TensorFlow's for the same seeds.
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "kernels/cancellation.h"
#include "kernels/common/philox.h"
#include "kernels/common/registration.h"
#include "kernels/kernel_registry.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_stream_kernel.h"

namespace troupe {
namespace {

/// Every class alike.
class UniformClasses {
 public:
  explicit UniformClasses(int64_t range) : range_(range) {}
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
  explicit LogUniformClasses(int64_t range)
      : range_(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(PhiloxWords& words) const {
    const int64_t value = static_cast<int64_t>(std::exp(UniformDouble(words) * log_range_)) - 1;
    // Rounding may have gone beyond the range.
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

/// How often a class of probability p is expected among `count` classes that took `tries` draws.
float ExpectedCount(float p, int64_t count, int64_t tries) {
  if (tries == count) return p * static_cast<float>(count);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

template <typename Classes>
class CandidateSampler final : public RandomStreamKernel {
 public:
  CandidateSampler(KernelConstruction& construction, absl::Status* status)
      : RandomStreamKernel(construction),
        num_true_(construction.Attr<int64_t>("num_true")),
        num_sampled_(construction.Attr<int64_t>("num_sampled")),
        range_(construction.Attr<int64_t>("range_max")),
        unique_(construction.Attr<bool>("unique")),
        classes_(range_) {
    if (num_true_ < 1 || num_sampled_ < 1 || range_ < 1) {
      *status = InvalidArgument("num_true, num_sampled and range_max must be positive, got ",
                                num_true_, ", ", num_sampled_, " and ", range_);
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& true_classes = ctx.input(0);
    if (true_classes.rank() != 2 || true_classes.dim(1) != num_true_) {
      return InvalidArgument("true_classes must be a matrix of num_true = ", num_true_,
                             " columns, got shape ", true_classes.shape().ToString());
    }
    if (unique_ && num_sampled_ > range_) {
      return InvalidArgument("there are no ", num_sampled_,
                             " different classes among range_max = ", range_);
    }
    for (const int64_t true_class : true_classes.unchecked_values<int64_t>()) {
      if (true_class < 0 || true_class >= range_) {
        return InvalidArgument("true_classes must be in the range [0, ", range_, "), got ",
                               true_class);
      }
    }
    const Shape vector({num_sampled_});
    TROUPE_ASSIGN_OR_RETURN(Tensor * sampled, ctx.AllocateOutput(0, ElementType::kInt64, vector));
    TROUPE_ASSIGN_OR_RETURN(Tensor * true_count,
                            ctx.AllocateOutput(1, ElementType::kFloat, true_classes.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * sampled_count,
                            ctx.AllocateOutput(2, ElementType::kFloat, vector));
    int64_t tries = num_sampled_;
    int64_t* out = sampled->mutable_data<int64_t>();
    // A run reserves 2,048 words for each class.
    PhiloxWords words(stream_.Reserve(512 * static_cast<uint64_t>(num_sampled_)));
    if (unique_) {
      TROUPE_ASSIGN_OR_RETURN(tries, DrawDistinct(ctx, words, out));
    } else {
      for (int64_t i = 0; i < num_sampled_; ++i) out[i] = classes_.Draw(words);
    }
    Count(*sampled, tries, sampled_count);
    Count(true_classes, tries, true_count);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<int64_t> DrawDistinct(KernelContext& ctx, PhiloxWords& words, int64_t* out) {
    absl::flat_hash_set<int64_t> seen;
    int64_t tries = 0;
    for (int64_t drawn = 0; drawn < num_sampled_;) {
      // With nearly all classes drawn, rare ones may take long to come.
      if (++tries % 65536 == 0 && ctx.cancellation() != nullptr &&
          ctx.cancellation()->cancelled()) {
        return ctx.cancellation()->status();
      }
      if (tries == std::numeric_limits<int32_t>::max()) {
        return absl::ResourceExhaustedError(
            StrCat("after ", tries, " draws only ", drawn, " of ", num_sampled_,
                   " different classes have been found: ask for fewer"));
      }
      const int64_t value = classes_.Draw(words);
      if (seen.insert(value).second) out[drawn++] = value;
    }
    return tries;
  }

  void Count(const Tensor& values, int64_t tries, Tensor* counts) const {
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      counts->mutable_data<float>()[i] = ExpectedCount(
          classes_.Probability(values.unchecked_data<int64_t>()[i]), num_sampled_, tries);
    }
  }

  int64_t num_true_, num_sampled_, range_;
  bool unique_;
  Classes classes_;
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
