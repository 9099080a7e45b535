/// Arithmetic of half as Eigen does it: every result is rounded.
#ifndef TROUPE_KERNELS_RANDOM_ROUNDED_HALF_H_
#define TROUPE_KERNELS_RANDOM_ROUNDED_HALF_H_

#include <cmath>
#include <compare>

#include "devices/half.h"

namespace troupe {

/// A value.
class RoundedHalf {
 public:
  RoundedHalf() = default;
  RoundedHalf(half value) : value_(value) {}  // NOLINT: it is the same number
  explicit RoundedHalf(double value) : value_(half(value)) {}
  explicit operator half() const { return half(value_); }

  friend RoundedHalf operator-(RoundedHalf a) { return Round(-a.value_); }
  friend RoundedHalf operator+(RoundedHalf a, RoundedHalf b) { return Round(a.value_ + b.value_); }
  friend RoundedHalf operator-(RoundedHalf a, RoundedHalf b) { return Round(a.value_ - b.value_); }
  friend RoundedHalf operator*(RoundedHalf a, RoundedHalf b) { return Round(a.value_ * b.value_); }
  friend RoundedHalf operator/(RoundedHalf a, RoundedHalf b) { return Round(a.value_ / b.value_); }
  friend std::partial_ordering operator<=>(RoundedHalf a, RoundedHalf b) {
    return a.value_ <=> b.value_;
  }
  friend RoundedHalf exp(RoundedHalf a) { return Round(std::exp(a.value_)); }
  friend RoundedHalf log(RoundedHalf a) { return Round(std::log(a.value_)); }
  friend RoundedHalf sqrt(RoundedHalf a) { return Round(std::sqrt(a.value_)); }
  friend bool isfinite(RoundedHalf a) { return std::isfinite(a.value_); }
  friend bool isinf(RoundedHalf a) { return std::isinf(a.value_); }

 private:
  static RoundedHalf Round(float value) { return half(value); }

  float value_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_ROUNDED_HALF_H_
