// Poolings: a thread for each element of the output, or, where channels lie together, for 16 bytes
// of them. Gradients are gathered from the windows that an element is in.
#include <algorithm>
#include <limits>

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/pooling.h"

namespace troupe::cuda {
namespace {

// A thread works on a pack of channels at once.

/// A pooling in the type in which indices of its elements are computed. Depth counts packs.
template <typename Index>
struct Plan {
  struct Axis {
    Index input, output, size, stride, pad;
  };
  Index batch, depth;
  Axis rows, columns;
  bool channels_first;
};

template <typename Index>
struct Range {
  Index begin, end;
};

template <typename Index>
__device__ Range<Index> WindowAt(const typename Plan<Index>::Axis& axis, Index output) {
  const Index first = output * axis.stride - axis.pad;
  const Index begin = first < 0 ? 0 : first;
  const Index end = first + axis.size < axis.input ? first + axis.size : axis.input;
  return {begin, end < begin ? begin : end};
}

/// The windows that an element of the input is in.
template <typename Index>
__device__ Range<Index> WindowsOf(const typename Plan<Index>::Axis& axis, Index input) {
  const Index at = input + axis.pad;
  const Index begin = at < axis.size ? 0 : (at - axis.size) / axis.stride + 1;
  const Index end = at / axis.stride + 1;
  return {begin, end < axis.output ? end : axis.output};
}

/// The i-th pack of images of rows x columns, and where the elements of the same image and channel
/// begin in others, and how far they are apart.
template <typename Index>
struct Place {
  Index row, column, image, channel;
  __device__ Place(const Plan<Index>& plan, Index rows, Index columns, Index i) {
    if (plan.channels_first) {
      column = i % columns;
      row = i / columns % rows;
      image = i / columns / rows;  // Of one channel.
      channel = 0;
    } else {
      channel = i % plan.depth;
      const Index rest = i / plan.depth;
      column = rest % columns;
      row = rest / columns % rows;
      image = rest / columns / rows;
    }
  }
};
template <typename Index>
__device__ Index At(const Plan<Index>& plan, const Place<Index>& place, Index rows, Index columns,
                    Index row, Index column) {
  const Index pixel = (place.image * rows + row) * columns + column;
  return plan.channels_first ? pixel : pixel * plan.depth + place.channel;
}

/// Calls body(y, x, index) for the elements of the input in the window of an element of the output;
/// gives their number.
template <typename Index, typename Body>
__device__ Index ForWindow(const Plan<Index>& plan, const Place<Index>& place, Body body) {
  const auto rows = WindowAt<Index>(plan.rows, place.row);
  const auto columns = WindowAt<Index>(plan.columns, place.column);
  for (Index y = rows.begin; y < rows.end; ++y) {
    for (Index x = columns.begin; x < columns.end; ++x) {
      body(y, x, At(plan, place, plan.rows.input, plan.columns.input, y, x));
    }
  }
  return (rows.end - rows.begin) * (columns.end - columns.begin);
}
/// Calls body(y, x, index) for the elements of the output whose windows have an element of the
/// input.
template <typename Index, typename Body>
__device__ void ForWindowsWith(const Plan<Index>& plan, const Place<Index>& place, Body body) {
  const auto rows = WindowsOf<Index>(plan.rows, place.row);
  const auto columns = WindowsOf<Index>(plan.columns, place.column);
  for (Index y = rows.begin; y < rows.end; ++y) {
    for (Index x = columns.begin; x < columns.end; ++x) {
      body(y, x, At(plan, place, plan.rows.output, plan.columns.output, y, x));
    }
  }
}

template <typename Index, typename Body>
__global__ void __launch_bounds__(kThreads) ForEachPack(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step) {
    body(static_cast<Index>(i));
  }
}

template <typename T>
__device__ T Lowest();
template <>
__device__ __half Lowest() {
  return static_cast<__half>(-65504.0f);
}
template <>
__device__ __nv_bfloat16 Lowest() {
  return static_cast<__nv_bfloat16>(-3.38953139e38f);
}
template <>
__device__ float Lowest() {
  return -3.402823466e38f;
}
template <>
__device__ double Lowest() {
  return -1.7976931348623157e308;
}

template <typename T, int kChannels, typename Index>
struct MaxPool {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P* input;
  P* output;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.output, plan.columns.output, i);
    P best;
    for (int k = 0; k < kChannels; ++k) best.values[k] = Lowest<T>();
    ForWindow(plan, place, [&](Index, Index, Index at) {
      const P in = input[at];
      for (int k = 0; k < kChannels; ++k) {
        if (static_cast<W>(in.values[k]) > static_cast<W>(best.values[k])) {
          best.values[k] = in.values[k];
        }
      }
    });
    StorePacked(best, output[i].values, 0);
  }
};

/// The pixel of the image, counted along rows, that has the first of a window's largest elements;
/// NaN loses unless it is first.
template <typename T, int kChannels, typename Index>
struct FindMax {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P* input;
  Packed<int32_t, kChannels>* found;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.output, plan.columns.output, i);
    P best;
    Packed<int32_t, kChannels> where;
    for (int k = 0; k < kChannels; ++k) where.values[k] = -1;
    ForWindow(plan, place, [&](Index y, Index x, Index at) {
      const P in = input[at];
      const auto pixel = static_cast<int32_t>(y * plan.columns.input + x);
      for (int k = 0; k < kChannels; ++k) {
        if (where.values[k] < 0 || static_cast<W>(in.values[k]) > static_cast<W>(best.values[k])) {
          best.values[k] = in.values[k];
          where.values[k] = pixel;
        }
      }
    });
    StorePacked(where, found[i].values, 0);
  }
};

template <typename T, int kChannels, typename Index>
struct MaxPoolGrad {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P* gradient;
  const Packed<int32_t, kChannels>* found;
  P* output;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.input, plan.columns.input, i);
    const auto pixel = static_cast<int32_t>(place.row * plan.columns.input + place.column);
    W sums[kChannels] = {};
    ForWindowsWith(plan, place, [&](Index, Index, Index at) {
      const Packed<int32_t, kChannels> where = found[at];
      const P dy = gradient[at];
      for (int k = 0; k < kChannels; ++k) {
        if (where.values[k] == pixel) sums[k] += static_cast<W>(dy.values[k]);
      }
    });
    P result;
    for (int k = 0; k < kChannels; ++k) result.values[k] = static_cast<T>(sums[k]);
    StorePacked(result, output[i].values, 0);
  }
};

template <typename T, int kChannels, typename Index>
struct MaxPoolGradGrad {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P *input, *pooled, *gradient;
  P* output;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.output, plan.columns.output, i);
    const P wanted = pooled[i];
    P result;
    bool found[kChannels] = {};
    for (int k = 0; k < kChannels; ++k) result.values[k] = static_cast<T>(0.0f);
    ForWindow(plan, place, [&](Index, Index, Index at) {
      const P in = input[at], from = gradient[at];
      for (int k = 0; k < kChannels; ++k) {
        if (!found[k] && static_cast<W>(in.values[k]) == static_cast<W>(wanted.values[k])) {
          found[k] = true;
          result.values[k] = from.values[k];
        }
      }
    });
    StorePacked(result, output[i].values, 0);
  }
};

template <typename T, int kChannels, typename Index>
struct AvgPool {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P* input;
  P* output;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.output, plan.columns.output, i);
    W sums[kChannels] = {};
    const W count = static_cast<W>(ForWindow(plan, place, [&](Index, Index, Index at) {
      const P in = input[at];
      for (int k = 0; k < kChannels; ++k) sums[k] += static_cast<W>(in.values[k]);
    }));
    P result;
    for (int k = 0; k < kChannels; ++k) result.values[k] = static_cast<T>(sums[k] / count);
    StorePacked(result, output[i].values, 0);
  }
};

template <typename T, int kChannels, typename Index>
struct AvgPoolGrad {
  using P = Packed<T, kChannels>;
  Plan<Index> plan;
  const P* gradient;
  P* output;
  __device__ void operator()(Index i) const {
    using W = WideType<T>;
    const Place<Index> place(plan, plan.rows.input, plan.columns.input, i);
    W sums[kChannels] = {};
    ForWindowsWith(plan, place, [&](Index y, Index x, Index at) {
      const auto height = WindowAt<Index>(plan.rows, y), width = WindowAt<Index>(plan.columns, x);
      const W part = W(1) / static_cast<W>((height.end - height.begin) * (width.end - width.begin));
      const P dy = gradient[at];
      for (int k = 0; k < kChannels; ++k) sums[k] += static_cast<W>(dy.values[k]) * part;
    });
    P result;
    for (int k = 0; k < kChannels; ++k) result.values[k] = static_cast<T>(sums[k]);
    StorePacked(result, output[i].values, 0);
  }
};

int64_t Elements(const Pooling& p, bool of_output) {
  return p.batch * p.depth *
         (of_output ? p.rows.output * p.columns.output : p.rows.input * p.columns.input);
}

/// Enqueues Body over the output's elements, or, for gradients, the input's. `operands` are its
/// other members.
template <template <typename, int, typename> class Body, typename T, int kChannels, typename Index,
          typename... Operands>
cudaError_t RunAs(const Pooling& p, bool over_output, cudaStream_t stream, Operands... operands) {
  const auto axis = [](const PoolingAxis& a) {
    return typename Plan<Index>::Axis{static_cast<Index>(a.input), static_cast<Index>(a.output),
                                      static_cast<Index>(a.size), static_cast<Index>(a.stride),
                                      static_cast<Index>(a.pad_before)};
  };
  const Plan<Index> plan{static_cast<Index>(p.batch), static_cast<Index>(p.depth / kChannels),
                         axis(p.rows), axis(p.columns), p.channels_first};
  using B = Body<T, kChannels, Index>;
  const int64_t n = Elements(p, over_output) / kChannels;
  return Launch(&ForEachPack<Index, B>, Blocks(n), kThreads, stream, n, B{plan, operands...});
}

/// Any pointer, as a pointer to packs.
struct Operand {
  const void* data;
  template <typename P>
  operator P*() const {
    return static_cast<P*>(const_cast<void*>(data));
  }
};

template <template <typename, int, typename> class Body, typename... Operands>
cudaError_t Run(Number type, const Pooling& p, bool over_output, cudaStream_t stream,
                Operands... operands) {
  // Windows reach over the edges of their images by less than their size.
  const auto reach = [](const PoolingAxis& a) {
    return std::max(a.input, a.output) + a.size + a.stride + a.pad_before;
  };
  const bool small = std::max({Elements(p, true), Elements(p, false), reach(p.rows),
                               reach(p.columns), p.rows.output * p.rows.stride,
                               p.columns.output * p.columns.stride}) < INT32_MAX / 2;
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kChannels = 16 / sizeof(T);
    const bool packed = !p.channels_first && p.depth % kChannels == 0 &&
                        ((reinterpret_cast<uintptr_t>(operands.data) % 16 == 0) && ...);
    if (!small) return RunAs<Body, T, 1, int64_t>(p, over_output, stream, operands...);
    if (packed) return RunAs<Body, T, kChannels, int32_t>(p, over_output, stream, operands...);
    return RunAs<Body, T, 1, int32_t>(p, over_output, stream, operands...);
  });
}

}  // namespace

cudaError_t LaunchMaxPool(Number type, const Pooling& pooling, const void* input, void* output,
                          cudaStream_t stream) {
  return Run<MaxPool>(type, pooling, true, stream, Operand{input}, Operand{output});
}

cudaError_t LaunchMaxPoolDepth(Number type, int64_t outputs, int64_t window, const void* input,
                               void* output, cudaStream_t stream) {
  // A row of `outputs` windows, side by side.
  const Pooling pooling{
      1, 1, {1, 1, 1, 1, 0}, {outputs * window, outputs, window, window, 0}, true};
  return LaunchMaxPool(type, pooling, input, output, stream);
}

cudaError_t LaunchMaxPoolGrad(Number type, const Pooling& pooling, const void* input,
                              const void* gradient, int32_t* scratch, void* output,
                              cudaStream_t stream) {
  if (Elements(pooling, true) > 0) {
    const cudaError_t error =
        Run<FindMax>(type, pooling, true, stream, Operand{input}, Operand{scratch});
    if (error != cudaSuccess) return error;
  }
  return Run<MaxPoolGrad>(type, pooling, false, stream, Operand{gradient}, Operand{scratch},
                          Operand{output});
}

cudaError_t LaunchMaxPoolGradGrad(Number type, const Pooling& pooling, const void* input,
                                  const void* pooled, const void* gradient, void* output,
                                  cudaStream_t stream) {
  return Run<MaxPoolGradGrad>(type, pooling, true, stream, Operand{input}, Operand{pooled},
                              Operand{gradient}, Operand{output});
}

cudaError_t LaunchAvgPool(Number type, const Pooling& pooling, const void* input, void* output,
                          cudaStream_t stream) {
  return Run<AvgPool>(type, pooling, true, stream, Operand{input}, Operand{output});
}

cudaError_t LaunchAvgPoolGrad(Number type, const Pooling& pooling, const void* gradient,
                              void* output, cudaStream_t stream) {
  return Run<AvgPoolGrad>(type, pooling, false, stream, Operand{gradient}, Operand{output});
}

}  // namespace troupe::cuda
