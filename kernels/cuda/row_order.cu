// A stable sort of rows by slot, four bits at a time.
#include <utility>

#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/row_order.cuh"

namespace troupe::cuda {
namespace {

/// Up to so many rows each looks for others of its slot.
constexpr int64_t kFewRows = 512;

constexpr int kBits = 4, kDigits = 1 << kBits;
constexpr int kPerThread = 8, kPerBlock = kThreads * kPerThread;

__device__ int DigitOf(int64_t slot, int shift) {
  // Negative ones come last, among themselves in order.
  return static_cast<int>(static_cast<uint64_t>(slot) >> shift) & (kDigits - 1);
}

/// Of each thread's keys, how many have which digit; then sums of those before, by digit, then by
/// thread. Returns the block's number of keys of digit `threadIdx.x` in `totals`.
__device__ void CountDigits(const int64_t* keys, int64_t n, int shift, uint16_t (*counts)[kThreads],
                            int* totals) {
  const int t = static_cast<int>(threadIdx.x);
  for (int d = 0; d < kDigits; ++d) counts[d][t] = 0;
  const int64_t first = int64_t{blockIdx.x} * kPerBlock + t * kPerThread;
  for (int64_t i = first; i < first + kPerThread && i < n; ++i)
    ++counts[DigitOf(keys[i], shift)][t];
  __syncthreads();
  // A thread of each of 16 for each digit adds up 16 others, then one for each digit the sums.
  __shared__ int sums[kDigits][16];
  const int digit = t / 16, part = t % 16;
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += counts[digit][part * 16 + k];
  sums[digit][part] = sum;
  __syncthreads();
  int before = 0;
  for (int k = 0; k < part; ++k) before += sums[digit][k];
  if (part == 15) totals[digit] = before + sum;
  for (int k = 0; k < 16; ++k) {
    const int count = counts[digit][part * 16 + k];
    counts[digit][part * 16 + k] = static_cast<uint16_t>(before);
    before += count;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    CountKeys(const int64_t* keys, int64_t n, int shift, int64_t* totals) {
  __shared__ uint16_t counts[kDigits][kThreads];
  __shared__ int own[kDigits];
  CountDigits(keys, n, shift, counts, own);
  if (threadIdx.x < kDigits)
    totals[int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

/// Sums of what comes before, in place, by one block.
__global__ void __launch_bounds__(kThreads) SumBefore(int64_t* totals, int64_t n) {
  __shared__ int64_t sums[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t part = (n + kThreads - 1) / kThreads;
  const int64_t first = part * t < n ? part * t : n, last = first + part < n ? first + part : n;
  int64_t sum = 0;
  for (int64_t i = first; i < last; ++i) sum += totals[i];
  sums[t] = sum;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const int64_t other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  int64_t before = sums[t] - sum;
  for (int64_t i = first; i < last; ++i) {
    const int64_t own = totals[i];
    totals[i] = before;
    before += own;
  }
}

/// `values` may be nullptr: the positions.
__global__ void __launch_bounds__(kThreads)
    Spread(const int64_t* keys, const int64_t* values, int64_t n, int shift, const int64_t* before,
           int64_t* sorted_keys, int64_t* sorted_values) {
  __shared__ uint16_t counts[kDigits][kThreads];
  __shared__ int own[kDigits];
  CountDigits(keys, n, shift, counts, own);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t first = int64_t{blockIdx.x} * kPerBlock + t * kPerThread;
  for (int64_t i = first; i < first + kPerThread && i < n; ++i) {
    const int digit = DigitOf(keys[i], shift);
    const int64_t to = before[int64_t{digit} * gridDim.x + blockIdx.x] + counts[digit][t]++;
    sorted_keys[to] = keys[i];
    sorted_values[to] = values == nullptr ? i : values[i];
  }
}

int64_t SortBlocks(int64_t rows) { return (rows + kPerBlock - 1) / kPerBlock; }

/// Where the sort leaves its results.
struct Sorted {
  int64_t *keys, *values;
};

cudaError_t Sort(int64_t* keys, int64_t n, int64_t limit, int64_t* scratch, Sorted* sorted,
                 cudaStream_t stream) {
  int64_t* const totals = scratch + 3 * n;
  const auto blocks = static_cast<unsigned>(SortBlocks(n));
  int64_t *from = keys, *from_values = nullptr;
  int64_t *to = scratch, *to_values = scratch + n, *spare_values = scratch + 2 * n;
  // One bit more than slots have: -1 has it, too.
  for (int shift = 0; shift == 0 || (limit >> (shift - 1)) > 0; shift += kBits) {
    if (shift >= 64) break;
    cudaError_t error = Launch(&CountKeys, blocks, kThreads, stream, from, n, shift, totals);
    if (error != cudaSuccess) return error;
    error = Launch(&SumBefore, 1, kThreads, stream, totals, int64_t{kDigits} * blocks);
    if (error != cudaSuccess) return error;
    error = Launch(&Spread, blocks, kThreads, stream, from, from_values, n, shift, totals, to,
                   to_values);
    if (error != cudaSuccess) return error;
    std::swap(from, to);
    from_values = to_values;
    std::swap(to_values, spare_values);
  }
  *sorted = {from, from_values};
  return cudaSuccess;
}

}  // namespace

int64_t OrderScratch(int64_t rows) {
  if (rows <= kFewRows) return 0;
  return (4 * rows + kDigits * SortBlocks(rows)) * static_cast<int64_t>(sizeof(int64_t));
}

cudaError_t OrderSlots(int64_t* slots, int64_t rows, int64_t slices, void* scratch, RowOrder* order,
                       cudaStream_t stream) {
  *order = {.rows = rows, .slots = slots};
  if (rows <= kFewRows) return cudaSuccess;
  Sorted sorted{};
  const cudaError_t error =
      Sort(slots, rows, slices, static_cast<int64_t*>(scratch), &sorted, stream);
  order->slots = sorted.keys;
  order->sorted = sorted.values;
  return error;
}

cudaError_t OrderIndices(Indices indices, int64_t rows, int64_t limit, const LateCheck& check,
                         void* scratch, RowOrder* order, cudaStream_t stream) {
  *order = {.rows = rows, .indices = indices, .limit = limit, .check = check};
  if (rows <= kFewRows) return cudaSuccess;
  NdIndices nd{.indices = indices, .rows = rows, .depth = 1, .inner = 1, .ignores_bad = false};
  nd.sizes[0] = limit;
  auto* const slots = static_cast<int64_t*>(scratch);
  const cudaError_t error = LaunchSlots(nd, slots, check, stream);
  if (error != cudaSuccess) return error;
  return OrderSlots(slots, rows, limit, slots + rows, order, stream);
}

}  // namespace troupe::cuda
