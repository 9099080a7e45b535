// A block for each matrix, which stays in global memory.
#include "kernels/cuda/decompositions.h"
#include "kernels/cuda/householder.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads) Qr(QrCall call) {
  __shared__ HouseholderMemory<T> memory;
  const int64_t m = call.m, n = call.n, reflections = m < n ? m : n;
  const int64_t p = call.full ? m : reflections;
  for (int64_t number = blockIdx.x; number < call.count; number += gridDim.x) {
    const T* const from = static_cast<const T*>(call.a) + number * m * n;
    T* const a = static_cast<T*>(call.work) + number * (m * n + reflections);
    T* const taus = a + m * n;
    T* const r = static_cast<T*>(call.r) + number * p * n;
    for (int64_t at = threadIdx.x; at < m * n; at += blockDim.x) a[at] = from[at];
    __syncthreads();
    FactorQr(a, m, n, taus, &memory);
    for (int64_t at = threadIdx.x; at < p * n; at += blockDim.x) {
      r[at] = at / n <= at % n ? a[at] : FromReal<T>(0);
    }
    FormQ(a, m, n, taus, static_cast<T*>(call.q) + number * m * p, p, &memory);
  }
}

}  // namespace

cudaError_t LaunchQr(const QrCall& call, cudaStream_t stream) {
  return VisitField(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&Qr<T>, GridOf(call.count), ThreadsFor(std::max(call.m, call.n)), stream, call);
  });
}

}  // namespace troupe::cuda
