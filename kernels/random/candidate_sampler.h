/// Base of the kernels that draw classes to train against. The classes are TensorFlow's for the
/// same seeds.
#ifndef TROUPE_KERNELS_RANDOM_CANDIDATE_SAMPLER_H_
#define TROUPE_KERNELS_RANDOM_CANDIDATE_SAMPLER_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/cancellation.h"
#include "kernels/common/philox.h"
#include "kernels/random/random_stream_kernel.h"

namespace troupe {

/// How often a class of probability p is expected among `count` classes that took `tries` draws.
inline float ExpectedCount(float p, int64_t count, int64_t tries) {
  if (tries == count) return p * static_cast<float>(count);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

/// `Classes`: a class made of the node's attributes, as kernels are, with
///
///     int64_t range() const;                         // Classes are in [0, range).
///     int64_t Draw(PhiloxWords& words) const;
///     float Probability(int64_t value) const;
template <typename Classes>
class CandidateSampler : public RandomStreamKernel {
 public:
  CandidateSampler(KernelConstruction& construction, absl::Status* status)
      : RandomStreamKernel(construction),
        num_true_(construction.Attr<int64_t>("num_true")),
        num_sampled_(construction.Attr<int64_t>("num_sampled")),
        unique_(construction.Attr<bool>("unique")),
        classes_(construction, status) {
    if (status->ok() && (num_true_ < 1 || num_sampled_ < 1 || classes_.range() < 1)) {
      *status = InvalidArgument("num_true, num_sampled and range_max must be positive, got ",
                                num_true_, ", ", num_sampled_, " and ", classes_.range());
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& true_classes = ctx.input(0);
    const int64_t range = classes_.range();
    if (true_classes.rank() != 2 || true_classes.dim(1) != num_true_) {
      return InvalidArgument("true_classes must be a matrix of num_true = ", num_true_,
                             " columns, got shape ", true_classes.shape().ToString());
    }
    if (unique_ && num_sampled_ > range) {
      return InvalidArgument("there are no ", num_sampled_,
                             " different classes among range_max = ", range);
    }
    for (const int64_t true_class : true_classes.unchecked_values<int64_t>()) {
      if (true_class < 0 || true_class >= range) {
        return InvalidArgument("true_classes must be in the range [0, ", range, "), got ",
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

 protected:
  Classes& classes() { return classes_; }
  const Classes& classes() const { return classes_; }

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

  int64_t num_true_, num_sampled_;
  bool unique_;
  Classes classes_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_CANDIDATE_SAMPLER_H_
