// Functions of one floating-point number.
#include "kernels/cuda/floating.cuh"

namespace troupe::cuda {
namespace {

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

template <UnaryOp kOp>
struct Function {
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

}  // namespace

cudaError_t LaunchUnaryFloating(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                                cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case UnaryOp::NAME:     \
    return MapFloating<Function<UnaryOp::NAME>>(type, x, y, n, stream)
    TROUPE_CASE(kAbs);
    TROUPE_CASE(kCeil);
    TROUPE_CASE(kCos);
    TROUPE_CASE(kElu);
    TROUPE_CASE(kErf);
    TROUPE_CASE(kExp);
    TROUPE_CASE(kExpm1);
    TROUPE_CASE(kFloor);
    TROUPE_CASE(kInv);
    TROUPE_CASE(kLog);
    TROUPE_CASE(kLog1p);
    TROUPE_CASE(kNeg);
    TROUPE_CASE(kRelu);
    TROUPE_CASE(kRelu6);
    TROUPE_CASE(kRint);
    TROUPE_CASE(kRsqrt);
    TROUPE_CASE(kSelu);
    TROUPE_CASE(kSigmoid);
    TROUPE_CASE(kSign);
    TROUPE_CASE(kSin);
    TROUPE_CASE(kSoftplus);
    TROUPE_CASE(kSoftsign);
    TROUPE_CASE(kSqrt);
    TROUPE_CASE(kSquare);
    TROUPE_CASE(kTan);
    TROUPE_CASE(kTanh);
#undef TROUPE_CASE
    default:
      return LaunchInverseFloating(op, type, x, y, n, stream);
  }
}

}  // namespace troupe::cuda
