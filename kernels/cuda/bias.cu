#include "kernels/cuda/bias.h"

#include "kernels/cuda/channels.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
struct AddBias {
  template <int kN>
  __device__ void Run(int64_t at, int64_t channel, int step) const {
    using W = WideType<T>;
    Packed<T, kN> values = LoadPacked<kN>(x, at);
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      values.values[k] = static_cast<T>(static_cast<W>(values.values[k]) +
                                        static_cast<W>(bias[channel + k * step]));
    }
    StorePacked(values, out, at);
  }

  const T* x;
  const T* bias;
  T* out;
};

}  // namespace

cudaError_t LaunchBiasAdd(Number type, const void* x, const void* bias, void* out, int64_t n,
                          int64_t inner, int64_t channels, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForChannels<16 / sizeof(T)>(
        n, inner, channels, IsAligned(x) && IsAligned(out), stream,
        AddBias<T>{static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(out)});
  };
  if (type == Number::kInt32) return run(TypeTag<uint32_t>());  // Wraps around.
  return VisitFloating(type, run);
}

}  // namespace troupe::cuda
