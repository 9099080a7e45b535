// Element-wise functions of integers. Arithmetic wraps around: it is done unsigned, and once for
// both types of a size.
#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

/// Unsigned, at least 32 bits wide.
template <typename T>
using Wrap = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

template <UnaryOp kOp>
struct Unary {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (kOp == UnaryOp::kAbs) return x < 0 ? Negative(x) : x;
    if constexpr (kOp == UnaryOp::kNeg) return Negative(x);
    if constexpr (kOp == UnaryOp::kInv) return x == T(1) || x == T(-1) ? x : T(0);
    if constexpr (kOp == UnaryOp::kRelu) return x < 0 ? T(0) : x;
    if constexpr (kOp == UnaryOp::kSign) return static_cast<T>((x > 0) - (x < 0));
    if constexpr (kOp == UnaryOp::kSquare) {
      return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(x));
    }
  }
  template <typename T>
  static __device__ T Negative(T x) {
    return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(x));
  }
};

template <BinaryOp kOp>
struct Binary {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    const auto x = static_cast<Wrap<T>>(a), y = static_cast<Wrap<T>>(b);
    if constexpr (kOp == BinaryOp::kAdd) return static_cast<T>(x + y);
    if constexpr (kOp == BinaryOp::kSub) return static_cast<T>(x - y);
    if constexpr (kOp == BinaryOp::kMul) return static_cast<T>(x * y);
    if constexpr (kOp == BinaryOp::kMaximum) return a > b ? a : b;
    if constexpr (kOp == BinaryOp::kMinimum) return a < b ? a : b;
    if constexpr (kOp == BinaryOp::kSquaredDifference) return static_cast<T>((x - y) * (x - y));
  }
};

template <typename T>
__device__ bool IsMinusOne(T x) {
  return std::is_signed_v<T> && x == static_cast<T>(-1);
}

/// Quotients that no type holds wrap around: -x / -1 is -x.
template <BinaryOp kOp>
struct Division {
  LateCheck check;

  template <typename T>
  static __device__ bool IsNegative(T x) {
    if constexpr (std::is_signed_v<T>) return x < 0;
    return false;
  }
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if (b == 0) {
      ReportLate(check, 0);
      return 0;
    }
    const bool negates = IsMinusOne(b);
    if constexpr (kOp == BinaryOp::kFloorMod) {
      const T rest = negates ? T(0) : static_cast<T>(a % b);
      return rest != 0 && IsNegative(b) != IsNegative(rest) ? static_cast<T>(rest + b) : rest;
    }
    const T quotient = negates ? Unary<UnaryOp::kNeg>::Negative(a) : static_cast<T>(a / b);
    if constexpr (kOp == BinaryOp::kFloorDiv) {
      const bool inexact = !negates && a % b != 0;
      return inexact && IsNegative(a) != IsNegative(b) ? static_cast<T>(quotient - 1) : quotient;
    }
    return quotient;
  }
};

struct Power {
  LateCheck check;

  template <typename T>
  __device__ T operator()(T a, T b) const {
    if (b < 0) {
      ReportLate(check, 0);
      return 0;
    }
    Wrap<T> result = 1, square = static_cast<Wrap<T>>(a);
    for (auto rest = static_cast<std::make_unsigned_t<T>>(b); rest != 0; rest >>= 1) {
      if (rest & 1) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};

template <typename Fn>
cudaError_t VisitAny(Number type, Fn fn) {
  const cudaError_t error = VisitSigned(type, fn);
  return error == cudaErrorNotSupported ? VisitUnsigned(type, fn) : error;
}

template <typename T, typename Fn>
cudaError_t Run(Fn fn, const BinaryCall& call, cudaStream_t stream) {
  return MapStrided(fn, call.broadcast, call.n, stream, static_cast<T*>(call.out),
                    static_cast<const T*>(call.a), static_cast<const T*>(call.b));
}

}  // namespace

cudaError_t LaunchUnaryInteger(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                               cudaStream_t stream) {
  const auto run = [=](auto fn) {
    return [=](auto tag) {
      using T = typename decltype(tag)::Type;
      return MapFlat(fn, FlatWalk(), n, stream, static_cast<T*>(y), static_cast<const T*>(x));
    };
  };
  switch (op) {
    case UnaryOp::kAbs:
      return VisitSigned(type, run(Unary<UnaryOp::kAbs>()));
    case UnaryOp::kRelu:
      return VisitSigned(type, run(Unary<UnaryOp::kRelu>()));
    case UnaryOp::kSign:
      return VisitSigned(type, run(Unary<UnaryOp::kSign>()));
    case UnaryOp::kInv:
      if (type != Number::kInt64) return cudaErrorNotSupported;
      return run(Unary<UnaryOp::kInv>())(TypeTag<int64_t>());
    case UnaryOp::kNeg:
      return VisitUnsigned(type, run(Unary<UnaryOp::kNeg>()));
    case UnaryOp::kSquare:
      return VisitUnsigned(type, run(Unary<UnaryOp::kSquare>()));
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t LaunchBinaryInteger(BinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream) {
  const auto run = [&](auto fn) {
    return [&call, stream, fn](auto tag) {
      return Run<typename decltype(tag)::Type>(fn, call, stream);
    };
  };
  switch (op) {
    case BinaryOp::kAdd:
      return VisitUnsigned(type, run(Binary<BinaryOp::kAdd>()));
    case BinaryOp::kSub:
      return VisitUnsigned(type, run(Binary<BinaryOp::kSub>()));
    case BinaryOp::kMul:
      return VisitUnsigned(type, run(Binary<BinaryOp::kMul>()));
    case BinaryOp::kSquaredDifference:
      return VisitUnsigned(type, run(Binary<BinaryOp::kSquaredDifference>()));
    case BinaryOp::kMaximum:
      return VisitAny(type, run(Binary<BinaryOp::kMaximum>()));
    case BinaryOp::kMinimum:
      return VisitAny(type, run(Binary<BinaryOp::kMinimum>()));
    case BinaryOp::kDiv:
    case BinaryOp::kTruncateDiv:
      return VisitAny(type, run(Division<BinaryOp::kDiv>{call.check}));
    case BinaryOp::kFloorDiv:
      return VisitAny(type, run(Division<BinaryOp::kFloorDiv>{call.check}));
    case BinaryOp::kFloorMod:
      return VisitAny(type, run(Division<BinaryOp::kFloorMod>{call.check}));
    case BinaryOp::kPow:
      return VisitSigned(type, run(Power{call.check}));
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda
