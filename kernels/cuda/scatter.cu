// Slices put or added by index. Whatever rows name the same slice, the result has the same bits
// every time: the last row counts, or rows are added in order.
#include "kernels/cuda/division.cuh"
#include "kernels/cuda/indexing.cuh"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) Slots(NdIndices nd, int64_t* slots, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x; r < nd.rows; r += step) {
    slots[r] = SlotOf(nd, r, check);
  }
}

__global__ void __launch_bounds__(kThreads)
    CheckOrder(const int64_t* slots, int64_t rows, LateCheck check) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = 1 + int64_t{blockIdx.x} * kThreads + threadIdx.x; r < rows; r += step) {
    if (slots[r] <= slots[r - 1]) ReportLate(check, r, slots[r] == slots[r - 1]);
  }
}

/// The last row of each slot.
__global__ void __launch_bounds__(kThreads) Own(const int64_t* slots, int64_t rows, int* owners) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x; r < rows; r += step) {
    if (slots[r] >= 0) atomicMax(&owners[slots[r]], static_cast<int>(r));
  }
}

template <typename T, bool kSmall>
__global__ void __launch_bounds__(kThreads)
    Put(const int64_t* slots, int64_t n, Divisor inner, int64_t width, const T* updates,
        bool scalar, T* out, const int* owners) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t row = inner.template Divide<kSmall>(i, &column), slot = slots[row];
    if (slot < 0 || (owners != nullptr && owners[slot] != row)) continue;
    out[slot * width + column] = updates[scalar ? 0 : i];
  }
}

/// Up to so many rows, each looks for others of its slot; more are sorted.
constexpr int64_t kFewRows = 512;

/// For rows in their order: the first of a slot adds all of them.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddFew(const int64_t* slots, int64_t rows, Divisor inner, int64_t width, const T* updates,
           T* out) {
  const int64_t n = rows * width, step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t row = inner.template Divide<false>(i, &column), slot = slots[row];
    bool first = slot >= 0;
    for (int64_t r = 0; first && r < row; ++r) first = slots[r] != slot;
    if (!first) continue;
    T* const to = &out[slot * width + column];
    auto sum = static_cast<WideType<T>>(*to);
    for (int64_t r = row; r < rows; ++r) {
      if (slots[r] == slot) sum += static_cast<WideType<T>>(updates[r * width + column]);
    }
    *to = static_cast<T>(sum);
  }
}

/// For slots in order: `order[k]` is the row of slots[k].
template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddSorted(const int64_t* slots, const int64_t* order, int64_t rows, Divisor inner,
              int64_t width, const T* updates, T* out) {
  const int64_t n = rows * width, step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    int64_t column;
    const int64_t k = inner.template Divide<false>(i, &column), slot = slots[k];
    if (slot < 0 || (k > 0 && slots[k - 1] == slot)) continue;
    T* const to = &out[slot * width + column];
    auto sum = static_cast<WideType<T>>(*to);
    for (int64_t at = k; at < rows && slots[at] == slot; ++at) {
      sum += static_cast<WideType<T>>(updates[order[at] * width + column]);
    }
    *to = static_cast<T>(sum);
  }
}

// --- a stable sort by slot, four bits at a time
// ---------------------------------------------------

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

template <typename T>
cudaError_t Add(int64_t* slots, int64_t rows, int64_t width, const T* updates, T* out,
                int64_t slices, int64_t* scratch, cudaStream_t stream) {
  if (rows <= kFewRows) {
    return Launch(&AddFew<T>, Blocks(rows * width), kThreads, stream, slots, rows, Divisor(width),
                  width, updates, out);
  }
  Sorted sorted;
  const cudaError_t error = Sort(slots, rows, slices, scratch, &sorted, stream);
  if (error != cudaSuccess) return error;
  return Launch(&AddSorted<T>, Blocks(rows * width), kThreads, stream, sorted.keys, sorted.values,
                rows, Divisor(width), width, updates, out);
}

}  // namespace

cudaError_t LaunchSlots(const NdIndices& nd, int64_t* slots, const LateCheck& check,
                        cudaStream_t stream) {
  return Launch(&Slots, Blocks(nd.rows), kThreads, stream, nd, slots, check);
}

cudaError_t LaunchCheckOrder(const int64_t* slots, int64_t rows, const LateCheck& check,
                             cudaStream_t stream) {
  if (rows < 2) return cudaSuccess;
  return Launch(&CheckOrder, Blocks(rows), kThreads, stream, slots, rows, check);
}

cudaError_t LaunchPut(int64_t element, const int64_t* slots, int64_t rows, int64_t inner,
                      const void* updates, bool scalar, void* out, int64_t slices, int* owners,
                      cudaStream_t stream) {
  if (owners != nullptr) {
    cudaError_t error =
        cudaMemsetAsync(owners, 0xff, static_cast<size_t>(slices) * sizeof(int), stream);
    if (error != cudaSuccess) return error;
    error = Launch(&Own, Blocks(rows), kThreads, stream, slots, rows, owners);
    if (error != cudaSuccess) return error;
  }
  const int64_t unit = scalar ? element : Unit().Add(inner * element).Add(updates).Add(out).bytes();
  const int64_t width = inner * element / unit, n = rows * width;
  return VisitSize(unit, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(IsSmall(n) ? &Put<T, true> : &Put<T, false>, Blocks(n), kThreads, stream, slots,
                  n, Divisor(width), width, static_cast<const T*>(updates), scalar,
                  static_cast<T*>(out), owners);
  });
}

int64_t AddScratch(int64_t rows) {
  if (rows <= kFewRows) return 0;
  return (3 * rows + kDigits * SortBlocks(rows)) * static_cast<int64_t>(sizeof(int64_t));
}

cudaError_t LaunchAdd(Number type, int64_t* slots, int64_t rows, int64_t inner, const void* updates,
                      void* out, int64_t slices, void* scratch, cudaStream_t stream) {
  if (type == Number::kComplex64 || type == Number::kComplex128) {
    type = type == Number::kComplex64 ? Number::kFloat : Number::kDouble;
    inner *= 2;
  }
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Add(slots, rows, inner, static_cast<const T*>(updates), static_cast<T*>(out), slices,
               static_cast<int64_t*>(scratch), stream);
  };
  // Sums of integers wrap around, with a sign and without.
  switch (type) {
    case Number::kInt8:
    case Number::kUint8:
      return run(TypeTag<uint8_t>());
    case Number::kInt16:
    case Number::kUint16:
      return run(TypeTag<uint16_t>());
    case Number::kInt32:
    case Number::kUint32:
      return run(TypeTag<uint32_t>());
    case Number::kInt64:
    case Number::kUint64:
      return run(TypeTag<uint64_t>());
    default:
      return VisitFloating(type, run);
  }
}

}  // namespace troupe::cuda
