// Gradients of element-wise functions.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

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
    return Run(GradientFunction<GradientOp::NAME>(), type, y, dy, out, n, stream)
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
