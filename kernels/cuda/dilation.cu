// Grayscale dilation: a thread for each element of the output. Gradients first find the tap that
// each output stems from; the input's gathers from the windows of an element.
#include "kernels/cuda/dilation.h"

#include "kernels/cuda/tap_sums.cuh"
#include "kernels/cuda/windows.cuh"

namespace troupe::cuda {
namespace {

struct Plan {
  Coordinates<4> inputs, outputs;  ///< Images, rows, columns, channels.
  Slide rows, columns;
  ImageSteps in_steps, out_steps;
  int64_t depth;

  explicit Plan(const Dilation& d)
      : inputs(d.batch, d.rows.input, d.columns.input, d.depth),
        outputs(d.batch, d.rows.output, d.columns.output, d.depth),
        rows(d.rows),
        columns(d.columns),
        in_steps(d.rows.input, d.columns.input, d.depth, false),
        out_steps(d.rows.output, d.columns.output, d.depth, false),
        depth(d.depth) {}

  /// Calls body(sum, tap) for an output's elements that are not padding; sums are rounded to T.
  template <typename T, typename Body>
  __device__ void ForSums(const T* input, const T* filter, int64_t output, Body body) const {
    using W = WideType<T>;
    int64_t at[4];
    outputs.Split(output, at);
    for (int64_t r = 0; r < rows.size; ++r) {
      const int64_t y = rows.ElementAt(at[1], r);
      if (y < 0) continue;
      for (int64_t c = 0; c < columns.size; ++c) {
        const int64_t x = columns.ElementAt(at[2], c);
        if (x < 0) continue;
        const int64_t tap = r * columns.size + c;
        const W sum = static_cast<W>(input[in_steps.At(at[0], y, x, at[3])]) +
                      static_cast<W>(filter[tap * depth + at[3]]);
        body(static_cast<T>(sum), tap);
      }
    }
  }
};

template <typename T>
struct Dilate {
  Plan plan;
  const T *input, *filter;
  T* output;
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    // Of small numbers the lowest one is an infinity, as on the CPU.
    W best = sizeof(T) == 2 ? -kInfinity<W> : kLowest<W>;
    plan.ForSums(input, filter, i, [&](T sum, int64_t) {
      if (static_cast<W>(sum) > best) best = static_cast<W>(sum);
    });
    output[i] = static_cast<T>(best);
  }
};

template <typename T>
struct FindTaps {
  Plan plan;
  const T *input, *filter;
  int32_t* taps;
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    W best(0);
    int64_t found = -1;
    plan.ForSums(input, filter, i, [&](T sum, int64_t tap) {
      if (found >= 0 && !(static_cast<W>(sum) > best)) return;
      best = static_cast<W>(sum);
      found = tap;
    });
    taps[i] = static_cast<int32_t>(found);
  }
};

template <typename T>
struct InputGrad {
  Plan plan;
  const int32_t* taps;
  const T* gradient;
  T* output;
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    int64_t at[4];
    plan.inputs.Split(i, at);
    W sum(0);
    for (int64_t r = 0; r < plan.rows.size; ++r) {
      const int64_t y = plan.rows.WindowWith(at[1], r);
      if (y < 0) continue;
      for (int64_t c = 0; c < plan.columns.size; ++c) {
        const int64_t x = plan.columns.WindowWith(at[2], c);
        if (x < 0) continue;
        const int64_t from = plan.out_steps.At(at[0], y, x, at[3]);
        if (taps[from] == r * plan.columns.size + c) sum += static_cast<W>(gradient[from]);
      }
    }
    output[i] = static_cast<T>(sum);
  }
};

template <typename T>
struct FilterGrad {
  int64_t depth;
  const int32_t* taps;
  const T* gradient;
  __device__ void Add(int64_t pixel, int64_t first_tap, int64_t channel,
                      WideType<T> (&sums)[kTapsAtOnce][1]) const {
    const int64_t at = pixel * depth + channel, tap = taps[at] - first_tap;
    const auto dy = static_cast<WideType<T>>(gradient[at]);
#pragma unroll
    for (int k = 0; k < kTapsAtOnce; ++k) {
      if (tap == k) sums[k][0] += dy;
    }
  }
};

/// Body{plan, operands...} for each of n elements.
template <template <typename> class Body, typename T, typename... Operands>
cudaError_t Run(const Dilation& d, int64_t n, cudaStream_t stream, Operands... operands) {
  return ForEach(n, stream, Body<T>{Plan(d), operands...});
}

}  // namespace

cudaError_t LaunchDilation(Number type, const Dilation& d, const void* input, const void* filter,
                           void* output, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Run<Dilate, T>(d, d.outputs(), stream, static_cast<const T*>(input),
                          static_cast<const T*>(filter), static_cast<T*>(output));
  });
}

cudaError_t LaunchDilationTaps(Number type, const Dilation& d, const void* input,
                               const void* filter, int32_t* taps, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Run<FindTaps, T>(d, d.outputs(), stream, static_cast<const T*>(input),
                            static_cast<const T*>(filter), taps);
  });
}

cudaError_t LaunchDilationInputGrad(Number type, const Dilation& d, const int32_t* taps,
                                    const void* gradient, void* output, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Run<InputGrad, T>(d, d.batch * d.rows.input * d.columns.input * d.depth, stream, taps,
                             static_cast<const T*>(gradient), static_cast<T*>(output));
  });
}

cudaError_t LaunchDilationFilterGrad(Number type, const Dilation& d, const int32_t* taps,
                                     const void* gradient, void* scratch, void* output,
                                     cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const FilterGrad<T> body{d.depth, taps, static_cast<const T*>(gradient)};
    return LaunchTapSums<T, 1>(d.filter_sums(), body, scratch, static_cast<T*>(output), stream);
  });
}

}  // namespace troupe::cuda
