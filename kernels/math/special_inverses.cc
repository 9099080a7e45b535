// The special functions that come from Boost.
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/expint.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/math/special_functions.h"

namespace troupe {
namespace {

namespace policies = boost::math::policies;

/// Infinities and NaN are results, not errors.
constexpr policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>
    kQuiet;

}  // namespace

double ExponentialIntegral(double x) {
  if (!(x >= 0 && x <= std::numeric_limits<double>::max())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return boost::math::expint(x, kQuiet);
}

double InverseErf(double x) {
  if (!(std::abs(x) <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return boost::math::erf_inv(x, kQuiet);
}

double NormalQuantile(double p) {
  if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p, kQuiet);
}

}  // namespace troupe
