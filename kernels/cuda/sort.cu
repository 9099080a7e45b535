// Radix sort, 8 bits a pass, the lowest first: each block counts the digits of its tile of 2048
// keys; a scan of the counts, digit by digit, says where each block's keys of a digit go; each
// block puts them there in their order. Nothing depends on the order of blocks: the sort is stable.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/sort.h"

namespace troupe::cuda {
namespace {

constexpr int kDigits = 256;
constexpr int kRounds = 8;  // Keys of a thread.
constexpr int64_t kTile = kThreads * kRounds;
static_assert(kDigits == kThreads, "each thread has a digit");

int64_t Tiles(int64_t n) { return (n + kTile - 1) / kTile; }

template <typename Key>
__device__ int Digit(Key key, int shift) {
  return static_cast<int>(key >> shift & (kDigits - 1));
}

template <typename Key>
__global__ void __launch_bounds__(kThreads)
    CountDigits(const Key* keys, int64_t n, int shift, uint64_t* counts) {
  __shared__ unsigned of_block[kDigits];
  of_block[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = int64_t{blockIdx.x} * kTile;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = first + round * kThreads + threadIdx.x;
    if (i < n) atomicAdd(&of_block[Digit(keys[i], shift)], 1u);
  }
  __syncthreads();
  counts[int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = of_block[threadIdx.x];
}

/// `counts` by now: how many keys come before the block's of the digit.
template <typename Key>
__global__ void __launch_bounds__(kThreads)
    MoveKeys(const Key* keys, const uint32_t* places, int64_t n, int shift, const uint64_t* counts,
             Key* to_keys, uint32_t* to_places) {
  __shared__ uint32_t of_warps[kWarps][kDigits];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int w = 0; w < kWarps; ++w) of_warps[w][threadIdx.x] = 0;
  __syncthreads();
  // A warp has neighbouring keys, so that its order is theirs.
  const int64_t first = int64_t{blockIdx.x} * kTile + warp * kWarp * kRounds + lane;
  Key own[kRounds];
  uint32_t rank[kRounds];  // Among the warp's keys of the digit.
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = first + round * kWarp;
    own[round] = i < n ? keys[i] : Key(0);
    const int digit = Digit(own[round], shift);
    unsigned same = __ballot_sync(~0u, i < n);
    for (int bit = 0; bit < 8; ++bit) {
      const bool set = (digit >> bit & 1) != 0;
      const unsigned with = __ballot_sync(~0u, set);
      same &= set ? with : ~with;
    }
    rank[round] = i < n ? of_warps[warp][digit] + __popc(same & ((1u << lane) - 1)) : 0;
    __syncwarp();
    if (i < n && __popc(same >> lane) == 1) of_warps[warp][digit] = rank[round] + 1;
    __syncwarp();
  }
  __syncthreads();
  uint32_t base = static_cast<uint32_t>(counts[int64_t{threadIdx.x} * gridDim.x + blockIdx.x]);
  for (int w = 0; w < kWarps; ++w) {
    const uint32_t count = of_warps[w][threadIdx.x];
    of_warps[w][threadIdx.x] = base;
    base += count;
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = first + round * kWarp;
    if (i >= n) continue;
    const uint32_t to = of_warps[warp][Digit(own[round], shift)] + rank[round];
    to_keys[to] = own[round];
    to_places[to] = places != nullptr ? places[i] : static_cast<uint32_t>(i);
  }
}

template <typename Key>
cudaError_t Run(const SortBuffers& buffers, int64_t n, int bits, bool fresh, int* result,
                cudaStream_t stream) {
  const int64_t tiles = Tiles(n);
  const ScanShape scan = [tiles] {
    ScanShape shape = PlanScan(1, kDigits * tiles, 1);
    shape.exclusive = true;
    return shape;
  }();
  *result = 0;
  // At least one pass, which makes the places.
  for (int shift = 0; shift == 0 || shift < bits; shift += 8) {
    const int from = *result, to = 1 - from;
    const auto* keys = static_cast<const Key*>(buffers.keys[from]);
    cudaError_t error = Launch(&CountDigits<Key>, static_cast<unsigned>(tiles), kThreads, stream,
                               keys, n, shift, buffers.counts);
    if (error == cudaSuccess) {
      error = LaunchScan(ScanOp::kSum, Number::kInt64, buffers.counts, buffers.counts, scan,
                         buffers.counts + kDigits * tiles, stream);
    }
    if (error == cudaSuccess) {
      const uint32_t* const places = fresh && shift == 0 ? nullptr : buffers.places[from];
      error =
          Launch(&MoveKeys<Key>, static_cast<unsigned>(tiles), kThreads, stream, keys, places, n,
                 shift, buffers.counts, static_cast<Key*>(buffers.keys[to]), buffers.places[to]);
    }
    if (error != cudaSuccess) return error;
    *result = to;
  }
  return cudaSuccess;
}

}  // namespace

int64_t SortCounts(int64_t n) {
  const int64_t counts = kDigits * Tiles(n);
  return counts + PlanScan(1, counts, 1).totals();
}

cudaError_t LaunchSort(const SortBuffers& buffers, int64_t n, int bits, bool fresh, int* result,
                       cudaStream_t stream) {
  return buffers.wide ? Run<uint64_t>(buffers, n, bits, fresh, result, stream)
                      : Run<uint32_t>(buffers, n, bits, fresh, result, stream);
}

}  // namespace troupe::cuda
