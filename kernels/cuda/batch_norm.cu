// Statistics are reductions (reduce.cuh) of all dimensions but that of channels, in one pass: of
// means and squared distances from them, so that no digits cancel. The last pass of each writes
// what the next launch needs of a channel.
#include "kernels/cuda/batch_norm.h"

#include "kernels/cuda/channels.cuh"
#include "kernels/cuda/reduce.cuh"

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

/// What `Normalize` needs of a channel.
__device__ void SetCoefficients(const BatchNormCall& call, int64_t c, float mean, float variance) {
  call.coefficients[c] = mean;
  call.coefficients[call.channels + c] = call.scale[c] / sqrtf(variance + call.epsilon);
  call.coefficients[2 * call.channels + c] = call.offset[c];
}

/// Of some numbers, less a typical one of their channel: what is far from 0 keeps its digits.
struct Moments {
  float mean, squares;  ///< `squares`: the sum of the squares of their distances from the mean.
  int64_t count;
};

/// Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
/// Variances", 1979.
template <typename T>
struct MomentsReducer {
  using Acc = Moments;
  static_assert(sizeof(Acc) == kMomentsSize);
  static constexpr int kPack = BatchNormPack(sizeof(T));

  __device__ Acc Identity() const { return {0, 0, 0}; }
  /// The count: one division for all columns of a thread. Those of what has just been read are
  /// constants.
  template <int kN>
  __device__ void Share(Acc (&accs)[kN]) const {
#pragma unroll
    for (int k = 1; k < kN; ++k) accs[k].count = accs[0].count;
  }
  __device__ Acc Join(Acc a, Acc b) const {
    if (a.count == 0) return b;  // Nothing has no mean: an infinite distance to it is none.
    if (b.count == 0) return a;
    const int64_t count = a.count + b.count;
    const float weight = static_cast<float>(b.count) / static_cast<float>(count);
    const float distance = b.mean - a.mean, step = distance * weight;
    return {a.mean + step, a.squares + b.squares + distance * step * static_cast<float>(a.count),
            count};
  }
  __device__ float Known(int64_t index) const { return Typical(channel(index)); }
  /// The middle one of the first element, one in the midst, and the last: one that is far from all
  /// others would take their digits.
  __device__ float Typical(int64_t c) const {
    const float a = At(0, c, 0), b = At(call.outer / 2, c, call.inner / 2);
    const float last = At(call.outer - 1, c, call.inner - 1);
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), last));
  }
  __device__ float At(int64_t outer, int64_t c, int64_t inner) const {
    const int64_t at = (outer * call.channels + c) * call.inner + inner;
    return static_cast<float>(static_cast<const T*>(call.x)[at]);
  }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(static_cast<const T*>(call.x), at);
  }
  template <int kN>
  __device__ Acc Of(const Packed<T, kN>& loaded, int k, int64_t, float typical) const {
    return {FloatAt(loaded, k) - typical, 0, 1};
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    const float count = static_cast<float>(call.outer * call.inner);
    for (int k = 0; k < kN; ++k) {
      const int64_t c = index + k;
      const float mean = Typical(c) + accs[k].mean, variance = accs[k].squares / count;
      const float unbiased = accs[k].squares / (count > 1 ? count - 1 : 1);
      const float old = 1 - call.factor;
      call.saved_mean[c] = mean;
      call.saved_variance[c] = variance;
      call.mean[c] = call.factor == 1 ? mean : old * call.given_mean[c] + call.factor * mean;
      call.variance[c] =
          call.factor == 1 ? unbiased : old * call.given_variance[c] + call.factor * unbiased;
      SetCoefficients(call, c, mean, variance);
    }
  }

  BatchNormCall call;
  ChannelOf channel;
};

/// The statistics are given.
struct TakeGiven {
  __device__ void operator()(int64_t c) const {
    const float mean = call.given_mean[c], variance = call.given_variance[c];
    call.mean[c] = call.saved_mean[c] = mean;
    call.variance[c] = call.saved_variance[c] = variance;
    SetCoefficients(call, c, mean, variance);
  }
  BatchNormCall call;
};

/// y = (x - mean) multiplier + offset.
template <typename T>
struct Normalize {
  template <int kC>
  struct Known {
    Packed<float, kC> mean, multiplier, offset;
  };

  template <int kC>
  __device__ Known<kC> Channels(int64_t first) const {
    return {LoadPacked<kC>(call.coefficients, first),
            LoadPacked<kC>(call.coefficients + call.channels, first),
            LoadPacked<kC>(call.coefficients + 2 * call.channels, first)};
  }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(static_cast<const T*>(call.x), at);
  }
  template <int kC, int kN>
  __device__ void Store(const Known<kC>& known, Packed<T, kN> values, int64_t at) const {
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      const int c = k % kC;
      values.values[k] =
          static_cast<T>((FloatAt(values, k) - known.mean.values[c]) * known.multiplier.values[c] +
                         known.offset.values[c]);
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
  static constexpr int kPack = BatchNormPack(sizeof(T));
  template <int kN>
  struct Loaded {
    Packed<T, kN> dy, x;
  };

  __device__ Acc Identity() const { return {0, 0}; }
  __device__ Acc Join(Acc a, Acc b) const { return {a.dy + b.dy, a.product + b.product}; }
  __device__ float Known(int64_t index) const { return call.mean[channel(index)]; }
  template <int kN>
  __device__ Loaded<kN> Load(int64_t at) const {
    return {LoadPacked<kN>(static_cast<const T*>(call.dy), at),
            LoadPacked<kN>(static_cast<const T*>(call.x), at)};
  }
  template <int kN>
  __device__ Acc Of(const Loaded<kN>& loaded, int k, int64_t, float mean) const {
    const float dy = FloatAt(loaded.dy, k);
    return {dy, dy * (FloatAt(loaded.x, k) - mean)};
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
      call.coefficients[3 * call.channels + c] = call.mean[c];
    }
  }

  BatchNormGradCall call;
  ChannelOf channel;
};

/// dx = factor (dy - shift - (x - mean) slope). The statistics depend on x in training only: else x
/// has no part in it, not even if it is infinite, and dx = factor dy.
template <typename T, bool kTraining>
struct Propagate {
  template <int kC>
  struct Known {
    Packed<float, kC> factor, shift, slope, mean;
  };
  template <int kN>
  struct Loaded {
    Packed<T, kN> dy, x;
  };

  template <int kC>
  __device__ Known<kC> Channels(int64_t first) const {
    Known<kC> known;
    known.factor = LoadPacked<kC>(call.coefficients, first);
    if constexpr (kTraining) {
      known.shift = LoadPacked<kC>(call.coefficients + call.channels, first);
      known.slope = LoadPacked<kC>(call.coefficients + 2 * call.channels, first);
      known.mean = LoadPacked<kC>(call.coefficients + 3 * call.channels, first);
    }
    return known;
  }
  template <int kN>
  __device__ Loaded<kN> Load(int64_t at) const {
    Loaded<kN> loaded;
    loaded.dy = LoadPacked<kN>(static_cast<const T*>(call.dy), at);
    if constexpr (kTraining) loaded.x = LoadPacked<kN>(static_cast<const T*>(call.x), at);
    return loaded;
  }
  template <int kC, int kN>
  __device__ void Store(const Known<kC>& known, const Loaded<kN>& loaded, int64_t at) const {
    Packed<T, kN> dx;
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      const int c = k % kC;
      float dy = FloatAt(loaded.dy, k);
      if constexpr (kTraining) {
        dy -= known.shift.values[c] +
              (FloatAt(loaded.x, k) - known.mean.values[c]) * known.slope.values[c];
      }
      dx.values[k] = static_cast<T>(known.factor.values[c] * dy);
    }
    StorePacked(dx, static_cast<T*>(call.dx), at);
  }
  BatchNormGradCall call;
};

}  // namespace

cudaError_t LaunchBatchNorm(const BatchNormCall& call, const ReducePlan& plan,
                            cudaStream_t stream) {
  return VisitSmallFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const cudaError_t error =
        call.is_training ? RunReduce(MomentsReducer<T>{call, ChannelOf(plan, call.channels)}, plan,
                                     call.scratch, stream)
                         : ForEach(call.channels, stream, TakeGiven{call});
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
    const auto propagate = [&](auto body) {
      return ForChannels<16 / sizeof(T)>(call.outer * call.channels * call.inner, call.inner,
                                         call.channels, aligned, stream, body);
    };
    return call.is_training ? propagate(Propagate<T, true>{call})
                            : propagate(Propagate<T, false>{call});
  });
}

}  // namespace troupe::cuda
