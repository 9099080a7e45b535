// Lines of neighbours (inner is 1): a block for each piece of a line, 1024 elements at a time.
// Other lines: a thread for each piece of one; its neighbours read the neighbouring lines.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/scan.h"

namespace troupe::cuda {
namespace {

constexpr int kPerThread = 4;
constexpr int64_t kTile = kThreads * kPerThread;
/// Shorter lines have a thread each.
constexpr int64_t kShortLine = 32;
/// Enough of each to fill any card.
constexpr int64_t kBlocks = 1024, kColumns = 64 << 10;
/// Bounds of pieces. What they cost is a second look at everything.
constexpr int64_t kShortestRow = 4 * kTile, kShortestColumn = 64, kMostPieces = 1024;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
bool IsRows(const ScanShape& shape) { return shape.inner == 1 && shape.n > kShortLine; }

/// What a line begins with, and `sum` with one number more.
template <ScanOp kOp, typename W>
__device__ W First() {
  if constexpr (kOp == ScanOp::kLogSumExp) {
    return -kInfinity<W>;
  } else {
    return W(kOp == ScanOp::kProduct ? 1 : 0);
  }
}
template <ScanOp kOp, typename W>
__device__ W Join(W sum, W x) {
  if constexpr (kOp == ScanOp::kLogSumExp) {
    if (isnan(x)) return sum;
    const W low = x < sum ? x : sum, high = x < sum ? sum : x;
    return isinf(high) ? high : high + log1p(exp(low - high));
  } else {
    return kOp == ScanOp::kProduct ? sum * x : sum + x;
  }
}

template <ScanOp kOp, typename T>
__global__ void __launch_bounds__(kThreads)
    ScanRows(const T* in, T* out, ScanShape shape, const WideType<T>* carries,
             WideType<T>* totals) {
  using W = WideType<T>;
  __shared__ W of_warps[kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t item = blockIdx.x; item < shape.outer * shape.pieces; item += gridDim.x) {
    const int64_t row = item / shape.pieces, begin = (item - row * shape.pieces) * shape.piece;
    const int64_t end = begin + shape.piece < shape.n ? begin + shape.piece : shape.n;
    W total = carries != nullptr ? carries[item] : First<kOp, W>();
    for (int64_t tile = begin; tile < end; tile += kTile) {
      const int64_t first = tile + threadIdx.x * kPerThread;
      const auto place = [&](int k) {
        return row * shape.n + (shape.reverse ? shape.n - 1 - first - k : first + k);
      };
      W values[kPerThread], own = First<kOp, W>();
#pragma unroll
      for (int k = 0; k < kPerThread; ++k) {
        values[k] = first + k < end ? static_cast<W>(in[place(k)]) : First<kOp, W>();
        own = Join<kOp>(own, values[k]);
      }
      W through = own;  // With all lanes before.
      for (int delta = 1; delta < kWarp; delta *= 2) {
        const W before = ShuffleUp(through, delta);
        if (lane >= delta) through = Join<kOp>(before, through);
      }
      const W before_lane = ShuffleUp(through, 1);
      __syncthreads();  // The warps' totals of the last tile have been read.
      if (lane == kWarp - 1) of_warps[warp] = through;
      __syncthreads();
      W acc = total;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) acc = total;
        total = Join<kOp>(total, of_warps[w]);
      }
      if (lane > 0) acc = Join<kOp>(acc, before_lane);
      if (totals != nullptr) continue;
#pragma unroll
      for (int k = 0; k < kPerThread; ++k) {
        if (first + k >= end) break;
        const W with = Join<kOp>(acc, values[k]);
        out[place(k)] = static_cast<T>(shape.exclusive ? acc : with);
        acc = with;
      }
    }
    if (totals != nullptr && threadIdx.x == 0) totals[item] = total;
  }
}

template <ScanOp kOp, typename T>
__global__ void __launch_bounds__(kThreads)
    ScanColumns(const T* in, T* out, ScanShape shape, const WideType<T>* carries,
                WideType<T>* totals) {
  using W = WideType<T>;
  const int64_t items = shape.outer * shape.pieces * shape.inner;
  for (int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x; item < items;
       item += int64_t{gridDim.x} * kThreads) {
    const int64_t column = item % shape.inner, rest = item / shape.inner;
    const int64_t outer = rest / shape.pieces, begin = (rest - outer * shape.pieces) * shape.piece;
    const int64_t end = begin + shape.piece < shape.n ? begin + shape.piece : shape.n;
    const int64_t start = outer * shape.n * shape.inner + column;
    W acc = carries != nullptr ? carries[item] : First<kOp, W>();
#pragma unroll 4
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = start + (shape.reverse ? shape.n - 1 - i : i) * shape.inner;
      const W with = Join<kOp>(acc, static_cast<W>(in[at]));
      if (totals == nullptr) out[at] = static_cast<T>(shape.exclusive ? acc : with);
      acc = with;
    }
    if (totals != nullptr) totals[item] = acc;
  }
}

template <ScanOp kOp, typename T>
cudaError_t Pass(const void* in, void* out, const ScanShape& shape, const WideType<T>* carries,
                 WideType<T>* totals, cudaStream_t stream) {
  const auto* from = static_cast<const T*>(in);
  auto* const to = static_cast<T*>(out);
  if (IsRows(shape)) {
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(shape.outer * shape.pieces, INT32_MAX));
    return Launch(&ScanRows<kOp, T>, blocks, kThreads, stream, from, to, shape, carries, totals);
  }
  return Launch(&ScanColumns<kOp, T>, Blocks(shape.outer * shape.pieces * shape.inner), kThreads,
                stream, from, to, shape, carries, totals);
}

template <ScanOp kOp, typename T>
cudaError_t Run(const void* in, void* out, const ScanShape& shape, void* scratch,
                cudaStream_t stream) {
  using W = WideType<T>;
  if (shape.pieces == 1) return Pass<kOp, T>(in, out, shape, nullptr, nullptr, stream);
  auto* const totals = static_cast<W*>(scratch);
  cudaError_t error = Pass<kOp, T>(in, nullptr, shape, nullptr, totals, stream);
  if (error != cudaSuccess) return error;
  ScanShape of_totals{shape.outer, shape.pieces, shape.inner, /*exclusive=*/true};
  of_totals.piece = shape.pieces;
  error = Pass<kOp, W>(totals, totals, of_totals, nullptr, nullptr, stream);
  if (error != cudaSuccess) return error;
  return Pass<kOp, T>(in, out, shape, totals, nullptr, stream);
}

}  // namespace

ScanShape PlanScan(int64_t outer, int64_t n, int64_t inner) {
  ScanShape shape{outer, n, inner};
  const bool rows = IsRows(shape);
  const int64_t lines = outer * inner, shortest = rows ? kShortestRow : kShortestColumn;
  const int64_t wanted = CeilDiv(rows ? kBlocks : kColumns, std::max<int64_t>(lines, 1));
  shape.pieces = std::clamp<int64_t>(std::min(wanted, n / shortest), 1, kMostPieces);
  shape.piece = CeilDiv(n, shape.pieces);
  // Pieces begin at the same place of a pack as lines.
  if (shape.pieces > 1) shape.piece = CeilDiv(shape.piece, shortest) * shortest;
  shape.pieces = std::max<int64_t>(1, CeilDiv(n, std::max<int64_t>(shape.piece, 1)));
  return shape;
}

cudaError_t LaunchScan(ScanOp op, Number type, const void* in, void* out, const ScanShape& shape,
                       void* scratch, cudaStream_t stream) {
  if (op == ScanOp::kLogSumExp) {
    return VisitFloating(type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      return Run<ScanOp::kLogSumExp, T>(in, out, shape, scratch, stream);
    });
  }
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return op == ScanOp::kProduct ? Run<ScanOp::kProduct, T>(in, out, shape, scratch, stream)
                                  : Run<ScanOp::kSum, T>(in, out, shape, scratch, stream);
  };
  if (type == Number::kInt64) return run(TypeTag<uint64_t>());  // Wraps around.
  return VisitFloating(type, run);
}

}  // namespace troupe::cuda
