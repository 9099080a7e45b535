// Picking boxes: one block takes as many candidates at a time as it has threads, the best ones
// first. Each thread compares its candidate with all that have been picked; then those that are
// left decide among themselves, one after the other. Compiled without fused operations, so that the
// boxes are those that the CPU picks.
#include "kernels/cuda/non_max_suppression.h"

#include "kernels/cuda/parallel.cuh"
#include "kernels/image/box_overlap.h"

namespace troupe::cuda {
namespace {

struct ScoreKey {
  const float* scores;
  float threshold;
  uint32_t* keys;
  __device__ void operator()(int64_t i) const {
    const float score = scores[i];
    if (!(score > threshold)) {
      keys[i] = kLeftOut;
      return;
    }
    const unsigned bits = __float_as_uint(score + 0.0f);  // Both zeros are equal.
    keys[i] = (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
  }
};

__global__ void __launch_bounds__(kThreads) Suppress(SuppressCall c) {
  __shared__ Corners others[kThreads];
  __shared__ int32_t boxes[kThreads];
  __shared__ bool alive[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int64_t count = 0;
  for (int64_t first = 0; first < c.n && count < c.max_count; first += kThreads) {
    if (c.keys[first] == kLeftOut) break;
    const bool is_candidate = first + thread < c.n && c.keys[first + thread] != kLeftOut;
    const int64_t box = is_candidate ? c.places[first + thread] : 0;
    const Corners own = Corners::Of(c.boxes + 4 * box);
    bool left_out = !is_candidate;
    for (int64_t tile = 0; tile < count; tile += kThreads) {
      const auto size = static_cast<int>(count - tile < kThreads ? count - tile : kThreads);
      __syncthreads();  // The last ones have been read.
      if (thread < size)
        others[thread] = Corners::Of(c.boxes + 4 * int64_t{c.picked[tile + thread]});
      __syncthreads();
      for (int k = 0; k < size && !left_out; ++k) {
        left_out = Corners::Overlap(own, others[k]) > c.overlap_threshold;
      }
    }
    __syncthreads();
    others[thread] = own;
    boxes[thread] = static_cast<int32_t>(box);
    alive[thread] = !left_out;
    __syncthreads();
    for (int k = 0; k < kThreads && count < c.max_count; ++k) {
      if (!alive[k]) continue;
      if (thread == 0) c.picked[count] = boxes[k];
      ++count;
      if (thread > k && alive[thread] && Corners::Overlap(own, others[k]) > c.overlap_threshold) {
        alive[thread] = false;
      }
      __syncthreads();
    }
    __syncthreads();
  }
  for (int64_t i = count + thread; i < c.max_count; i += kThreads) c.picked[i] = 0;
  if (thread != 0) return;
  if (c.count != nullptr) *c.count = count;
  if (c.count32 != nullptr) *c.count32 = static_cast<int32_t>(count);
}

}  // namespace

cudaError_t LaunchScoreKeys(const float* scores, int64_t n, float threshold, uint32_t* keys,
                            cudaStream_t stream) {
  return ForEach(n, stream, ScoreKey{scores, threshold, keys});
}

cudaError_t LaunchSuppress(const SuppressCall& call, cudaStream_t stream) {
  return Launch(&Suppress, 1, kThreads, stream, call);
}

}  // namespace troupe::cuda
