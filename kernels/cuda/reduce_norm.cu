// Euclidean norms.
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/reduce_ops.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
struct NormOf : SumOfSquares<T> {
  using Acc = WideType<T>;
  __device__ static Acc Finish(Acc acc, int64_t) { return sqrt(acc); }
};

/// The sum is real.
template <typename Part>
struct ComplexNorm : SumOf<Part> {
  __device__ static Part Of(Complex<Part> x) { return x.real * x.real + x.imag * x.imag; }
  __device__ static Complex<Part> Finish(Part acc, int64_t) {
    return {sqrt(acc), isnan(acc) ? acc : Part(0)};
  }
};

}  // namespace

cudaError_t LaunchNorm(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  if (call.type == Number::kComplex64) {
    return RunArray<Complex<float>, ComplexNorm<float>>(call, plan, stream);
  }
  if (call.type == Number::kComplex128) {
    return RunArray<Complex<double>, ComplexNorm<double>>(call, plan, stream);
  }
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunArray<T, NormOf<T>>(call, plan, stream);
  });
}

}  // namespace troupe::cuda
