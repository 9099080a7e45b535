/// Loops over elements that know their channels.
#ifndef TROUPE_KERNELS_CUDA_CHANNELS_CUH_
#define TROUPE_KERNELS_CUDA_CHANNELS_CUH_

#include "kernels/cuda/group.cuh"

namespace troupe::cuda {

/// Calls body.Run<kPack>(at, channel, step): for elements [at, at + kPack), of which the k-th is of
/// channel + k * step.
template <int kPack, typename Body>
__global__ void __launch_bounds__(kThreads)
    ForChannelPacks(int64_t packs, int64_t inner, int64_t channels, Body body) {
  const int64_t jump = int64_t{gridDim.x} * kThreads;
  const bool small = packs * kPack <= INT32_MAX;  // Division of 64 bits takes long.
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += jump) {
    const int64_t at = i * kPack;
    const int64_t channel = small ? static_cast<uint32_t>(at) / static_cast<uint32_t>(inner) %
                                        static_cast<uint32_t>(channels)
                                  : at / inner % channels;
    body.template Run<kPack>(at, channel, inner == 1 ? 1 : 0);
  }
}

/// For n elements, of which element i is of channel i / inner % channels. `kPack` at once where
/// none of them would be cut and `aligned` says that addresses are multiples of 16.
template <int kPack, typename Body>
cudaError_t ForChannels(int64_t n, int64_t inner, int64_t channels, bool aligned,
                        cudaStream_t stream, Body body) {
  if (aligned && (inner == 1 ? channels : inner) % kPack == 0) {
    return Launch(&ForChannelPacks<kPack, Body>, Blocks(n / kPack), kThreads, stream, n / kPack,
                  inner, channels, body);
  }
  return Launch(&ForChannelPacks<1, Body>, Blocks(n), kThreads, stream, n, inner, channels, body);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CHANNELS_CUH_
