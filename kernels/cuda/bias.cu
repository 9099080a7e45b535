#include "kernels/cuda/bias.h"

#include "kernels/cuda/channels.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
struct AddBias {
  template <int kC>
  __device__ Packed<T, kC> Channels(int64_t first) const {
    return LoadPacked<kC>(bias, first);
  }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(x, at);
  }
  template <int kC, int kN>
  __device__ void Store(const Packed<T, kC>& channels, Packed<T, kN> values, int64_t at) const {
    using W = WideType<T>;
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      values.values[k] = static_cast<T>(static_cast<W>(values.values[k]) +
                                        static_cast<W>(channels.values[k % kC]));
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
        n, inner, channels, IsAligned(x) && IsAligned(bias) && IsAligned(out), stream,
        AddBias<T>{static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(out)});
  };
  if (type == Number::kInt32) return run(TypeTag<uint32_t>());  // Wraps around.
  return VisitFloating(type, run);
}

}  // namespace troupe::cuda
