#include "kernels/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <utility>

namespace troupe {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// exp(-2 pi i k / n), for 0 <= k < n.
void RootOfUnity(int64_t k, int64_t n, double* re, double* im) {
  // To a quarter of a turn, of which the angle is exact to the last bit.
  const int64_t quarter = 4 * k / n, rest = 4 * k - quarter * n;
  const double angle = kPi / 2 * (static_cast<double>(rest) / static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  *re = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
  *im = quarter == 0 ? -s : quarter == 1 ? -c : quarter == 2 ? s : c;
}

/// Appends exp(-2 pi i k / n).
template <typename R>
void AppendRoot(int64_t k, int64_t n, std::vector<R>* re, std::vector<R>* im) {
  double c, s;
  RootOfUnity(k, n, &c, &s);
  re->push_back(static_cast<R>(c));
  im->push_back(static_cast<R>(s));
}

/// The radices of passes for n; empty if n has a prime factor that is too large. The cheap ones
/// come first: strides of the first passes may be shorter than a vector.
std::vector<int> RadicesOf(int64_t n) {
  std::vector<int> radices;
  for (const int radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int radix = 7; radix <= kLargestRadix; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  if (n > 1) return {};
  return radices;
}

/// The least number of at least n without prime factors above 5.
int64_t SmoothSize(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5) {
    for (int64_t size = fives; size < best; size *= 3) {
      int64_t twos = size;
      while (twos < n) twos *= 2;
      best = std::min(best, twos);
    }
  }
  return best;
}

/// Recently used plans, the latest first.
template <typename R>
class PlanCache {
 public:
  std::shared_ptr<const FftPlan<R>> Get(int64_t n) {
    {
      std::lock_guard lock(mutex_);
      for (auto it = plans_.begin(); it != plans_.end(); ++it) {
        if ((*it)->size() != n) continue;
        plans_.splice(plans_.begin(), plans_, it);
        return plans_.front();
      }
    }
    auto plan = std::make_shared<const FftPlan<R>>(n);  // Not under the lock: it may take long.
    if (plan->TableSize() > kMostElements) return plan;
    std::lock_guard lock(mutex_);
    plans_.push_front(plan);
    elements_ += plan->TableSize();
    while (plans_.size() > kMostPlans || elements_ > kMostElements) {
      elements_ -= plans_.back()->TableSize();
      plans_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kMostPlans = 64;
  static constexpr int64_t kMostElements = int64_t{1} << 22;  // 32 MiB of doubles

  std::mutex mutex_;
  std::list<std::shared_ptr<const FftPlan<R>>> plans_;
  int64_t elements_ = 0;
};

}  // namespace

template <typename R>
std::shared_ptr<const FftPlan<R>> FftPlan<R>::For(int64_t n) {
  static PlanCache<R>* const cache = new PlanCache<R>;  // Outlives all threads.
  return cache->Get(n);
}

template <typename R>
FftPlan<R>::FftPlan(int64_t n) : n_(n) {
  for (int64_t k = 0; k <= n; ++k) AppendRoot(k, 2 * n, &half_root_re_, &half_root_im_);
  if (n == 1) return;
  std::vector<int> radices = RadicesOf(n);
  if (radices.empty()) {
    MakeChirp();
  } else {
    AddStages(std::move(radices));
  }
}

template <typename R>
int64_t FftPlan<R>::TableSize() const {
  return 6 * n_ + (chirp_plan_ == nullptr ? 0 : 2 * chirp_plan_->n_ + chirp_plan_->TableSize());
}

template <typename R>
void FftPlan<R>::AddStages(std::vector<int> radices) {
  int64_t size = n_;
  for (const int radix : radices) {
    Stage stage;
    stage.radix = radix;
    stage.rest = size / radix;
    for (int64_t p = 0; p < stage.rest; ++p) {
      for (int64_t j = 1; j < radix; ++j) {
        AppendRoot(p * j, size, &stage.twiddle_re, &stage.twiddle_im);
      }
    }
    for (int64_t j = 0; j < radix; ++j) AppendRoot(j, radix, &stage.root_re, &stage.root_im);
    size = stage.rest;
    stages_.push_back(std::move(stage));
  }
}

template <typename R>
void FftPlan<R>::MakeChirp() {
  const int64_t length = SmoothSize(2 * n_ - 1);
  chirp_plan_ = std::make_unique<const FftPlan>(length);
  chirp_re_.resize(n_);
  chirp_im_.resize(n_);
  filter_re_.resize(length);
  filter_im_.resize(length);
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n_; ++k) {
    double re, im;
    RootOfUnity(square, 2 * n_, &re, &im);
    square = (square + 2 * k + 1) % (2 * n_);
    chirp_re_[k] = static_cast<R>(re);
    chirp_im_[k] = static_cast<R>(im);
    const double scale = 1.0 / static_cast<double>(length);
    for (const int64_t at : {k, k == 0 ? 0 : length - k}) {
      filter_re_[at] = static_cast<R>(re * scale);
      filter_im_[at] = static_cast<R>(-im * scale);
    }
  }
  std::vector<R> spare_re(length), spare_im(length);
  chirp_plan_->Run(1, filter_re_.data(), filter_im_.data(), spare_re.data(), spare_im.data());
}

template <typename R>
void FftPlan<R>::Run(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const {
  chirp_plan_ == nullptr ? RunStages(lines, re, im, spare_re, spare_im)
                         : RunChirp(lines, re, im, spare_re, spare_im);
}

template <typename R>
void FftPlan<R>::RunStages(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const {
  int64_t stride = lines;
  R *const result_re = re, *const result_im = im;
  for (const Stage& stage : stages_) {
    const FftPass<R> pass = {
        stage.radix,          stage.rest,          stage.twiddle_re.data(), stage.twiddle_im.data(),
        stage.root_re.data(), stage.root_im.data()};
    Fft<R>().pass(pass, stride, re, im, spare_re, spare_im);
    std::swap(re, spare_re);
    std::swap(im, spare_im);
    stride *= stage.radix;
  }
  if (re == result_re) return;
  std::copy_n(re, n_ * lines, result_re);
  std::copy_n(im, n_ * lines, result_im);
}

template <typename R>
void FftPlan<R>::RunChirp(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const {
  const int64_t length = chirp_plan_->n_;
  const auto multiply = Fft<R>().multiply;
  multiply(chirp_re_.data(), chirp_im_.data(), n_, lines, re, im);
  std::fill_n(re + n_ * lines, (length - n_) * lines, R(0));
  std::fill_n(im + n_ * lines, (length - n_) * lines, R(0));
  chirp_plan_->Run(lines, re, im, spare_re, spare_im);
  multiply(filter_re_.data(), filter_im_.data(), length, lines, re, im);
  chirp_plan_->Run(lines, im, re, spare_im, spare_re);  // The inverse.
  multiply(chirp_re_.data(), chirp_im_.data(), n_, lines, re, im);
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace troupe
