/// Sums over all pixels for each tap of a window and each channel: gradients of filters.
#ifndef TROUPE_KERNELS_CUDA_TAP_SUMS_CUH_
#define TROUPE_KERNELS_CUDA_TAP_SUMS_CUH_

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/tap_sums.h"

namespace troupe::cuda {

/// A block takes `lines` pixels at a time, of `width` packs of channels. It adds what they give to
/// kTapsAtOnce taps; its lines are joined in shared memory.
///
/// Body::Add(pixel, first tap, channel, sums) adds a pixel's part for a pack of channels from
/// `channel` on; channels and taps are there.
template <typename W, int kPack, typename Body>
__global__ void __launch_bounds__(kThreads) SumTaps(TapSums s, int width, Body body, W* partials) {
  __shared__ Packed<W, kPack> joined[kThreads];
  const int lines = kThreads / width;
  const int line = static_cast<int>(threadIdx.x) / width;
  const int lane = static_cast<int>(threadIdx.x) % width;
  const int64_t tiles = (s.channels / kPack + width - 1) / width;
  const int64_t groups = (s.taps + kTapsAtOnce - 1) / kTapsAtOnce;
  const int64_t piece_size = (s.pixels + s.pieces - 1) / s.pieces;
  for (int64_t item = blockIdx.x; item < s.pieces * groups * tiles; item += gridDim.x) {
    const int64_t piece = item / (groups * tiles), rest = item - piece * groups * tiles;
    const int64_t first_tap = rest / tiles * kTapsAtOnce;
    const int64_t channel = (rest % tiles * width + lane) * kPack;
    const int64_t begin = piece * piece_size;
    const int64_t end = begin + piece_size < s.pixels ? begin + piece_size : s.pixels;
    W sums[kTapsAtOnce][kPack] = {};
    if (channel < s.channels) {
      for (int64_t pixel = begin + line; pixel < end; pixel += lines) {
        body.Add(pixel, first_tap, channel, sums);
      }
    }
#pragma unroll
    for (int k = 0; k < kTapsAtOnce; ++k) {
      if (first_tap + k >= s.taps) break;
      Packed<W, kPack> own;
      for (int j = 0; j < kPack; ++j) own.values[j] = sums[k][j];
      joined[threadIdx.x] = own;
      __syncthreads();
      for (int half = lines / 2; half > 0; half /= 2) {
        if (line < half) {
          const Packed<W, kPack> other = joined[threadIdx.x + half * width];
          for (int j = 0; j < kPack; ++j) own.values[j] += other.values[j];
          joined[threadIdx.x] = own;
        }
        __syncthreads();
      }
      if (line != 0 || channel >= s.channels) continue;
      W* const to = partials + (piece * s.taps + first_tap + k) * s.channels + channel;
      for (int j = 0; j < kPack; ++j) to[j] = own.values[j];
    }
  }
}

/// out[i] = the sum of all pieces' i-th. A block has a line of kWarp results, and kWarps threads
/// for each.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    JoinPieces(const WideType<T>* partials, int64_t pieces, int64_t results, T* out) {
  using W = WideType<T>;
  __shared__ W joined[kThreads];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  for (int64_t first = int64_t{blockIdx.x} * kWarp; first < results;
       first += int64_t{gridDim.x} * kWarp) {
    W sum(0);
    if (first + lane < results) {
#pragma unroll 4
      for (int64_t p = line; p < pieces; p += kWarps) sum += partials[p * results + first + lane];
    }
    __syncthreads();  // The last sums have been read.
    joined[threadIdx.x] = sum;
    __syncthreads();
    if (line != 0 || first + lane >= results) continue;
    for (int l = 1; l < kWarps; ++l) sum += joined[l * kWarp + lane];
    out[first + lane] = static_cast<T>(sum);
  }
}

/// Enqueues both. `scratch`: s.scratch() numbers of the type that T is added in.
template <typename T, int kPack, typename Body>
cudaError_t LaunchTapSums(const TapSums& s, const Body& body, void* scratch, T* out,
                          cudaStream_t stream) {
  using W = WideType<T>;
  const auto blocks = [](int64_t n) {
    return static_cast<unsigned>(std::min<int64_t>(n, INT32_MAX));
  };
  const int width = s.Width(kPack);
  auto* const partials = static_cast<W*>(scratch);
  const int64_t items = s.pieces * s.Groups() * ((s.channels / kPack + width - 1) / width);
  const cudaError_t error =
      Launch(&SumTaps<W, kPack, Body>, blocks(items), kThreads, stream, s, width, body, partials);
  if (error != cudaSuccess) return error;
  const int64_t results = s.taps * s.channels;
  return Launch(&JoinPieces<T>, blocks((results + kWarp - 1) / kWarp), kThreads, stream, partials,
                s.pieces, results, out);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_TAP_SUMS_CUH_
