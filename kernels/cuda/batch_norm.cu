// Statistics are reductions (reduce.cuh) of all dimensions but that of channels: first the mean,
// then the squares of what differs from it, so that no digits cancel. The last pass of each writes
// what the next launch needs of a channel.
#include "kernels/cuda/batch_norm.h"

#include "kernels/cuda/channels.cuh"
#include "kernels/cuda/reduce_ops.cuh"

namespace troupe::cuda {
namespace {

/// The channel of a result of a plan's first pass, of which only some dimensions have been reduced.
struct ChannelOf {
  ChannelOf(const ReducePlan& plan, int64_t channels)
      : channels(channels),
        inner(plan.passes[0].rows() ? 1 : std::max<int64_t>(1, plan.passes[0].inner / channels)) {}

  __device__ int64_t operator()(int64_t index) const {
    return inner == 1 && index < channels ? index : index / inner % channels;
  }

  int64_t channels, inner;
};

template <typename T>
struct SquaresReducer {
  using Acc = float;
  static constexpr int kPack = ReducePack(sizeof(T), sizeof(Acc));

  __device__ Acc Identity() const { return 0; }
  __device__ Acc Join(Acc a, Acc b) const { return a + b; }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(static_cast<const T*>(call.x), at);
  }
  template <int kN>
  __device__ Acc Of(const Packed<T, kN>& loaded, int k, int64_t, int64_t index) const {
    const float difference = static_cast<float>(loaded.values[k]) - call.saved_mean[channel(index)];
    return difference * difference;
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    const float count = static_cast<float>(call.outer * call.inner);
    for (int k = 0; k < kN; ++k) {
      const int64_t c = index + k;
      const float mean = call.saved_mean[c], variance = accs[k] / count;
      const float unbiased = accs[k] / (count > 1 ? count - 1 : 1);
      const float old = 1 - call.factor;
      call.saved_variance[c] = variance;
      call.mean[c] = call.factor == 1 ? mean : old * call.given_mean[c] + call.factor * mean;
      call.variance[c] =
          call.factor == 1 ? unbiased : old * call.given_variance[c] + call.factor * unbiased;
      call.multiplier[c] = call.scale[c] / sqrtf(variance + call.epsilon);
    }
  }

  BatchNormCall call;
  ChannelOf channel;
};

/// The statistics are given.
struct TakeGiven {
  __device__ void operator()(int64_t c) const {
    call.mean[c] = call.saved_mean[c] = call.given_mean[c];
    call.variance[c] = call.saved_variance[c] = call.given_variance[c];
    call.multiplier[c] = call.scale[c] / sqrtf(call.given_variance[c] + call.epsilon);
  }
  BatchNormCall call;
};

template <typename T>
struct Normalize {
  template <int kN>
  __device__ void Run(int64_t at, int64_t channel, int step) const {
    Packed<T, kN> values = LoadPacked<kN>(static_cast<const T*>(call.x), at);
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      const int64_t c = channel + k * step;
      values.values[k] = static_cast<T>(
          (static_cast<float>(values.values[k]) - call.saved_mean[c]) * call.multiplier[c] +
          call.offset[c]);
    }
    StorePacked(values, static_cast<T*>(call.y), at);
  }
  BatchNormCall call;
};

struct GradSums {
  float dy, product;  ///< Of dy, and of dy (x - mean).
};

template <typename T>
struct GradReducer {
  using Acc = GradSums;
  static constexpr int kPack = ReducePack(sizeof(T), sizeof(Acc));
  template <int kN>
  struct Loaded {
    Packed<T, kN> dy, x;
  };

  __device__ Acc Identity() const { return {0, 0}; }
  __device__ Acc Join(Acc a, Acc b) const { return {a.dy + b.dy, a.product + b.product}; }
  template <int kN>
  __device__ Loaded<kN> Load(int64_t at) const {
    return {LoadPacked<kN>(static_cast<const T*>(call.dy), at),
            LoadPacked<kN>(static_cast<const T*>(call.x), at)};
  }
  template <int kN>
  __device__ Acc Of(const Loaded<kN>& loaded, int k, int64_t, int64_t index) const {
    const float dy = static_cast<float>(loaded.dy.values[k]);
    return {dy, dy * (static_cast<float>(loaded.x.values[k]) - call.mean[channel(index)])};
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    const float count = static_cast<float>(call.outer * call.inner);
    for (int k = 0; k < kN; ++k) {
      const int64_t c = index + k;
      const float inverse = 1 / sqrtf(call.variance[c] + call.epsilon);
      call.scale_gradient[c] = accs[k].product * inverse;
      call.offset_gradient[c] = accs[k].dy;
      call.coefficients[c] = call.scale[c] * inverse;
      call.coefficients[call.channels + c] = accs[k].dy / count;
      call.coefficients[2 * call.channels + c] = accs[k].product / count * inverse * inverse;
    }
  }

  BatchNormGradCall call;
  ChannelOf channel;
};

/// dx = factor (dy - shift - (x - mean) slope); the statistics depend on x in training only.
template <typename T>
struct Propagate {
  template <int kN>
  __device__ void Run(int64_t at, int64_t channel, int step) const {
    Packed<T, kN> values = LoadPacked<kN>(static_cast<const T*>(call.dy), at), x;
    // Else x has no part in it, not even if it is infinite.
    if (call.is_training) x = LoadPacked<kN>(static_cast<const T*>(call.x), at);
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      const int64_t c = channel + k * step;
      float dy = static_cast<float>(values.values[k]);
      if (call.is_training) {
        dy -= call.coefficients[call.channels + c] +
              (static_cast<float>(x.values[k]) - call.mean[c]) *
                  call.coefficients[2 * call.channels + c];
      }
      values.values[k] = static_cast<T>(call.coefficients[c] * dy);
    }
    StorePacked(values, static_cast<T*>(call.dx), at);
  }
  BatchNormGradCall call;
};

}  // namespace

cudaError_t LaunchBatchNorm(const BatchNormCall& call, const ReducePlan& plan,
                            cudaStream_t stream) {
  return VisitSmallFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    cudaError_t error = cudaSuccess;
    if (call.is_training) {
      const ArrayReducer<T, SumOf<T>, float> mean{static_cast<const T*>(call.x), call.saved_mean,
                                                  call.outer * call.inner};
      error = RunReduce(mean, plan, call.scratch, stream);
      if (error != cudaSuccess) return error;
      const SquaresReducer<T> squares{call, ChannelOf(plan, call.channels)};
      error = RunReduce(squares, plan, call.scratch, stream);
    } else {
      error = ForEach(call.channels, stream, TakeGiven{call});
    }
    if (error != cudaSuccess) return error;
    return ForChannels<16 / sizeof(T)>(call.outer * call.channels * call.inner, call.inner,
                                       call.channels, IsAligned(call.x) && IsAligned(call.y),
                                       stream, Normalize<T>{call});
  });
}

cudaError_t LaunchBatchNormGrad(const BatchNormGradCall& call, const ReducePlan& plan,
                                cudaStream_t stream) {
  return VisitSmallFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const GradReducer<T> sums{call, ChannelOf(plan, call.channels)};
    const cudaError_t error = RunReduce(sums, plan, call.scratch, stream);
    if (error != cudaSuccess) return error;
    const bool aligned = IsAligned(call.dy) && IsAligned(call.x) && IsAligned(call.dx);
    return ForChannels<16 / sizeof(T)>(call.outer * call.channels * call.inner, call.inner,
                                       call.channels, aligned, stream, Propagate<T>{call});
  });
}

}  // namespace troupe::cuda
