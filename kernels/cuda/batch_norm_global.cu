// Normalization by a mean and a variance that are given.
#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/channels.cuh"
#include "kernels/cuda/reduce.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
__device__ float At(const void* from, int64_t i) {
  return static_cast<float>(static_cast<const T*>(from)[i]);
}

template <typename T>
struct FactorOfChannel {
  __device__ void operator()(int64_t c) const {
    const float scale = call.gamma != nullptr ? At<T>(call.gamma, c) : 1.0f;
    call.factor[c] = scale / sqrtf(At<T>(call.variance, c) + call.epsilon);
  }
  GlobalNormCall call;
};

template <typename T>
struct NormalizeGlobally {
  template <int kC>
  struct Known {
    float mean[kC], factor[kC], beta[kC];
  };

  template <int kC>
  __device__ Known<kC> Channels(int64_t first) const {
    Known<kC> known;
#pragma unroll
    for (int k = 0; k < kC; ++k) {
      known.mean[k] = At<T>(call.mean, first + k);
      known.factor[k] = call.factor[first + k];
      known.beta[k] = At<T>(call.beta, first + k);
    }
    return known;
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
      values.values[k] = static_cast<T>(
          (static_cast<float>(values.values[k]) - known.mean[c]) * known.factor[c] + known.beta[c]);
    }
    StorePacked(values, static_cast<T*>(call.y), at);
  }

  GlobalNormCall call;
};

struct GlobalSums {
  float dy, product;  ///< Of dy, and of dy (x - mean).
};

template <typename T>
struct GlobalGradReducer {
  using Acc = GlobalSums;
  static constexpr int kPack = ReducePack(sizeof(T), sizeof(Acc));
  template <int kN>
  struct Loaded {
    Packed<T, kN> dy, x;
  };

  __device__ Acc Identity() const { return {0, 0}; }
  __device__ Acc Join(Acc a, Acc b) const { return {a.dy + b.dy, a.product + b.product}; }
  __device__ float Known(int64_t c) const { return At<T>(call.mean, c); }
  template <int kN>
  __device__ Loaded<kN> Load(int64_t at) const {
    return {LoadPacked<kN>(static_cast<const T*>(call.dy), at),
            LoadPacked<kN>(static_cast<const T*>(call.x), at)};
  }
  template <int kN>
  __device__ Acc Of(const Loaded<kN>& loaded, int k, int64_t, float mean) const {
    const float dy = static_cast<float>(loaded.dy.values[k]);
    return {dy, dy * (static_cast<float>(loaded.x.values[k]) - mean)};
  }
  template <int kN>
  __device__ void Store(int64_t index, const Acc (&accs)[kN]) const {
    const auto put = [](void* to, int64_t c, float value) {
      static_cast<T*>(to)[c] = static_cast<T>(value);
    };
    for (int k = 0; k < kN; ++k) {
      const int64_t c = index + k;
      const float inverse = 1 / sqrtf(At<T>(call.variance, c) + call.epsilon);
      const float factor = call.gamma != nullptr ? inverse * At<T>(call.gamma, c) : inverse;
      call.factor[c] = factor;
      put(call.mean_gradient, c, -accs[k].dy * factor);
      put(call.variance_gradient, c, -0.5f * accs[k].product * inverse * inverse * factor);
      put(call.beta_gradient, c, accs[k].dy);
      put(call.gamma_gradient, c, call.gamma != nullptr ? accs[k].product * inverse : 0.0f);
    }
  }

  GlobalNormGradCall call;
};

template <typename T>
struct PropagateGlobally {
  template <int kC>
  __device__ Packed<float, kC> Channels(int64_t first) const {
    return LoadPacked<kC>(call.factor, first);
  }
  template <int kN>
  __device__ Packed<T, kN> Load(int64_t at) const {
    return LoadPacked<kN>(static_cast<const T*>(call.dy), at);
  }
  template <int kC, int kN>
  __device__ void Store(const Packed<float, kC>& factor, Packed<T, kN> values, int64_t at) const {
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      values.values[k] =
          static_cast<T>(static_cast<float>(values.values[k]) * factor.values[k % kC]);
    }
    StorePacked(values, static_cast<T*>(call.dx), at);
  }

  GlobalNormGradCall call;
};

template <typename Fn>
cudaError_t VisitGlobal(Number type, Fn fn) {
  if (type == Number::kHalf) return fn(TypeTag<__half>());
  if (type == Number::kFloat) return fn(TypeTag<float>());
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t LaunchGlobalNorm(const GlobalNormCall& call, cudaStream_t stream) {
  return VisitGlobal(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const cudaError_t error = ForEach(call.channels, stream, FactorOfChannel<T>{call});
    if (error != cudaSuccess) return error;
    return ForChannels<16 / sizeof(T)>(call.rows * call.channels, /*inner=*/1, call.channels,
                                       IsAligned(call.x) && IsAligned(call.y), stream,
                                       NormalizeGlobally<T>{call});
  });
}

cudaError_t LaunchGlobalNormGrad(const GlobalNormGradCall& call, const ReducePlan& plan,
                                 cudaStream_t stream) {
  return VisitGlobal(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const cudaError_t error = RunReduce(GlobalGradReducer<T>{call}, plan, call.scratch, stream);
    if (error != cudaSuccess) return error;
    return ForChannels<16 / sizeof(T)>(call.rows * call.channels, /*inner=*/1, call.channels,
                                       IsAligned(call.dy) && IsAligned(call.dx), stream,
                                       PropagateGlobally<T>{call});
  });
}

}  // namespace troupe::cuda
