/// The kernels of reductions, over anything that is reduced: a Reducer has
///
///     using Acc = ...;                 // what is joined; trivially copyable, up to 16 bytes
///     static constexpr int kPack;      // elements read at once where the plan allows it
///     Acc Identity() const;
///     Acc Join(Acc a, Acc b) const;    // in any order of elements
///     auto Load<kN>(int64_t at) const; // elements [at, at + kN); aligned if kN > 1
///     Acc Of(loaded, int k, int64_t r, int64_t index) const;
///                                      // element k of them, the r-th of result `index`
///     void Store<kN>(int64_t index, const Acc (&accs)[kN]) const;  // results [index, index + kN)
///
/// One that has `Known(int64_t index)` gets what that returns instead of the index: a thread asks
/// once for all elements of a result. One that has `Share(Acc (&accs)[kN])` says by it what all
/// accumulators of a thread have in common, after as many elements of each: the compiler keeps that
/// once.
///
/// Launch shapes are those of `ReducePass`. Each thread joins four packs, each of them by itself,
/// before it joins them to its accumulator: loads are under way together, and rounding errors grow
/// with a sixteenth of the elements of a thread. Threads are joined pairwise. Nothing depends on
/// the order in which blocks run.
#ifndef TROUPE_KERNELS_CUDA_REDUCE_CUH_
#define TROUPE_KERNELS_CUDA_REDUCE_CUH_

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/reduce_plan.h"

namespace troupe::cuda {

/// Reduces what a pass has left.
template <typename R>
struct Again {
  using Acc = typename R::Acc;
  static constexpr int kPack = 1;

  __device__ Acc Identity() const { return reducer.Identity(); }
  __device__ Acc Join(Acc a, Acc b) const { return reducer.Join(a, b); }
  template <int kN>
  __device__ Packed<Acc, kN> Load(int64_t at) const {
    return LoadPacked<kN>(in, at);
  }
  template <int kN>
  __device__ Acc Of(const Packed<Acc, kN>& loaded, int k, int64_t, int64_t) const {
    return loaded.values[k];
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    reducer.Store(index, accs);
  }

  R reducer;
  const Acc* in;
};

/// Elements from one array, joined by `Fn`.
template <typename T, typename Fn, typename Out = T>
struct ArrayReducer {
  using Acc = typename Fn::Acc;
  static constexpr int kPack = ReducePack(sizeof(T), sizeof(Acc));

  __device__ Acc Identity() const { return Fn::Identity(); }
  __device__ Acc Join(Acc a, Acc b) const { return Fn::Join(a, b); }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(in, at);
  }
  template <int kN>
  __device__ Acc Of(const Packed<T, kN>& loaded, int k, int64_t, int64_t) const {
    return Fn::Of(loaded.values[k]);
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    Packed<Out, kN> results;
    for (int k = 0; k < kN; ++k) results.values[k] = static_cast<Out>(Fn::Finish(accs[k], divisor));
    StorePacked(results, out, index);
  }

  const T* in;
  Out* out;
  int64_t divisor;
};

/// What a reducer is told of a result.
template <typename R>
__device__ auto KnownOf(const R& reducer, int64_t index) {
  if constexpr (requires { reducer.Known(index); }) {
    return reducer.Known(index);
  } else {
    return index;
  }
}

template <typename R, int kN>
__device__ void ShareIfAny(const R& reducer, typename R::Acc (&accs)[kN]) {
  if constexpr (requires { reducer.Share(accs); }) reducer.Share(accs);
}

/// The elements of a pack, joined pairwise.
template <int kPack, typename R, typename Loaded, typename Known>
__device__ typename R::Acc JoinPack(const R& reducer, const Loaded& loaded, int64_t r,
                                    Known known) {
  typename R::Acc values[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) values[k] = reducer.Of(loaded, k, r + k, known);
#pragma unroll
  for (int width = kPack / 2; width > 0; width /= 2) {
#pragma unroll
    for (int k = 0; k < width; ++k) values[k] = reducer.Join(values[k], values[k + width]);
  }
  return values[0];
}

/// `partial`: where accumulators go; nullptr: results are stored.
template <int kPack, typename R>
__global__ void __launch_bounds__(kThreads)
    ReduceRows(R reducer, ReducePass pass, typename R::Acc* partial) {
  using Acc = typename R::Acc;
  __shared__ Acc of_warps[kWarps];
  const int group = pass.group, lane = threadIdx.x % group, per_block = kThreads / group;
  const int64_t items = pass.outer * pass.splits, units = pass.n / kPack;
  const int64_t step = int64_t{gridDim.x} * per_block;
  for (int64_t first = int64_t{blockIdx.x} * per_block; first < items; first += step) {
    const int64_t item = first + threadIdx.x / group;
    const int64_t row = pass.splits == 1 ? item : item / pass.splits;
    const int64_t piece = item - row * pass.splits;
    Acc acc = reducer.Identity();
    if (item < items) {
      const auto known = KnownOf(reducer, row);
      const int64_t start = row * pass.n;
      const int64_t end = piece + 1 < pass.splits ? (piece + 1) * pass.piece : units;
      int64_t u = piece * pass.piece + lane;
      for (; u + 3 * group < end; u += 4 * group) {
        const auto a = reducer.template Load<kPack>(start + u * kPack);
        const auto b = reducer.template Load<kPack>(start + (u + group) * kPack);
        const auto c = reducer.template Load<kPack>(start + (u + 2 * group) * kPack);
        const auto d = reducer.template Load<kPack>(start + (u + 3 * group) * kPack);
        const Acc left = reducer.Join(JoinPack<kPack>(reducer, a, u * kPack, known),
                                      JoinPack<kPack>(reducer, b, (u + group) * kPack, known));
        const Acc right = reducer.Join(JoinPack<kPack>(reducer, c, (u + 2 * group) * kPack, known),
                                       JoinPack<kPack>(reducer, d, (u + 3 * group) * kPack, known));
        acc = reducer.Join(acc, reducer.Join(left, right));
      }
      for (; u < end; u += group) {
        const auto loaded = reducer.template Load<kPack>(start + u * kPack);
        acc = reducer.Join(acc, JoinPack<kPack>(reducer, loaded, u * kPack, known));
      }
      if (piece + 1 == pass.splits) {  // Elements that make no pack.
        for (int64_t i = units * kPack + lane; i < pass.n; i += group) {
          const auto loaded = reducer.template Load<1>(start + i);
          acc = reducer.Join(acc, reducer.Of(loaded, 0, i, known));
        }
      }
    }
    acc = JoinGroup(acc, group, of_warps, [&](Acc a, Acc b) { return reducer.Join(a, b); });
    if (lane != 0 || item >= items) continue;
    if (partial != nullptr) {
      partial[item] = acc;
    } else {
      const Acc accs[1] = {acc};
      reducer.Store(row, accs);
    }
  }
}

/// The same of columns. At least three blocks have registers on a processor: with fewer threads
/// latencies show.
template <int kPack, typename R>
__global__ void __launch_bounds__(kThreads, 3)
    ReduceColumns(R reducer, ReducePass pass, typename R::Acc* partial) {
  using Acc = typename R::Acc;
  __shared__ Acc shared[kThreads * kPack];
  const int width = pass.width, height = pass.height;
  const int x = threadIdx.x % width, y = threadIdx.x / width;
  int fold = 1;  // Half of the lines, as a power of two.
  while (fold * 2 < height) fold *= 2;
  const int64_t columns = pass.inner / kPack, limit = pass.flat ? pass.outer * columns : columns;
  const int64_t items = (pass.flat ? 1 : pass.outer) * pass.tiles * pass.splits;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t piece = item % pass.splits, tiles = item / pass.splits;
    const int64_t unit = tiles % pass.tiles * width + x;
    const int64_t outer = pass.flat ? unit / columns : tiles / pass.tiles;
    const int64_t column = pass.flat ? unit - outer * columns : unit;
    const int64_t index = outer * pass.inner + column * kPack;
    const bool active = y < height && unit < limit;
    Acc accs[kPack];
#pragma unroll
    for (int k = 0; k < kPack; ++k) accs[k] = reducer.Identity();
    if (active) {
      decltype(KnownOf(reducer, index)) known[kPack];
#pragma unroll
      for (int k = 0; k < kPack; ++k) known[k] = KnownOf(reducer, index + k);
      const int64_t start = outer * pass.n * pass.inner + column * kPack;
      const int64_t end = piece + 1 < pass.splits ? (piece + 1) * pass.piece : pass.n;
      int64_t r = piece * pass.piece + y;
      for (; r + 3 * height < end; r += 4 * height) {
        const auto a = reducer.template Load<kPack>(start + r * pass.inner);
        const auto b = reducer.template Load<kPack>(start + (r + height) * pass.inner);
        const auto c = reducer.template Load<kPack>(start + (r + 2 * height) * pass.inner);
        const auto d = reducer.template Load<kPack>(start + (r + 3 * height) * pass.inner);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const Acc left =
              reducer.Join(reducer.Of(a, k, r, known[k]), reducer.Of(b, k, r + height, known[k]));
          const Acc right = reducer.Join(reducer.Of(c, k, r + 2 * height, known[k]),
                                         reducer.Of(d, k, r + 3 * height, known[k]));
          accs[k] = reducer.Join(accs[k], reducer.Join(left, right));
        }
        ShareIfAny(reducer, accs);
      }
      for (; r < end; r += height) {
        const auto loaded = reducer.template Load<kPack>(start + r * pass.inner);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          accs[k] = reducer.Join(accs[k], reducer.Of(loaded, k, r, known[k]));
        }
        ShareIfAny(reducer, accs);
      }
    }
    if (height > 1) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kPack; ++k) shared[k * kThreads + threadIdx.x] = accs[k];
      for (int lines = fold; lines > 0; lines /= 2) {
        __syncthreads();
        if (y >= lines || y + lines >= height) continue;
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          Acc& at = shared[k * kThreads + threadIdx.x];
          at = reducer.Join(at, shared[k * kThreads + threadIdx.x + lines * width]);
        }
      }
#pragma unroll
      for (int k = 0; k < kPack; ++k) accs[k] = shared[k * kThreads + threadIdx.x];
    }
    if (!active || y > 0) continue;
    if (partial != nullptr) {
      const int64_t to = (outer * pass.splits + piece) * pass.inner + column * kPack;
#pragma unroll
      for (int k = 0; k < kPack; ++k) partial[to + k] = accs[k];
    } else {
      reducer.Store(index, accs);
    }
  }
}

template <int kPack, typename R>
cudaError_t RunPass(const R& reducer, const ReducePass& pass, typename R::Acc* partial,
                    cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(pass.blocks);
  return pass.rows()
             ? Launch(&ReduceRows<kPack, R>, blocks, kThreads, stream, reducer, pass, partial)
             : Launch(&ReduceColumns<kPack, R>, blocks, kThreads, stream, reducer, pass, partial);
}

/// Enqueues a plan. `scratch` has plan.scratch accumulators.
template <typename R>
cudaError_t RunReduce(const R& reducer, const ReducePlan& plan, void* scratch,
                      cudaStream_t stream) {
  using Acc = typename R::Acc;
  auto* to = static_cast<Acc*>(scratch);
  const Acc* from = nullptr;
  for (size_t p = 0; p < plan.passes.size(); ++p) {
    const ReducePass& pass = plan.passes[p];
    Acc* const partial = p + 1 < plan.passes.size() ? to : nullptr;
    cudaError_t error;
    if (p > 0) {
      error = RunPass<1>(Again<R>{reducer, from}, pass, partial, stream);
    } else if (pass.pack == 1) {
      error = RunPass<1>(reducer, pass, partial, stream);
    } else {
      error = RunPass<R::kPack>(reducer, pass, partial, stream);
    }
    if (error != cudaSuccess) return error;
    from = to;
    to += pass.results();
  }
  return cudaSuccess;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REDUCE_CUH_
