// Unary functions of float, double, half, bfloat16, int32, int64.
#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/simd/half_blocks.h"
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

struct ErfOp {
  template <typename T>
  static Packet<T> Run(const Packet<T>& x) {
    return KeepNan(x, Eigen::internal::generic_fast_erf_float(x));
  }
};

// x P(x^2) / Q(x^2) on [-c, c], outside of which the quotient is 1: the coefficients are those of
// the rational minimax approximation in Eigen's current ptanh_float, which TensorFlow gives the
// bits of.
struct FloatTanhOp {
  static float Run(float value) {
    constexpr float kClamp = 7.90738964080810547f;
    float x = value > kClamp ? kClamp : value;
    x = x < -kClamp ? -kClamp : x;
    const float x2 = x * x, x3 = x2 * x;
    float p = 1.394553628e-8f;
    p = p * x2 + 2.102733560e-5f;
    p = p * x2 + 3.520756727e-3f;
    p = p * x2 + 1.340216100e-1f;
    float q = 8.015776984e-7f;
    q = q * x2 + 3.326951409e-4f;
    q = q * x2 + 2.597254514e-2f;
    q = q * x2 + 4.673548340e-1f;
    q = q * x2 + 1.0f;
    return (x3 * p + x) / q;
  }
};

template <UnaryFn F, UnaryOp kOp, bool kToBool = false>
void SetFloat(Table* table) {
  table->unary[kF32][kOp] = F;
  table->unary[kF16][kOp] = HalfUnary<F, F16, kToBool>;
  table->unary[kBF16][kOp] = HalfUnary<F, BF16, kToBool>;
}

// Plain arithmetic, vectorised by the compiler, for float types.
template <typename Op, UnaryOp kOp, bool kToBool = false>
void SetLoop(Table* table) {
  SetFloat<UnaryLoop<Op, float>, kOp, kToBool>(table);
  table->unary[kF64][kOp] = UnaryLoop<Op, double>;
}
// Eigen's packets for float and double.
template <typename Op, UnaryOp kOp>
void SetPacket(Table* table) {
  SetFloat<PacketLoop<Op, float>, kOp>(table);
  table->unary[kF64][kOp] = PacketLoop<Op, double>;
}
// Eigen's packets for float, the C library for double.
template <typename Op, typename ScalarOp, UnaryOp kOp>
void SetMixed(Table* table) {
  SetFloat<PacketLoop<Op, float>, kOp>(table);
  table->unary[kF64][kOp] = UnaryLoop<ScalarOp, double>;
}

struct ScalarEluOp {
  static double Run(double x) { return x < 0 ? std::expm1(x) : x; }
};
struct ScalarSeluOp {
  static double Run(double x) { return x < 0 ? kSeluScaleAlpha * std::expm1(x) : kSeluScale * x; }
};
struct ScalarSoftplusOp {
  static double Run(double x) {
    constexpr double kThreshold = 34.04365;
    return x > kThreshold ? x : x < -kThreshold ? std::exp(x) : std::log1p(std::exp(x));
  }
};

}  // namespace

void FillUnary(Table* table) {
  FillIntegerUnary<int32_t>(table->unary[kI32]);
  FillIntegerUnary<int64_t>(table->unary[kI64]);
  table->unary[kI32][kRint] = UnaryLoop<RintOp, int32_t>;
  table->unary[kI64][kRint] = UnaryLoop<RintOp, int64_t>;
  SetLoop<NegOp, kNeg>(table);
  SetLoop<AbsOp, kAbs>(table);
  SetLoop<SignOp, kSign>(table);
  SetLoop<SquareOp, kSquare>(table);
  SetLoop<SqrtOp, kSqrt>(table);
  SetLoop<RsqrtOp, kRsqrt>(table);
  SetLoop<InvOp, kInv>(table);
  SetLoop<FloorOp, kFloor>(table);
  SetLoop<CeilOp, kCeil>(table);
  SetLoop<RintOp, kRint>(table);
  SetLoop<IsNanOp, kIsNan, true>(table);
  SetLoop<IsInfOp, kIsInf, true>(table);
  SetLoop<IsFiniteOp, kIsFinite, true>(table);
  SetLoop<ReluOp, kRelu>(table);
  SetLoop<Relu6Op, kRelu6>(table);
  SetLoop<SoftsignOp, kSoftsign>(table);
  SetPacket<ExpOp, kExp>(table);
  SetPacket<LogOp, kLog>(table);
  SetPacket<SigmoidOp, kSigmoid>(table);
  SetMixed<Expm1Op, ScalarExpm1Op, kExpm1>(table);
  SetMixed<Log1pOp, ScalarLog1pOp, kLog1p>(table);
  SetMixed<SinOp, ScalarSinOp, kSin>(table);
  SetMixed<CosOp, ScalarCosOp, kCos>(table);
  SetFloat<UnaryLoop<FloatTanhOp, float>, kTanh>(table);
  table->unary[kF64][kTanh] = UnaryLoop<ScalarTanhOp, double>;
  SetMixed<ErfOp, ScalarErfOp, kErf>(table);
  SetMixed<EluOp, ScalarEluOp, kElu>(table);
  SetMixed<SeluOp, ScalarSeluOp, kSelu>(table);
  SetMixed<SoftplusOp, ScalarSoftplusOp, kSoftplus>(table);
  SetLoop<ScalarTanOp, kTan>(table);
}

}  // namespace troupe::simd::TROUPE_ISA
