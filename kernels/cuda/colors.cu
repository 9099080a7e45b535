#include "kernels/cuda/colors.h"

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/parallel.cuh"
#include "kernels/simd/color_loops.h"

namespace troupe::cuda {
namespace {

struct ToHsvFn {
  template <typename T>
  __device__ Color<T> operator()(Color<T> c) const {
    return ToHsv(c);
  }
};
struct ToRgbFn {
  template <typename T>
  __device__ Color<T> operator()(Color<T> c) const {
    return ToRgb(c);
  }
};
struct TurnHueFn {
  const float* by;
  __device__ Color<float> operator()(Color<float> c) const { return TurnedHue(c, *by); }
};
struct ScaleSaturationFn {
  const float* by;
  __device__ Color<float> operator()(Color<float> c) const { return ScaledSaturation(c, *by); }
};

/// A pixel, of T, by a function of its color.
template <typename T, typename Fn>
struct ForPixel {
  Fn fn;
  const T* in;
  T* out;
  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    const T* const from = in + 3 * i;
    const Color<W> color =
        fn(Color<W>{static_cast<W>(from[0]), static_cast<W>(from[1]), static_cast<W>(from[2])});
    T* const to = out + 3 * i;
    to[0] = static_cast<T>(color.x);
    to[1] = static_cast<T>(color.y);
    to[2] = static_cast<T>(color.z);
  }
};

template <typename T, typename Fn>
cudaError_t ForPixels(Fn fn, const void* in, int64_t pixels, void* out, cudaStream_t stream) {
  return ForEach(pixels, stream,
                 ForPixel<T, Fn>{fn, static_cast<const T*>(in), static_cast<T*>(out)});
}

/// Calls fn with float or half.
template <typename Fn>
cudaError_t VisitSome(Number type, Fn fn) {
  if (type == Number::kFloat) return fn(TypeTag<float>());
  return type == Number::kHalf ? fn(TypeTag<__half>()) : cudaErrorNotSupported;
}

template <typename T>
struct MoveFromMean {
  Coordinates<3> items;  ///< Images, pixels, channels.
  Contrast c;
  const T* in;
  T* out;
  __device__ void operator()(int64_t i) const {
    int64_t at[3];
    items.Split(i, at);
    const float mean = c.means[at[0] * c.channels + at[2]];
    float value = (static_cast<float>(in[i]) - mean) * *c.factor + mean;
    if (c.low != nullptr) {  // NaN stays NaN.
      value = *c.high < value ? *c.high : value;
      value = value < *c.low ? *c.low : value;
    }
    out[i] = static_cast<T>(value);
  }
};

}  // namespace

cudaError_t LaunchConvertColors(ColorOp op, Number type, const void* in, int64_t pixels, void* out,
                                cudaStream_t stream) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return op == ColorOp::kToHsv ? ForPixels<T>(ToHsvFn(), in, pixels, out, stream)
                                 : ForPixels<T>(ToRgbFn(), in, pixels, out, stream);
  };
  if (type == Number::kFloat) return run(TypeTag<float>());
  return type == Number::kDouble ? run(TypeTag<double>()) : cudaErrorNotSupported;
}

cudaError_t LaunchChangeColors(ColorChange change, Number type, const void* in, const float* by,
                               int64_t pixels, void* out, cudaStream_t stream) {
  return VisitSome(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return change == ColorChange::kTurnHue
               ? ForPixels<T>(TurnHueFn{by}, in, pixels, out, stream)
               : ForPixels<T>(ScaleSaturationFn{by}, in, pixels, out, stream);
  });
}

cudaError_t LaunchContrast(Number type, const Contrast& c, const void* in, void* out,
                           cudaStream_t stream) {
  return VisitSome(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(c.images * c.pixels * c.channels, stream,
                   MoveFromMean<T>{Coordinates<3>(c.images, c.pixels, c.channels), c,
                                   static_cast<const T*>(in), static_cast<T*>(out)});
  });
}

}  // namespace troupe::cuda
