/// The regularized incomplete beta function.
#ifndef TROUPE_KERNELS_MATH_INCOMPLETE_BETA_H_
#define TROUPE_KERNELS_MATH_INCOMPLETE_BETA_H_

namespace troupe {

/// I_x(a, b), between 0 and 1; NaN outside of a > 0, b > 0, 0 <= x <= 1. Time is bounded for any
/// numbers. Errors are below 1e-11 wherever they were compared with 30 digits.
double IncompleteBeta(double a, double b, double x);

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_INCOMPLETE_BETA_H_
