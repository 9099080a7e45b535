/// Special functions of mathematics that no library at hand has, or has for all arguments. All take
/// any number, NaN and infinities among them, and do a bounded amount of work.
#ifndef TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_
#define TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_

namespace troupe {

/// Dawson's integral, by series about 0 and infinity, and between them by Rybicki's sum of bells
/// (Computers in Physics 3(2), 1989).
double Dawson(double x);

/// Integrals of cos(pi t^2 / 2) and of sin(pi t^2 / 2) from 0 to x: the power series, and beyond
/// 1.5 the continued fraction of the complementary error function of a complex number (Press et
/// al., "Numerical Recipes", section 6.8).
struct FresnelIntegrals {
  double cosine, sine;
};
FresnelIntegrals Fresnel(double x);

/// The dilogarithm Li2(1 - x); NaN below 0 and at infinity, as in TensorFlow. The series of
/// Bernoulli numbers in log(x), on [1/2, 2].
double Spence(double x);

/// Ei(x); NaN below 0 and at infinity, as in TensorFlow.
double ExponentialIntegral(double x);

/// NaN outside of [-1, 1].
double InverseErf(double x);
/// NaN outside of [0, 1].
double NormalQuantile(double p);

/// Hurwitz' zeta function: infinity at x = 1, NaN below; NaN for a negative q unless x is a whole
/// number.
double HurwitzZeta(double x, double q);
/// The derivative of order n of the digamma function.
double Polygamma(double n, double x);

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_
