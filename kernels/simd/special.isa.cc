#include "kernels/simd/special.h"

#include "kernels/simd/packet_ops.h"
#include "kernels/simd/vector_functions.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

constexpr int64_t kBlock = 256;

// The quantile of the normal distribution at 1/2 + q, where `tail` is 1/2 - |q|: Wichura,
// "Algorithm AS 241: The percentage points of the normal distribution", 1988, PPND7, with rational
// functions in double. The tails need `root`, the square root of -log(tail).
inline double Quantile(double q, float tail, float root) {
  const double near = 0.180625 - q * q;
  const double middle =
      q * Polynomial<double>(near, 3.3871327179, 50.434271938, 159.29113202, 59.109374720) /
      Polynomial<double>(near, 1, 17.895169469, 78.757757664, 67.187563600);
  const bool far = root > 5;
  const double r = far ? root - 5.0 : root - 1.6;
  const double over =
      far ? Polynomial<double>(r, 6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997)
          : Polynomial<double>(r, 1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103);
  const double under = far ? Polynomial<double>(r, 1, 0.24197894225, 0.012258202635)
                           : Polynomial<double>(r, 1, 0.73700164250, 0.12021132975);
  const double beyond = tail == 0 ? std::numeric_limits<double>::infinity() : over / under;
  return std::abs(q) <= 0.425 ? middle : WithSignOf(beyond, q);
}

// Calls `parts(x, &q, &tail)` for each number, which is NaN unless the tail is in [0, 1/2].
template <typename Parts>
inline void Quantiles(const float* x, float factor, float* out, int64_t n, Parts parts) {
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = n - begin < kBlock ? n - begin : kBlock;
    float q[kBlock], tail[kBlock], root[kBlock];
    for (int64_t i = 0; i < m; ++i) parts(x[begin + i], &q[i], &tail[i]);
    PacketLoop<LogOp, float>(tail, root, m);
    for (int64_t i = 0; i < m; ++i) {
      const double y = Quantile(q[i], tail[i], std::sqrt(-root[i])) * factor;
      out[begin + i] = tail[i] >= 0 ? static_cast<float>(y) : tail[i] * NAN;
    }
  }
}
void InverseErf(const float* x, float* out, int64_t n) {
  Quantiles(x, 0.70710678118654752f, out, n, [](float y, float* q, float* tail) {
    *q = 0.5f * y;
    *tail = 0.5f * (1 - std::abs(y));
  });
}
void NormalQuantile(const float* p, float* out, int64_t n) {
  Quantiles(p, 1, out, n, [](float y, float* q, float* tail) {
    *q = y - 0.5f;
    *tail = y < 0.5f ? y : 1 - y;
  });
}

// base^-x for base >= 1e-3, or 0 if that is less than 1e-300.
inline double NegativePower(double base, double x) {
  const double log = x * VectorLog1pOp::Run(base - 1);
  const ExpParts<double> parts(log > 690 ? -690 : -log);
  const double power = parts.Power(0);
  return log > 690 ? 0 : power + power * parts.p;
}

// Ten terms and the Euler-Maclaurin formula for the rest.
void Zeta(const double* x, const double* q, double* out, int64_t n) {
  constexpr int kTerms = 10;
  // Bernoulli's numbers B(2k) / (2k)!
  constexpr double kFactors[] = {1.0 / 12,          -1.0 / 720,
                                 1.0 / 30240,       -1.0 / 1209600,
                                 1.0 / 47900160,    -691.0 / 1307674368000,
                                 1.0 / 74724249600, -3617.0 / 10670622842880000};
  for (int64_t begin = 0; begin < n; begin += kBlock, x += kBlock, q += kBlock) {
    const int64_t m = n - begin < kBlock ? n - begin : kBlock;
    double sum[kBlock], term[kBlock];
    for (int64_t i = 0; i < m; ++i) sum[i] = 0;
    for (int k = 0; k < kTerms; ++k) {
      for (int64_t i = 0; i < m; ++i) sum[i] += NegativePower(q[i] + k, x[i]);
    }
    for (int64_t i = 0; i < m; ++i) {
      const double w = q[i] + kTerms, power = NegativePower(w, x[i]);
      sum[i] += power * (w / (x[i] - 1) + 0.5);
      term[i] = power * x[i] / w;
    }
    for (int k = 0; k < 8; ++k) {
      for (int64_t i = 0; i < m; ++i) {
        const double w = q[i] + kTerms, next = x[i] + 2 * k + 1;
        sum[i] += kFactors[k] * term[i];
        term[i] *= next * (next + 1) / (w * w);
      }
    }
    for (int64_t i = 0; i < m; ++i) out[begin + i] = sum[i];
  }
}

}  // namespace

SpecialFunctions SpecialTable() { return {InverseErf, NormalQuantile, Zeta}; }

}  // namespace troupe::TROUPE_ISA
