// Counts of integers are the same whatever order they are added in, so that bins are counted with
// atomics: few bins by each block for itself in shared memory first, more in global memory.
#include "kernels/cuda/bincount.h"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

/// Bins that a block has in shared memory.
constexpr int64_t kBlockBins = 4096;
/// Blocks that count for themselves: each adds its bins to all in the end.
constexpr unsigned kBlocks = 512;

/// Adds values: find(i, &bin, &value) says which; false: none.
template <typename Find>
__global__ void __launch_bounds__(kThreads)
    CountInBlocks(int64_t n, int bins, unsigned* counts, Find find) {
  __shared__ unsigned shared[kBlockBins];
  for (int b = threadIdx.x; b < bins; b += kThreads) shared[b] = 0;
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t bin;
    unsigned value;
    if (find(i, &bin, &value)) atomicAdd(&shared[bin], value);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += kThreads) {
    if (shared[b] != 0) atomicAdd(counts + b, shared[b]);
  }
}

template <typename Find>
struct CountGlobally {
  __device__ void operator()(int64_t i) const {
    int64_t bin;
    unsigned value;
    if (find(i, &bin, &value)) atomicAdd(counts + bin, value);
  }
  unsigned* counts;
  Find find;
};

template <typename Find>
cudaError_t Count(int64_t n, int64_t bins, int32_t* counts, Find find, cudaStream_t stream) {
  auto* const to = reinterpret_cast<unsigned*>(counts);
  const cudaError_t error = cudaMemsetAsync(to, 0, static_cast<size_t>(bins) * sizeof(*to), stream);
  if (error != cudaSuccess || n == 0) return error;
  if (bins > kBlockBins) return ForEach(n, stream, CountGlobally<Find>{to, find});
  return Launch(&CountInBlocks<Find>, std::min(Blocks(n), kBlocks), kThreads, stream, n, bins, to,
                find);
}

/// The number of the bin of number i among those of all rows; -1: it is left out.
__device__ int64_t BinOf(const BincountCall& call, int64_t i, const LateCheck& check) {
  const int64_t number = IndexAt(call.numbers, i);
  if (number < 0) ReportLate(check, i, number);
  if (number < 0 || number >= call.size) return -1;
  return call.rows == 1 ? number : i / call.length * call.size + number;
}

struct FindBin {
  __device__ bool operator()(int64_t i, int64_t* bin, unsigned* value) const {
    *bin = BinOf(call, i, check);
    *value = weights == nullptr ? 1u : static_cast<unsigned>(weights[i]);
    return *bin >= 0;
  }
  BincountCall call;
  const int32_t* weights;
  LateCheck check;
};

struct SetBin {
  __device__ void operator()(int64_t i) const {
    const int64_t bin = BinOf(call, i, check);
    if (bin >= 0) bins[bin] = 1;
  }
  BincountCall call;
  int32_t* bins;
  LateCheck check;
};

struct PutBin {
  __device__ void operator()(int64_t i) const {
    const int64_t bin = BinOf(call, i, check);
    bins[i] = bin < 0 ? call.rows * call.size : bin;
  }
  BincountCall call;
  int64_t* bins;
  LateCheck check;
};

template <typename T>
struct FindInterval {
  __device__ bool operator()(int64_t i, int64_t* bin, unsigned* value) const {
    const double x = static_cast<double>(static_cast<const T*>(call.values)[i]);
    if (isnan(x)) {
      ReportLate(check, i);
      return false;
    }
    const double at = ((x < call.low ? call.low : x) - call.low) / call.width;
    const double last = static_cast<double>(call.bins - 1);
    *bin = static_cast<int64_t>(at < last ? at : last);
    *value = 1;
    return true;
  }
  IntervalCall call;
  LateCheck check;
};

}  // namespace

cudaError_t LaunchCountBins(const BincountCall& call, bool binary, const int32_t* weights,
                            int32_t* bins, LateCheck check, cudaStream_t stream) {
  const int64_t n = call.rows * call.length, all = call.rows * call.size;
  if (!binary) return Count(n, all, bins, FindBin{call, weights, check}, stream);
  const cudaError_t error =
      cudaMemsetAsync(bins, 0, static_cast<size_t>(all) * sizeof(*bins), stream);
  return error == cudaSuccess ? ForEach(n, stream, SetBin{call, bins, check}) : error;
}

cudaError_t LaunchBinOf(const BincountCall& call, int64_t* bins, LateCheck check,
                        cudaStream_t stream) {
  return ForEach(call.rows * call.length, stream, PutBin{call, bins, check});
}

cudaError_t LaunchCountIntervals(const IntervalCall& call, int32_t* counts, LateCheck check,
                                 cudaStream_t stream) {
  return call.type == Number::kFloat
             ? Count(call.n, call.bins, counts, FindInterval<float>{call, check}, stream)
             : Count(call.n, call.bins, counts, FindInterval<double>{call, check}, stream);
}

}  // namespace troupe::cuda
