// A group of threads for each row (a block for long ones) reads it twice: for the largest element
// and the sum of exponentials, in one go (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018), then, out of a cache, to write.
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/softmax.h"

namespace troupe::cuda {
namespace {

/// The sum of exp(x - max).
template <typename W>
struct ExpSum {
  W max, sum;
};

/// exp(x - max), but 1 if both are minus infinity.
template <typename W>
__device__ W Term(W x, W max) {
  if (x == -kInfinity<W>) return max == -kInfinity<W> ? W(1) : W(0);
  return exp(x - max);
}
template <typename W>
__device__ ExpSum<W> Joined(ExpSum<W> a, ExpSum<W> b) {
  const W max = a.max > b.max ? a.max : b.max;
  return {max, a.sum * Term(a.max, max) + b.sum * Term(b.max, max)};
}

template <typename T, int kPack>
struct Row {
  const T* data;
  int64_t step;  // 1 if packs are read.

  __device__ Packed<T, kPack> Load(int64_t column) const {
    return LoadPacked<kPack>(data, kPack > 1 ? column : column * step);
  }
};

template <typename T, int kPack>
__device__ ExpSum<WideType<T>> SumRow(Row<T, kPack> row, int64_t begin, int64_t end, int64_t step,
                                      int group, ExpSum<WideType<T>>* of_warps) {
  using W = WideType<T>;
  ExpSum<W> acc{-kInfinity<W>, W(0)};
#pragma unroll 2
  for (int64_t c = begin; c < end; c += step) {
    const Packed<T, kPack> x = row.Load(c);
    W max = acc.max;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const W value = static_cast<W>(x.values[k]);
      max = value > max ? value : max;
    }
    W sum = acc.sum == W(0) ? W(0) : acc.sum * Term(acc.max, max);
#pragma unroll
    for (int k = 0; k < kPack; ++k) sum += Term(static_cast<W>(x.values[k]), max);
    acc = {max, sum};
  }
  return JoinGroup(acc, group, of_warps, [](ExpSum<W> a, ExpSum<W> b) { return Joined(a, b); });
}

/// Which rows a block has, and which columns of them a thread.
struct Groups {
  int group;
  int64_t rows, cols;

  template <int kPack>
  __device__ int64_t first_column() const {
    return int64_t{threadIdx.x} % group * kPack;
  }
  __device__ int64_t first_row() const { return int64_t{blockIdx.x} * (kThreads / group); }
  __device__ int64_t row_step() const { return int64_t{gridDim.x} * (kThreads / group); }
  /// All threads of a block stay together, also those past the last row.
  __device__ int64_t row(int64_t first) const { return first + threadIdx.x / group; }
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    Softmax(const T* in, T* out, Groups groups, bool log_of) {
  using W = WideType<T>;
  __shared__ ExpSum<W> of_warps[kWarps];
  const int64_t begin = groups.first_column<kPack>(), step = int64_t{groups.group} * kPack;
  for (int64_t r = groups.first_row(); r < groups.rows; r += groups.row_step()) {
    const int64_t row = groups.row(r), end = row < groups.rows ? groups.cols : 0;
    const Row<T, kPack> x{in + row * groups.cols, 1};
    const ExpSum<W> acc = SumRow<T, kPack>(x, begin, end, step, groups.group, of_warps);
    const W log_sum = log_of ? log(acc.sum) : W(0), scale = W(1) / acc.sum;
    for (int64_t c = begin; c < end; c += step) {
      Packed<T, kPack> values = x.Load(c);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const W shifted = static_cast<W>(values.values[k]) - acc.max;
        values.values[k] = static_cast<T>(log_of ? shifted - log_sum : exp(shifted) * scale);
      }
      StorePacked(values, out + row * groups.cols, c);
    }
  }
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    CrossEntropy(RowsOf logits, RowsOf labels, T* losses, T* gradients, Groups groups) {
  using W = WideType<T>;
  __shared__ ExpSum<W> of_warps[kWarps];
  __shared__ W sums[kWarps];
  const int64_t begin = groups.first_column<kPack>(), step = int64_t{groups.group} * kPack;
  for (int64_t r = groups.first_row(); r < groups.rows; r += groups.row_step()) {
    const int64_t row = groups.row(r), end = row < groups.rows ? groups.cols : 0;
    const Row<T, kPack> x{static_cast<const T*>(logits.data) + row * logits.row_stride,
                          logits.step};
    const Row<T, kPack> label{static_cast<const T*>(labels.data) + row * labels.row_stride,
                              labels.step};
    const ExpSum<W> acc = SumRow<T, kPack>(x, begin, end, step, groups.group, of_warps);
    const W log_sum = log(acc.sum), scale = W(1) / acc.sum;
    W loss(0);
    for (int64_t c = begin; c < end; c += step) {
      const Packed<T, kPack> values = x.Load(c), wanted = label.Load(c);
      Packed<T, kPack> gradient;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const W shifted = static_cast<W>(values.values[k]) - acc.max;
        const W p = static_cast<W>(wanted.values[k]);
        loss += p * (log_sum - shifted);
        gradient.values[k] = static_cast<T>(exp(shifted) * scale - p);
      }
      StorePacked(gradient, gradients + row * groups.cols, c);
    }
    loss = JoinGroup(loss, groups.group, sums, [](W a, W b) { return a + b; });
    if (begin == 0 && end > 0) losses[row] = static_cast<T>(loss);
  }
}

template <typename T, typename Label, int kPack>
__global__ void __launch_bounds__(kThreads)
    SparseCrossEntropy(const T* logits, const Label* labels, T* losses, T* gradients, Groups groups,
                       LateCheck check) {
  using W = WideType<T>;
  __shared__ ExpSum<W> of_warps[kWarps];
  const int64_t begin = groups.first_column<kPack>(), step = int64_t{groups.group} * kPack;
  for (int64_t r = groups.first_row(); r < groups.rows; r += groups.row_step()) {
    const int64_t row = groups.row(r), end = row < groups.rows ? groups.cols : 0;
    const Row<T, kPack> x{logits + row * groups.cols, 1};
    const int64_t label = end > 0 ? static_cast<int64_t>(labels[row]) : 0;
    if (begin == 0 && end > 0 && (label < 0 || label >= end)) ReportLate(check, row, label, end);
    const ExpSum<W> acc = SumRow<T, kPack>(x, begin, end, step, groups.group, of_warps);
    const W log_sum = log(acc.sum), scale = W(1) / acc.sum;
    for (int64_t c = begin; c < end; c += step) {
      Packed<T, kPack> values = x.Load(c);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const W shifted = static_cast<W>(values.values[k]) - acc.max;
        const bool is_label = c + k == label;
        // Whoever has it writes the loss, for the gradients may replace the logits.
        if (is_label) losses[row] = static_cast<T>(log_sum - shifted);
        values.values[k] = static_cast<T>(exp(shifted) * scale - (is_label ? W(1) : W(0)));
      }
      StorePacked(values, gradients + row * groups.cols, c);
    }
  }
}

template <typename T>
constexpr int kRowPack = 16 / static_cast<int>(sizeof(T));

template <typename... Params, typename... Args>
cudaError_t LaunchRows(void (*kernel)(Params...), Groups groups, cudaStream_t stream,
                       Args... args) {
  const int64_t per_block = kThreads / groups.group;
  const int64_t blocks = (groups.rows + per_block - 1) / per_block;
  return Launch(kernel, static_cast<unsigned>(std::min<int64_t>(blocks, INT32_MAX)), kThreads,
                stream, args...);
}

}  // namespace

cudaError_t LaunchSoftmax(bool log, Number type, const void* in, void* out, int64_t rows,
                          int64_t cols, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kPack = kRowPack<T>;
    const auto* x = static_cast<const T*>(in);
    auto* const y = static_cast<T*>(out);
    if (cols % kPack == 0 && IsAligned(in) && IsAligned(out)) {
      const Groups groups{GroupFor(cols / kPack), rows, cols};
      return LaunchRows(&Softmax<T, kPack>, groups, stream, x, y, groups, log);
    }
    const Groups groups{GroupFor(cols), rows, cols};
    return LaunchRows(&Softmax<T, 1>, groups, stream, x, y, groups, log);
  });
}

cudaError_t LaunchCrossEntropy(Number type, RowsOf logits, RowsOf labels, void* losses,
                               void* gradients, int64_t rows, int64_t cols, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kPack = kRowPack<T>;
    auto* const loss = static_cast<T*>(losses);
    auto* const gradient = static_cast<T*>(gradients);
    if (cols % kPack == 0 && logits.step == 1 && labels.step == 1 && IsAligned(logits.data) &&
        IsAligned(labels.data) && IsAligned(gradients)) {
      const Groups groups{GroupFor(cols / kPack), rows, cols};
      return LaunchRows(&CrossEntropy<T, kPack>, groups, stream, logits, labels, loss, gradient,
                        groups);
    }
    const Groups groups{GroupFor(cols), rows, cols};
    return LaunchRows(&CrossEntropy<T, 1>, groups, stream, logits, labels, loss, gradient, groups);
  });
}

cudaError_t LaunchSparseCrossEntropy(Number type, bool wide_labels, const void* logits,
                                     const void* labels, void* losses, void* gradients,
                                     int64_t rows, int64_t cols, LateCheck check,
                                     cudaStream_t stream) {
  const auto run = [&](auto tag, auto label_tag) {
    using T = typename decltype(tag)::Type;
    using Label = typename decltype(label_tag)::Type;
    constexpr int kPack = kRowPack<T>;
    const auto* x = static_cast<const T*>(logits);
    const auto* label = static_cast<const Label*>(labels);
    auto* const loss = static_cast<T*>(losses);
    auto* const gradient = static_cast<T*>(gradients);
    if (cols % kPack == 0 && IsAligned(logits) && IsAligned(gradients)) {
      const Groups groups{GroupFor(cols / kPack), rows, cols};
      return LaunchRows(&SparseCrossEntropy<T, Label, kPack>, groups, stream, x, label, loss,
                        gradient, groups, check);
    }
    const Groups groups{GroupFor(cols), rows, cols};
    return LaunchRows(&SparseCrossEntropy<T, Label, 1>, groups, stream, x, label, loss, gradient,
                      groups, check);
  };
  return VisitFloating(type, [&](auto tag) {
    return wide_labels ? run(tag, TypeTag<int64_t>()) : run(tag, TypeTag<int32_t>());
  });
}

}  // namespace troupe::cuda
