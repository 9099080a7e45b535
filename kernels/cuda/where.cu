// Each block counts those of its tile of 2048 elements; a scan of the counts says where each block
// writes.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/where.h"

namespace troupe::cuda {
namespace {

constexpr int kRounds = 8;
constexpr int64_t kTile = kThreads * kRounds;

int64_t Tiles(int64_t n) { return (n + kTile - 1) / kTile; }
/// Of the tiles' counts and, behind them, the total.
ScanShape ScanOf(int64_t n) {
  ScanShape shape = PlanScan(1, Tiles(n) + 1, 1);
  shape.exclusive = true;
  return shape;
}

template <typename Word>
__device__ bool IsSet(const WhereCall& call, int64_t i) {
  const Word* const words = static_cast<const Word*>(call.in) + i * call.words;
  Word set = words[0];
  if (call.words == 2) set |= words[1];
  return (set & static_cast<Word>(call.mask)) != 0;
}

template <typename Word>
__global__ void __launch_bounds__(kThreads) Count(WhereCall call, uint64_t* counts) {
  __shared__ unsigned of_warps[kWarps];
  const int64_t first = int64_t{blockIdx.x} * kTile + threadIdx.x;
  unsigned count = 0;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = first + round * kThreads;
    if (i < call.n && IsSet<Word>(call, i)) ++count;
  }
  count = JoinGroup(count, kThreads, of_warps, [](unsigned a, unsigned b) { return a + b; });
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
  if (threadIdx.x == 0 && blockIdx.x == 0) counts[gridDim.x] = 0;
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Places(WhereCall call, const uint64_t* counts, int64_t* out) {
  __shared__ unsigned of_warps[kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int64_t base = static_cast<int64_t>(counts[blockIdx.x]);
  for (int round = 0; round < kRounds; ++round) {
    const int64_t i = int64_t{blockIdx.x} * kTile + round * kThreads + threadIdx.x;
    const bool set = i < call.n && IsSet<Word>(call, i);
    const unsigned of_warp = __ballot_sync(~0u, set);
    __syncthreads();  // The last round's have been read.
    if (lane == 0) of_warps[warp] = __popc(of_warp);
    __syncthreads();
    int64_t at = base + __popc(of_warp & ((1u << lane) - 1));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) at += of_warps[w];
      base += of_warps[w];
    }
    if (!set) continue;
    int64_t rest = i;
    for (int d = call.rank - 1; d >= 0; --d) {
      const int64_t outer = rest / call.dims[d];
      out[at * call.rank + d] = rest - outer * call.dims[d];
      rest = outer;
    }
  }
}

}  // namespace

int64_t WhereCounts(int64_t n) { return Tiles(n) + 1 + ScanOf(n).totals(); }

cudaError_t LaunchCount(const WhereCall& call, uint64_t* counts, int64_t* total,
                        cudaStream_t stream) {
  const int64_t tiles = Tiles(call.n);
  cudaError_t error = VisitSize(call.size / call.words, [&](auto tag) -> cudaError_t {
    using Word = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<Word>) {
      return Launch(&Count<Word>, static_cast<unsigned>(tiles), kThreads, stream, call, counts);
    }
    return cudaErrorNotSupported;
  });
  if (error == cudaSuccess) {
    error = LaunchScan(ScanOp::kSum, Number::kInt64, counts, counts, ScanOf(call.n),
                       counts + tiles + 1, stream);
  }
  if (error != cudaSuccess) return error;
  return cudaMemcpyAsync(total, counts + tiles, sizeof(*total), cudaMemcpyDeviceToDevice, stream);
}

cudaError_t LaunchPlaces(const WhereCall& call, const uint64_t* counts, int64_t* out,
                         cudaStream_t stream) {
  return VisitSize(call.size / call.words, [&](auto tag) -> cudaError_t {
    using Word = typename decltype(tag)::Type;
    if constexpr (std::is_integral_v<Word>) {
      return Launch(&Places<Word>, static_cast<unsigned>(Tiles(call.n)), kThreads, stream, call,
                    counts, out);
    }
    return cudaErrorNotSupported;
  });
}

}  // namespace troupe::cuda
