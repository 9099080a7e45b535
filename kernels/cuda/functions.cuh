/// Element-wise functions of floating-point numbers, in the wide type of theirs.
#ifndef TROUPE_KERNELS_CUDA_FUNCTIONS_CUH_
#define TROUPE_KERNELS_CUDA_FUNCTIONS_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/floating.cuh"

namespace troupe::cuda {

inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

template <UnaryOp kOp>
struct UnaryFunction {
  template <typename W>
  __device__ W operator()(W x) const {
    if constexpr (kOp == UnaryOp::kAbs) return fabs(x);
    if constexpr (kOp == UnaryOp::kCeil) return ceil(x);
    if constexpr (kOp == UnaryOp::kCos) return cos(x);
    if constexpr (kOp == UnaryOp::kElu) return x < 0 ? expm1(x) : x;
    if constexpr (kOp == UnaryOp::kErf) return erf(x);
    if constexpr (kOp == UnaryOp::kExp) return exp(x);
    if constexpr (kOp == UnaryOp::kExpm1) return expm1(x);
    if constexpr (kOp == UnaryOp::kFloor) return floor(x);
    if constexpr (kOp == UnaryOp::kInv) return 1 / x;
    if constexpr (kOp == UnaryOp::kLog) return log(x);
    if constexpr (kOp == UnaryOp::kLog1p) return log1p(x);
    if constexpr (kOp == UnaryOp::kNeg) return -x;
    if constexpr (kOp == UnaryOp::kRelu) return PositivePart(x);
    if constexpr (kOp == UnaryOp::kRelu6) return x > 6 ? W(6) : PositivePart(x);
    if constexpr (kOp == UnaryOp::kRint) return rint(x);
    if constexpr (kOp == UnaryOp::kRsqrt) return 1 / sqrt(x);
    if constexpr (kOp == UnaryOp::kSelu) {
      return x < 0 ? static_cast<W>(kSeluScaleAlpha) * expm1(x) : static_cast<W>(kSeluScale) * x;
    }
    if constexpr (kOp == UnaryOp::kSigmoid) return 1 / (1 + exp(-x));
    if constexpr (kOp == UnaryOp::kSign) return x > 0 ? W(1) : x < 0 ? W(-1) : x;
    if constexpr (kOp == UnaryOp::kSin) return sin(x);
    if constexpr (kOp == UnaryOp::kSoftplus) {
      return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    if constexpr (kOp == UnaryOp::kSoftsign) return x / (1 + fabs(x));
    if constexpr (kOp == UnaryOp::kSqrt) return sqrt(x);
    if constexpr (kOp == UnaryOp::kSquare) return x * x;
    if constexpr (kOp == UnaryOp::kTan) return tan(x);
    if constexpr (kOp == UnaryOp::kTanh) return tanh(x);
  }
};

template <BinaryOp kOp>
struct BinaryFunction {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    if constexpr (kOp == BinaryOp::kAdd) return a + b;
    if constexpr (kOp == BinaryOp::kSub) return a - b;
    if constexpr (kOp == BinaryOp::kMul) return a * b;
    if constexpr (kOp == BinaryOp::kDiv) return a / b;
    if constexpr (kOp == BinaryOp::kDivNoNan) return b == 0 ? W(0) : a / b;
    if constexpr (kOp == BinaryOp::kFloorDiv) return floor(a / b);
    if constexpr (kOp == BinaryOp::kTruncateDiv) return trunc(a / b);
    if constexpr (kOp == BinaryOp::kFloorMod) {
      const W rest = fmod(a, b);
      return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
    }
    // NaN in either operand is the result.
    if constexpr (kOp == BinaryOp::kMaximum) return a < b || b != b ? b : a;
    if constexpr (kOp == BinaryOp::kMinimum) return b < a || b != b ? b : a;
    if constexpr (kOp == BinaryOp::kPow) return pow(a, b);
    if constexpr (kOp == BinaryOp::kSquaredDifference) return (a - b) * (a - b);
  }
};

template <GradientOp kOp>
struct GradientFunction {
  /// `y` is the output up to kTanh, and of kElu and kSelu; else the input.
  template <typename W>
  __device__ W operator()(W y, W dy) const {
    if constexpr (kOp == GradientOp::kInv) return -dy * y * y;
    if constexpr (kOp == GradientOp::kRsqrt) return dy == 0 ? W(0) : W(-0.5) * dy * (y * y * y);
    if constexpr (kOp == GradientOp::kSigmoid) return dy * y * (1 - y);
    if constexpr (kOp == GradientOp::kSqrt) return dy == 0 ? W(0) : W(0.5) * dy / y;
    if constexpr (kOp == GradientOp::kTanh) return dy * (1 - y * y);
    if constexpr (kOp == GradientOp::kElu) return y < 0 ? (y + 1) * dy : dy;
    // Products: NaN stays NaN.
    if constexpr (kOp == GradientOp::kRelu) return dy * static_cast<W>(y > 0);
    if constexpr (kOp == GradientOp::kRelu6) return dy * static_cast<W>(y > 0 && y < 6);
    if constexpr (kOp == GradientOp::kSelu) {
      return y < 0 ? dy * (y + static_cast<W>(kSeluScaleAlpha)) : dy * static_cast<W>(kSeluScale);
    }
    if constexpr (kOp == GradientOp::kSoftplus) return dy / (exp(-y) + 1);
    if constexpr (kOp == GradientOp::kSoftsign) {
      const W d = 1 + fabs(y);
      return dy / (d * d);
    }
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FUNCTIONS_CUH_
