// Element by element: one thread for each of them, or for 16 bytes of them where they lie together.
#include <type_traits>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
__device__ T Zero() {
  return static_cast<T>(0);
}

template <UnaryOp kOp, typename T>
__device__ T Apply(T x) {
  if constexpr (kOp == UnaryOp::kAbs) return x > Zero<T>() ? x : Zero<T>() - x;
  if constexpr (kOp == UnaryOp::kNeg) return -x;
  if constexpr (kOp == UnaryOp::kSquare) return x * x;
  if constexpr (kOp == UnaryOp::kSign) {
    return x > Zero<T>() ? static_cast<T>(1) : x < Zero<T>() ? static_cast<T>(-1) : x;
  }
  // A number that is none stays one.
  if constexpr (kOp == UnaryOp::kRelu) return x < Zero<T>() ? Zero<T>() : x;
  if constexpr (!std::is_integral_v<T>) {
    if constexpr (kOp == UnaryOp::kCeil) return ceil(x);
    if constexpr (kOp == UnaryOp::kCos) return cos(x);
    if constexpr (kOp == UnaryOp::kErf) return erf(x);
    if constexpr (kOp == UnaryOp::kExp) return exp(x);
    if constexpr (kOp == UnaryOp::kExpm1) return expm1(x);
    if constexpr (kOp == UnaryOp::kFloor) return floor(x);
    if constexpr (kOp == UnaryOp::kInv) return 1 / x;
    if constexpr (kOp == UnaryOp::kLog) return log(x);
    if constexpr (kOp == UnaryOp::kLog1p) return log1p(x);
    if constexpr (kOp == UnaryOp::kRsqrt) return 1 / sqrt(x);
    if constexpr (kOp == UnaryOp::kSigmoid) return 1 / (1 + exp(-x));
    if constexpr (kOp == UnaryOp::kSin) return sin(x);
    if constexpr (kOp == UnaryOp::kSoftplus) {
      return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    if constexpr (kOp == UnaryOp::kSqrt) return sqrt(x);
    if constexpr (kOp == UnaryOp::kTanh) return tanh(x);
  }
  return x;
}

template <BinaryOp kOp, typename T>
__device__ T Apply(T a, T b) {
  if constexpr (kOp == BinaryOp::kAdd) return a + b;
  if constexpr (kOp == BinaryOp::kSub) return a - b;
  if constexpr (kOp == BinaryOp::kMul) return a * b;
  if constexpr (kOp == BinaryOp::kSquaredDifference) return (a - b) * (a - b);
  if constexpr (kOp == BinaryOp::kMaximum) return a < b || b != b ? b : a;
  if constexpr (kOp == BinaryOp::kMinimum) return b < a || b != b ? b : a;
  if constexpr (!std::is_integral_v<T>) {
    if constexpr (kOp == BinaryOp::kDiv) return a / b;
    if constexpr (kOp == BinaryOp::kPow) return pow(a, b);
    // The gradients are given the op's value (Relu's: its argument) and what came back.
    if constexpr (kOp == BinaryOp::kReluGrad) return b > 0 ? a : T(0);
    if constexpr (kOp == BinaryOp::kRsqrtGrad) return b * (a * a * a) * T(-0.5);
    if constexpr (kOp == BinaryOp::kSigmoidGrad) return b * a * (1 - a);
    if constexpr (kOp == BinaryOp::kSqrtGrad) return b * T(0.5) / a;
    if constexpr (kOp == BinaryOp::kTanhGrad) return b * (1 - a * a);
  }
  return a;
}

/// So many elements are read and written at once, as long as there are `packs` of them.
template <typename T>
inline constexpr int kPack = 16 / sizeof(T);
template <typename T>
struct alignas(16) Pack {
  T values[kPack<T>];
};

template <UnaryOp kOp, typename T>
__global__ void __launch_bounds__(kThreads) Unary(const T* x, T* y, int64_t n, int64_t packs) {
  using W = WideType<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += step) {
    Pack<T> pack = reinterpret_cast<const Pack<T>*>(x)[i];
    for (int k = 0; k < kPack<T>; ++k) {
      pack.values[k] = static_cast<T>(Apply<kOp, W>(static_cast<W>(pack.values[k])));
    }
    reinterpret_cast<Pack<T>*>(y)[i] = pack;
  }
  for (int64_t i = packs * kPack<T> + first; i < n; i += step) {
    y[i] = static_cast<T>(Apply<kOp, W>(static_cast<W>(x[i])));
  }
}

/// Operands of the output's size, or (a stride of 0) of one element.
template <BinaryOp kOp, typename T>
__global__ void __launch_bounds__(kThreads) BinaryFlat(const T* a, const T* b, T* out, int64_t n,
                                                       int64_t packs, int a_stride, int b_stride) {
  using W = WideType<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += step) {
    Pack<T> left, right, result;
    if (a_stride != 0) left = reinterpret_cast<const Pack<T>*>(a)[i];
    if (b_stride != 0) right = reinterpret_cast<const Pack<T>*>(b)[i];
    for (int k = 0; k < kPack<T>; ++k) {
      result.values[k] =
          static_cast<T>(Apply<kOp, W>(static_cast<W>(a_stride != 0 ? left.values[k] : *a),
                                       static_cast<W>(b_stride != 0 ? right.values[k] : *b)));
    }
    reinterpret_cast<Pack<T>*>(out)[i] = result;
  }
  for (int64_t i = packs * kPack<T> + first; i < n; i += step) {
    out[i] = static_cast<T>(
        Apply<kOp, W>(static_cast<W>(a[i * a_stride]), static_cast<W>(b[i * b_stride])));
  }
}

template <BinaryOp kOp, typename T>
__global__ void __launch_bounds__(kThreads)
    BinaryBroadcast(const T* a, const T* b, T* out, int64_t n, Broadcast broadcast) {
  using W = WideType<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t rest = i, at_a = 0, at_b = 0;
    for (int d = broadcast.rank - 1; d >= 0; --d) {
      const int64_t index = rest % broadcast.sizes[d];
      rest /= broadcast.sizes[d];
      at_a += index * broadcast.strides[0][d];
      at_b += index * broadcast.strides[1][d];
    }
    out[i] = static_cast<T>(Apply<kOp, W>(static_cast<W>(a[at_a]), static_cast<W>(b[at_b])));
  }
}

bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

template <UnaryOp kOp, typename T>
cudaError_t Run(const void* x, void* y, int64_t n, cudaStream_t stream) {
  // A slice may begin anywhere.
  const int64_t packs = IsAligned(x) && IsAligned(y) ? n / kPack<T> : 0;
  return Launch(&Unary<kOp, T>, Blocks(packs > 0 ? packs : n), kThreads, stream,
                static_cast<const T*>(x), static_cast<T*>(y), n, packs);
}

template <BinaryOp kOp, typename T>
cudaError_t Run(const void* a, const void* b, void* out, int64_t n, const Broadcast& broadcast,
                cudaStream_t stream) {
  const auto *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
  if (broadcast.rank > 1) {
    return Launch(&BinaryBroadcast<kOp, T>, Blocks(n), kThreads, stream, left, right,
                  static_cast<T*>(out), n, broadcast);
  }
  const int a_stride = static_cast<int>(broadcast.strides[0][0]);
  const int b_stride = static_cast<int>(broadcast.strides[1][0]);
  const bool aligned =
      IsAligned(out) && (a_stride == 0 || IsAligned(a)) && (b_stride == 0 || IsAligned(b));
  const int64_t packs = aligned ? n / kPack<T> : 0;
  return Launch(&BinaryFlat<kOp, T>, Blocks(packs > 0 ? packs : n), kThreads, stream, left, right,
                static_cast<T*>(out), n, packs, a_stride, b_stride);
}

template <typename T, typename... Args>
cudaError_t Choose(UnaryOp op, Args... args) {
  constexpr bool kReal = !std::is_integral_v<T>;
  switch (op) {
    case UnaryOp::kAbs:
      return Run<UnaryOp::kAbs, T>(args...);
    case UnaryOp::kNeg:
      return Run<UnaryOp::kNeg, T>(args...);
    case UnaryOp::kRelu:
      return Run<UnaryOp::kRelu, T>(args...);
    case UnaryOp::kSign:
      return Run<UnaryOp::kSign, T>(args...);
    case UnaryOp::kSquare:
      return Run<UnaryOp::kSquare, T>(args...);
    default:
      break;
  }
  if constexpr (kReal) {
    switch (op) {
#define TROUPE_CASE(NAME) \
  case UnaryOp::NAME:     \
    return Run<UnaryOp::NAME, T>(args...)
      TROUPE_CASE(kCeil);
      TROUPE_CASE(kCos);
      TROUPE_CASE(kErf);
      TROUPE_CASE(kExp);
      TROUPE_CASE(kExpm1);
      TROUPE_CASE(kFloor);
      TROUPE_CASE(kInv);
      TROUPE_CASE(kLog);
      TROUPE_CASE(kLog1p);
      TROUPE_CASE(kRsqrt);
      TROUPE_CASE(kSigmoid);
      TROUPE_CASE(kSin);
      TROUPE_CASE(kSoftplus);
      TROUPE_CASE(kSqrt);
      TROUPE_CASE(kTanh);
#undef TROUPE_CASE
      default:
        break;
    }
  }
  return cudaErrorNotSupported;
}

template <typename T, typename... Args>
cudaError_t Choose(BinaryOp op, Args... args) {
  constexpr bool kReal = !std::is_integral_v<T>;
#define TROUPE_CASE(NAME) \
  case BinaryOp::NAME:    \
    return Run<BinaryOp::NAME, T>(args...)
  switch (op) {
    TROUPE_CASE(kAdd);
    TROUPE_CASE(kSub);
    TROUPE_CASE(kMul);
    TROUPE_CASE(kMaximum);
    TROUPE_CASE(kMinimum);
    TROUPE_CASE(kSquaredDifference);
    default:
      break;
  }
  if constexpr (kReal) {
    switch (op) {
      TROUPE_CASE(kDiv);
      TROUPE_CASE(kPow);
      TROUPE_CASE(kReluGrad);
      TROUPE_CASE(kRsqrtGrad);
      TROUPE_CASE(kSigmoidGrad);
      TROUPE_CASE(kSqrtGrad);
      TROUPE_CASE(kTanhGrad);
      default:
        break;
    }
  }
#undef TROUPE_CASE
  return cudaErrorNotSupported;
}

template <typename Op, typename... Args>
cudaError_t Dispatch(Op op, Number type, Args... args) {
  if (type == Number::kInt64) return Choose<int64_t>(op, args...);
  return VisitFloating(type,
                       [&](auto tag) { return Choose<typename decltype(tag)::Type>(op, args...); });
}

}  // namespace

cudaError_t LaunchUnary(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                        cudaStream_t stream) {
  return n == 0 ? cudaSuccess : Dispatch(op, type, x, y, n, stream);
}

cudaError_t LaunchBinary(BinaryOp op, Number type, const void* a, const void* b, void* out,
                         int64_t n, const Broadcast& broadcast, cudaStream_t stream) {
  return n == 0 ? cudaSuccess : Dispatch(op, type, a, b, out, n, broadcast, stream);
}

}  // namespace troupe::cuda
