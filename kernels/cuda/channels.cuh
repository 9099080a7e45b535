/// Loops over elements that know their channels, for a body that has
///
///     auto Channels<kC>(int64_t first) const;  // what it needs of channels [first, first + kC)
///     auto Load<kN>(int64_t at) const;         // elements [at, at + kN); aligned if kN > 1
///     void Store<kC, kN>(channels, loaded, int64_t at) const;
///                                              // the k-th of them is of the k % kC-th channel
#ifndef TROUPE_KERNELS_CUDA_CHANNELS_CUH_
#define TROUPE_KERNELS_CUDA_CHANNELS_CUH_

#include <utility>

#include "kernels/cuda/group.cuh"

namespace troupe::cuda {

/// Rows whose elements a thread has under way at once: up to 64 bytes.
template <int kPack, typename Body>
inline constexpr int kRowsAtOnce =
    std::clamp<int>(64 / sizeof(decltype(std::declval<Body>().template Load<kPack>(0))), 1, 4);

/// Of rows of channels. A block has lines of `width` threads, a pack of channels for each, and each
/// thread keeps to its channels: those are looked up once. `tiles` blocks share a row. At least
/// three blocks have registers on a processor: with fewer threads latencies show.
template <int kPack, typename Body>
__global__ void __launch_bounds__(kThreads, 3)
    ForChannelRows(int64_t n, int64_t channels, int width, int tiles, Body body) {
  const int x = static_cast<int>(threadIdx.x) % width, y = static_cast<int>(threadIdx.x) / width;
  const int height = kThreads / width;
  const int block = static_cast<int>(blockIdx.x) / tiles;
  const int tile = static_cast<int>(blockIdx.x) - block * tiles;
  const int64_t channel = (int64_t{tile} * width + x) * kPack;
  if (y >= height || channel >= channels) return;
  const auto known = body.template Channels<kPack>(channel);
  constexpr int kRows = kRowsAtOnce<kPack, Body>;
  const int64_t line = height * channels, chunk = kRows * line;
  const int64_t step = gridDim.x / tiles * chunk;
  for (int64_t at = block * chunk + y * channels + channel; at < n; at += step) {
    decltype(body.template Load<kPack>(0)) loaded[kRows];
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (at + j * line < n) loaded[j] = body.template Load<kPack>(at + j * line);
    }
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (at + j * line < n) body.template Store<kPack, kPack>(known, loaded[j], at + j * line);
    }
  }
}

/// Of channels that have `inner` neighbouring elements each.
template <int kPack, typename Body>
__global__ void __launch_bounds__(kThreads)
    ForChannelPlanes(int64_t packs, int64_t inner, int64_t channels, Body body) {
  const int64_t jump = int64_t{gridDim.x} * kThreads;
  const bool small = packs * kPack <= INT32_MAX;  // Division of 64 bits takes long.
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += jump) {
    const int64_t at = i * kPack;
    const int64_t channel = small ? static_cast<uint32_t>(at) / static_cast<uint32_t>(inner) %
                                        static_cast<uint32_t>(channels)
                                  : at / inner % channels;
    const auto loaded = body.template Load<kPack>(at);
    body.template Store<1, kPack>(body.template Channels<1>(channel), loaded, at);
  }
}

template <int kPack, typename Body>
cudaError_t RunChannelRows(int64_t n, int64_t channels, cudaStream_t stream, Body body) {
  constexpr int64_t kTile = 64;  // Packs that a line reads at once, at most.
  // With so many blocks a card is full, and each may take several chunks.
  constexpr int64_t kManyBlocks = 1024, kMostChunks = 4;
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t columns = channels / kPack, tiles = ceil_div(columns, kTile);
  const int64_t width = ceil_div(columns, tiles), height = kThreads / width;
  const int64_t chunks = ceil_div(n / channels, height * kRowsAtOnce<kPack, Body>);
  const int64_t of_block = std::clamp<int64_t>(chunks * tiles / kManyBlocks, 1, kMostChunks);
  return Launch(&ForChannelRows<kPack, Body>,
                static_cast<unsigned>(ceil_div(chunks, of_block) * tiles), kThreads, stream, n,
                channels, static_cast<int>(width), static_cast<int>(tiles), body);
}

/// For n elements, of which element i is of channel i / inner % channels. `kPack` at once where
/// none of them would be cut and `aligned` says that addresses are multiples of 16.
template <int kPack, typename Body>
cudaError_t ForChannels(int64_t n, int64_t inner, int64_t channels, bool aligned,
                        cudaStream_t stream, Body body) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned && (inner == 1 ? channels : inner) % kPack == 0;
  if (inner == 1) {
    return packed ? RunChannelRows<kPack>(n, channels, stream, body)
                  : RunChannelRows<1>(n, channels, stream, body);
  }
  return packed ? Launch(&ForChannelPlanes<kPack, Body>, Blocks(n / kPack), kThreads, stream,
                         n / kPack, inner, channels, body)
                : Launch(&ForChannelPlanes<1, Body>, Blocks(n), kThreads, stream, n, inner,
                         channels, body);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CHANNELS_CUH_
