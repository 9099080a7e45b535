// Complex numbers from real ones, and real ones from them.
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <ComplexPart kPart>
struct Part {
  template <typename R>
  __device__ R operator()(Complex<R> x) const {
    if constexpr (kPart == ComplexPart::kReal) return x.real;
    if constexpr (kPart == ComplexPart::kImag) return x.imag;
    if constexpr (kPart == ComplexPart::kAbs) return hypot(x.real, x.imag);
    if constexpr (kPart == ComplexPart::kAngle) return atan2(x.imag, x.real);
  }
};

struct Make {
  template <typename R>
  __device__ Complex<R> operator()(R real, R imag) const {
    return {real, imag};
  }
};

template <ComplexPart kPart>
cudaError_t Run(Number type, const void* x, void* y, int64_t n, cudaStream_t stream) {
  return VisitComplex(type, [=](auto tag) {
    using R = typename decltype(tag)::Type;
    return MapFlat(Part<kPart>(), FlatWalk(), n, stream, static_cast<R*>(y),
                   static_cast<const Complex<R>*>(x));
  });
}

}  // namespace

cudaError_t LaunchComplexPart(ComplexPart part, Number type, const void* x, void* y, int64_t n,
                              cudaStream_t stream) {
  switch (part) {
    case ComplexPart::kReal:
      return Run<ComplexPart::kReal>(type, x, y, n, stream);
    case ComplexPart::kImag:
      return Run<ComplexPart::kImag>(type, x, y, n, stream);
    case ComplexPart::kAbs:
      return Run<ComplexPart::kAbs>(type, x, y, n, stream);
    case ComplexPart::kAngle:
      return Run<ComplexPart::kAngle>(type, x, y, n, stream);
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchMakeComplex(Number type, const BinaryCall& call, cudaStream_t stream) {
  return VisitComplex(type, [&](auto tag) {
    using R = typename decltype(tag)::Type;
    return MapStrided(Make(), call.broadcast, call.n, stream, static_cast<Complex<R>*>(call.out),
                      static_cast<const R*>(call.a), static_cast<const R*>(call.b));
  });
}

}  // namespace troupe::cuda
