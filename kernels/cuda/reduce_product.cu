// Products, and the choice of a reduction.
#include "kernels/cuda/reduce_ops.cuh"

namespace troupe::cuda {
namespace {

template <typename Part>
struct alignas(2 * sizeof(Part)) Complex {
  Part real, imaginary;
};

template <typename Part>
struct ComplexProduct {
  using Acc = Complex<Part>;
  __device__ static Acc Identity() { return {Part(1), Part(0)}; }
  __device__ static Acc Of(Acc x) { return x; }
  __device__ static Acc Join(Acc a, Acc b) {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
  __device__ static Acc Finish(Acc acc, int64_t) { return acc; }
};

struct AllOf {
  using Acc = uint8_t;
  __device__ static Acc Identity() { return 1; }
  __device__ static Acc Of(uint8_t x) { return x != 0; }
  __device__ static Acc Join(Acc a, Acc b) { return a & b; }
  __device__ static Acc Finish(Acc acc, int64_t) { return acc; }
};
struct AnyOf : AllOf {
  __device__ static Acc Identity() { return 0; }
  __device__ static Acc Join(Acc a, Acc b) { return a | b; }
};

}  // namespace

cudaError_t LaunchProd(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  if (call.type == Number::kInt64) {  // Wraps around.
    return RunArray<uint64_t, ProductOf<uint64_t>>(call, plan, stream);
  }
  if (call.type == Number::kComplex64) {
    return RunArray<Complex<float>, ComplexProduct<float>>(call, plan, stream);
  }
  if (call.type == Number::kComplex128) {
    return RunArray<Complex<double>, ComplexProduct<double>>(call, plan, stream);
  }
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunArray<T, ProductOf<T>>(call, plan, stream);
  });
}

cudaError_t LaunchReduce(ReduceOp op, const ReduceCall& call, const ReducePlan& plan,
                         cudaStream_t stream) {
  switch (op) {
    case ReduceOp::kSum:
      return LaunchSum(call, plan, stream);
    case ReduceOp::kSumOfSquares:
      return LaunchSumOfSquares(call, plan, stream);
    case ReduceOp::kNorm:
      return LaunchNorm(call, plan, stream);
    case ReduceOp::kProd:
      return LaunchProd(call, plan, stream);
    case ReduceOp::kMax:
      return LaunchMax(call, plan, stream);
    case ReduceOp::kMin:
      return LaunchMin(call, plan, stream);
    case ReduceOp::kAll:
      return RunArray<uint8_t, AllOf>(call, plan, stream);
    case ReduceOp::kAny:
      return RunArray<uint8_t, AnyOf>(call, plan, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace troupe::cuda
