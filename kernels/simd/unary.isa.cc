// Unary functions of float, double, half, bfloat16, int32, int64.
#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/simd/half_blocks.h"
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"
#include "kernels/simd/vector_functions.h"

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
template <UnaryFn Float, UnaryFn Double, UnaryOp kOp>
void Set(Table* table) {
  SetFloat<Float, kOp>(table);
  table->unary[kF64][kOp] = Double;
}

struct EluOp {
  template <typename T>
  static T Run(T x) {
    const T y = VectorExpm1Op::Run(x);
    return x < 0 ? y : x;
  }
};
struct SeluOp {
  template <typename T>
  static T Run(T x) {
    const T y = T(kSeluScaleAlpha) * VectorExpm1Op::Run(x);
    return x < 0 ? y : T(kSeluScale) * x;
  }
};
struct ScalarAsinOp {
  static double Run(double x) { return std::asin(x); }
};
struct ScalarAcosOp {
  static double Run(double x) { return std::acos(x); }
};

// The sign of a half or bfloat16 is its first bit.
template <bool kNegate>
void SignLoop(const void* in, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  uint16_t* y = static_cast<uint16_t*>(out);
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<uint16_t>(kNegate ? x[i] ^ 0x8000u : x[i] & 0x7fffu);
  }
}

}  // namespace

void FillUnary(Table* table) {
  FillIntegerUnary<int32_t>(table->unary[kI32]);
  FillIntegerUnary<int64_t>(table->unary[kI64]);
  table->unary[kI32][kRint] = UnaryLoop<RintOp, int32_t>;
  table->unary[kI64][kRint] = UnaryLoop<RintOp, int64_t>;
  SetLoop<NegOp, kNeg>(table);
  SetLoop<AbsOp, kAbs>(table);
  for (const Type type : {kF16, kBF16}) {
    table->unary[type][kNeg] = SignLoop<true>;
    table->unary[type][kAbs] = SignLoop<false>;
  }
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
  SetLoop<VectorExpm1Op, kExpm1>(table);
  Set<PacketLoop<Log1pOp, float>, UnaryLoop<VectorLog1pOp, double>, kLog1p>(table);
  Set<BoundedLoop<VectorSinOp, float>, BoundedLoop<WideSinOp, double>, kSin>(table);
  Set<BoundedLoop<VectorCosOp, float>, BoundedLoop<WideCosOp, double>, kCos>(table);
  Set<BoundedLoop<VectorTanOp, float>, UnaryLoop<ScalarTanOp, double>, kTan>(table);
  SetLoop<VectorSinhOp, kSinh>(table);
  SetLoop<VectorCoshOp, kCosh>(table);
  Set<UnaryLoop<FloatTanhOp, float>, UnaryLoop<VectorTanhOp, double>, kTanh>(table);
  Set<PacketLoop<ErfOp, float>, BoundedLoop<VectorErfOp, double>, kErf>(table);
  SetLoop<VectorErfcOp, kErfc>(table);
  Set<UnaryLoop<VectorAsinOp, float>, UnaryLoop<ScalarAsinOp, double>, kAsin>(table);
  Set<UnaryLoop<VectorAcosOp, float>, UnaryLoop<ScalarAcosOp, double>, kAcos>(table);
  SetLoop<VectorAtanOp, kAtan>(table);
  SetLoop<VectorAsinhOp, kAsinh>(table);
  SetLoop<VectorAcoshOp, kAcosh>(table);
  SetLoop<VectorAtanhOp, kAtanh>(table);
  SetLoop<EluOp, kElu>(table);
  SetLoop<SeluOp, kSelu>(table);
  SetPacket<SoftplusOp, kSoftplus>(table);
}

}  // namespace troupe::simd::TROUPE_ISA
