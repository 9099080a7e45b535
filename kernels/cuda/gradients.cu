// Gradients of element-wise functions.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

template <GradientOp kOp>
struct Function {
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

struct LeakyRelu {
  float alpha;
  template <typename W>
  __device__ W operator()(W x) const {
    return x > 0 ? x : x * static_cast<W>(alpha);
  }
};
struct LeakyReluGradient {
  float alpha;
  template <typename W>
  __device__ W operator()(W x, W dy) const {
    return x > 0 ? dy : dy * static_cast<W>(alpha);
  }
};

template <typename Fn>
cudaError_t Run(Fn fn, Number type, const void* y, const void* dy, void* out, int64_t n,
                cudaStream_t stream) {
  return VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Widened<Fn, T>{fn}, FlatWalk(), n, stream, static_cast<T*>(out),
                   static_cast<const T*>(y), static_cast<const T*>(dy));
  });
}

}  // namespace

cudaError_t LaunchGradient(GradientOp op, Number type, const void* y, const void* dy, void* out,
                           int64_t n, cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case GradientOp::NAME:  \
    return Run(Function<GradientOp::NAME>(), type, y, dy, out, n, stream)
    TROUPE_CASE(kInv);
    TROUPE_CASE(kRsqrt);
    TROUPE_CASE(kSigmoid);
    TROUPE_CASE(kSqrt);
    TROUPE_CASE(kTanh);
    TROUPE_CASE(kElu);
    TROUPE_CASE(kRelu);
    TROUPE_CASE(kRelu6);
    TROUPE_CASE(kSelu);
    TROUPE_CASE(kSoftplus);
    TROUPE_CASE(kSoftsign);
#undef TROUPE_CASE
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchLeakyRelu(Number type, float alpha, const void* x, void* y, int64_t n,
                            cudaStream_t stream) {
  return VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Widened<LeakyRelu, T>{{alpha}}, FlatWalk(), n, stream, static_cast<T*>(y),
                   static_cast<const T*>(x));
  });
}

cudaError_t LaunchLeakyReluGradient(Number type, float alpha, const void* x, const void* dy,
                                    void* out, int64_t n, cudaStream_t stream) {
  return Run(LeakyReluGradient{alpha}, type, x, dy, out, n, stream);
}

}  // namespace troupe::cuda
