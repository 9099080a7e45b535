/// Normal numbers between bounds (Robert, "Simulation of truncated normal variables", Statistics
/// and Computing 5 (1995)), as TensorFlow draws them.
#ifndef TROUPE_KERNELS_RANDOM_BOUNDED_NORMAL_H_
#define TROUPE_KERNELS_RANDOM_BOUNDED_NORMAL_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "devices/status_macros.h"
#include "kernels/common/philox.h"
#include "kernels/random/draws.h"
#include "kernels/random/rounded_half.h"

namespace troupe {

/// `T`: float, double or half; `C`: what is computed with.
template <typename T, typename C>
class BoundedNormal {
 public:
  /// InvalidArgument unless the deviation is positive, the lower bound below the upper one, and one
  /// of them finite.
  static absl::Status Check(T mean, T deviation, T low, T high) {
    using std::isfinite;
    const C from(low), to(high);
    if (C(deviation) > C(0.0) && from < to && (isfinite(from) || isfinite(to))) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        "the standard deviation must be positive and the least number less than the greatest, one "
        "of them finite; got mean ",
        static_cast<float>(mean), ", deviation ", static_cast<float>(deviation), ", least ",
        static_cast<float>(low), ", greatest ", static_cast<float>(high));
  }

  /// Of parameters that have been checked.
  BoundedNormal(T mean, T deviation, T low, T high) : mean_(mean), deviation_(deviation) {
    using std::exp, std::isinf, std::sqrt;
    C from(low), to(high);
    // One bound becomes the lower one, or both positive.
    if ((isinf(from) && from < C(0.0)) || to < mean_) {
      std::swap(from, to);
      deviation_ = -deviation_;
    }
    low_ = (from - mean_) / deviation_;
    high_ = (to - mean_) / deviation_;
    const C root = sqrt(low_ * low_ + C(4.0));
    const C cutoff = C(2.0) * exp(C(0.5) + (low_ * (low_ - root)) / C(4.0)) / (low_ + root);
    range_ = high_ - low_;
    alpha_ = (low_ + root) / C(2.0);
    const C inside(1.3);  // So many deviations within the bounds make half of all normals fit.
    if ((low_ < -inside && high_ >= C(0.0)) || (high_ > inside && low_ <= C(0.0))) {
      method_ = Method::kNormal;
    } else {
      method_ = range_ < cutoff ? Method::kUniform : Method::kExponential;
    }
  }

  /// Calls put(number) `count` times. `position` moves by whole blocks. Internal: a thousand
  /// numbers in a row did not fit.
  template <typename Put>
  absl::Status Draw(Philox& position, int64_t count, const Put& put) const {
    int rejected = 0;
    while (count > 0) {
      Candidates candidates;
      const int n = Propose(position, &candidates);
      for (int i = 0; i < n && count > 0; ++i) {
        if (candidates[i].fits) {
          put(static_cast<T>(candidates[i].number * deviation_ + mean_));
          --count;
          rejected = 0;
        } else if (++rejected >= max_rejected()) {
          return absl::InternalError("no normal number between the bounds was found in 1000 tries");
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  enum class Method { kNormal, kUniform, kExponential };
  static constexpr int kGroup = std::tuple_size_v<DrawnGroup<T>>;
  struct Candidate {
    C number;
    bool fits;
  };
  using Candidates = std::array<Candidate, kGroup>;

  int max_rejected() const { return method_ == Method::kNormal ? 1001 : 1000; }

  int Propose(Philox& position, Candidates* candidates) const {
    using std::exp, std::log;
    if (method_ == Method::kNormal) {
      const DrawnGroup<T> normals = NormalGroup<T>(position);
      for (int i = 0; i < kGroup; ++i) {
        const C number(normals[i]);
        (*candidates)[i] = {number, number >= low_ && number <= high_};
      }
      return kGroup;
    }
    const DrawnGroup<T> first = UniformGroup<T>(position);
    if (method_ == Method::kUniform) {
      const DrawnGroup<T> second = UniformGroup<T>(position);
      const C nearest_squared = low_ < C(0.0) ? C(0.0) : low_ * low_;
      for (int i = 0; i < kGroup; ++i) {
        const C number = C(first[i]) * range_ + low_;
        const C g = (nearest_squared - number * number) / C(2.0);
        (*candidates)[i] = {number, C(second[i]) <= exp(g)};
      }
      return kGroup;
    }
    for (int i = 0; i < kGroup / 2; ++i) {
      const C number = -log(C(first[2 * i])) / alpha_ + low_;
      const C x = low_ < alpha_ ? alpha_ - number : low_ - alpha_;
      const C g = exp(-x * x / C(2.0));
      (*candidates)[i] = {number, C(first[2 * i + 1]) <= g && number < high_};
    }
    return kGroup / 2;
  }

  C mean_, deviation_, low_, high_, range_, alpha_;
  Method method_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_BOUNDED_NORMAL_H_
