// Functions of CUDA's mathematical library that the host's lacks.
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "tests/cuda_on_host/cuda_on_host.h"

namespace {

namespace policies = boost::math::policies;

/// Infinities are results, not errors.
constexpr policies::policy<policies::overflow_error<policies::ignore_error>> kQuiet;

}  // namespace

double erfinv(double x) { return std::abs(x) <= 1 ? boost::math::erf_inv(x, kQuiet) : NAN; }
float erfinv(float x) { return static_cast<float>(erfinv(double{x})); }

double normcdfinv(double x) {
  return x >= 0 && x <= 1 ? -std::numbers::sqrt2 * boost::math::erfc_inv(2 * x, kQuiet) : NAN;
}
float normcdfinv(float x) { return static_cast<float>(normcdfinv(double{x})); }
