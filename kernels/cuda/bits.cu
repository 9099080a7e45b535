// Bits of integers.
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

/// The places for which a shift is defined.
template <typename T>
__device__ int Places(T count) {
  constexpr int kMost = 8 * sizeof(T) - 1;
  if (count > static_cast<T>(kMost)) return kMost;
  if constexpr (std::is_signed_v<T>) {
    if (count < 0) return 0;
  }
  return static_cast<int>(count);
}

template <BitsOp kOp>
struct Bits {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (kOp == BitsOp::kAnd) return static_cast<T>(a & b);
    if constexpr (kOp == BitsOp::kOr) return static_cast<T>(a | b);
    if constexpr (kOp == BitsOp::kXor) return static_cast<T>(a ^ b);
    if constexpr (kOp == BitsOp::kLeftShift) {
      return static_cast<T>(static_cast<uint64_t>(a) << Places(b));
    }
    if constexpr (kOp == BitsOp::kRightShift) return static_cast<T>(a >> Places(b));
  }
};

struct Invert {
  template <typename T>
  __device__ T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

struct Count {
  template <typename T>
  __device__ uint8_t operator()(T x) const {
    int count = __popc(static_cast<unsigned>(x));
    if constexpr (sizeof(T) == 8) count += __popc(static_cast<unsigned>(x >> 32));
    return static_cast<uint8_t>(count);
  }
};

template <BitsOp kOp>
auto Runs(const BinaryCall& call, cudaStream_t stream) {
  return [&call, stream](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapStrided(Bits<kOp>(), call.broadcast, call.n, stream, static_cast<T*>(call.out),
                      static_cast<const T*>(call.a), static_cast<const T*>(call.b));
  };
}
/// A count's sign, and that of what is shifted to the right, matter.
template <typename Fn>
cudaError_t VisitAny(Number type, Fn fn) {
  const cudaError_t error = VisitSigned(type, fn);
  return error == cudaErrorNotSupported ? VisitUnsigned(type, fn) : error;
}

}  // namespace

cudaError_t LaunchBits(BitsOp op, Number type, const BinaryCall& call, cudaStream_t stream) {
  switch (op) {
    case BitsOp::kAnd:
      return VisitUnsigned(type, Runs<BitsOp::kAnd>(call, stream));
    case BitsOp::kOr:
      return VisitUnsigned(type, Runs<BitsOp::kOr>(call, stream));
    case BitsOp::kXor:
      return VisitUnsigned(type, Runs<BitsOp::kXor>(call, stream));
    case BitsOp::kLeftShift:
      return VisitAny(type, Runs<BitsOp::kLeftShift>(call, stream));
    case BitsOp::kRightShift:
      return VisitAny(type, Runs<BitsOp::kRightShift>(call, stream));
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchInvert(Number type, const void* x, void* y, int64_t n, cudaStream_t stream) {
  return VisitUnsigned(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Invert(), FlatWalk(), n, stream, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

cudaError_t LaunchPopulationCount(Number type, const void* x, uint8_t* y, int64_t n,
                                  cudaStream_t stream) {
  return VisitUnsigned(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Count(), FlatWalk(), n, stream, y, static_cast<const T*>(x));
  });
}

}  // namespace troupe::cuda
