// Resized images: a thread for each new channel of a pixel, or for some that lie together. Compiled
// without fused operations, so that pixels are those that the CPU finds.
#include "kernels/cuda/resize.h"

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/group.cuh"

namespace troupe::cuda {
namespace {

/// The two old pixels that a new one lies between, and how far behind the first.
struct Between {
  int64_t lower, upper;
  float fraction;

  __device__ float WeightOf(int64_t pixel) const {
    return (pixel == lower ? 1 - fraction : 0.0f) + (pixel == upper ? fraction : 0.0f);
  }
};

struct Axis : ResizedAxis {
  float inverse;
  explicit Axis(const ResizedAxis& axis) : ResizedAxis(axis), inverse(1 / axis.scale) {}

  __device__ int64_t Clamp(float pixel) const {
    const auto i = static_cast<int64_t>(pixel);
    return i < 0 ? 0 : i < from ? i : from - 1;
  }
  __device__ Between At(int64_t i) const {
    const auto x = static_cast<float>(i);
    if (nearest) {
      const float position = (x + (half_pixel_centers ? 0.5f : 0.0f)) * scale;
      const int64_t pixel = Clamp(align_corners ? roundf(position) : floorf(position));
      return {pixel, pixel, 0};
    }
    const float position = half_pixel_centers ? (x + 0.5f) * scale - 0.5f : x * scale;
    const float floor = floorf(position);
    return {Clamp(floor), Clamp(ceilf(position)), position - floor};
  }

  /// The first new pixel that is made of `pixel` or later ones,
  __device__ int64_t Begin(int64_t pixel) const {
    const float first = nearest ? (align_corners ? -0.5f : 0.0f) : -1.0f;
    return First(static_cast<float>(pixel) + first,
                 [&](int64_t i) { return At(i).upper >= pixel; });
  }
  /// and the first one made of later ones alone.
  __device__ int64_t End(int64_t pixel) const {
    const float first = nearest && align_corners ? 0.5f : 1.0f;
    return First(static_cast<float>(pixel) + first, [&](int64_t i) { return At(i).lower > pixel; });
  }

 private:
  /// The first new pixel for which `holds` does, as for all later ones: about the one at
  /// `position`.
  template <typename Holds>
  __device__ int64_t First(float position, Holds holds) const {
    const float shift = half_pixel_centers ? 0.5f : 0.0f;
    const float guess = (position + (nearest ? 0.0f : shift)) * inverse - shift;
    auto i = static_cast<int64_t>(fminf(fmaxf(guess, 0.0f), static_cast<float>(to)));
    if (i > to) i = to;
    while (i > 0 && holds(i - 1)) --i;
    while (i < to && !holds(i)) ++i;
    return i;
  }
};

template <typename T, int kPack>
struct Interpolate {
  Coordinates<4> items;  ///< Images, rows, columns, packs of channels.
  Axis rows, columns;
  int64_t channels;
  const T* in;
  float* out;

  __device__ void operator()(int64_t i) const {
    int64_t at[4];
    items.Split(i, at);
    const Between y = rows.At(at[1]), x = columns.At(at[2]);
    const auto load = [&](int64_t row, int64_t column) {
      return LoadPacked<kPack>(
          in, ((at[0] * rows.from + row) * columns.from + column) * channels + at[3] * kPack);
    };
    const Packed<T, kPack> a = load(y.lower, x.lower), b = load(y.lower, x.upper);
    const Packed<T, kPack> c = load(y.upper, x.lower), d = load(y.upper, x.upper);
    Packed<float, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const auto mix = [](float from, float to, float fraction) {
        return from + (to - from) * fraction;
      };
      const float top =
          mix(static_cast<float>(a.values[k]), static_cast<float>(b.values[k]), x.fraction);
      const float bottom =
          mix(static_cast<float>(c.values[k]), static_cast<float>(d.values[k]), x.fraction);
      result.values[k] = mix(top, bottom, y.fraction);
    }
    StorePacked(result, out, i * kPack);
  }
};

template <typename U>
struct Repeat {
  Coordinates<4> items;  ///< Images, rows, columns, parts of a pixel.
  Axis rows, columns;
  int64_t parts;
  const U* in;
  U* out;

  __device__ void operator()(int64_t i) const {
    int64_t at[4];
    items.Split(i, at);
    const int64_t row = rows.At(at[1]).lower, column = columns.At(at[2]).lower;
    out[i] = in[((at[0] * rows.from + row) * columns.from + column) * parts + at[3]];
  }
};

/// From gradients along an axis of new pixels to those of the old ones.
template <typename In, typename Out, int kPack>
struct SumAxis {
  Coordinates<3> items;  ///< Outer, old pixels, packs of inner elements.
  Axis axis;
  int64_t inner;
  const In* in;
  Out* out;

  __device__ void operator()(int64_t i) const {
    using W = WideType<In>;
    int64_t at[3];
    items.Split(i, at);
    W sums[kPack] = {};
    const int64_t end = axis.End(at[1]);
    for (int64_t j = axis.Begin(at[1]); j < end; ++j) {
      const Packed<In, kPack> dy =
          LoadPacked<kPack>(in, (at[0] * axis.to + j) * inner + at[2] * kPack);
      const auto weight = static_cast<W>(axis.nearest ? 1.0f : axis.At(j).WeightOf(at[1]));
#pragma unroll
      for (int k = 0; k < kPack; ++k) sums[k] += static_cast<W>(dy.values[k]) * weight;
    }
    Packed<Out, kPack> result;
    for (int k = 0; k < kPack; ++k) result.values[k] = static_cast<Out>(sums[k]);
    StorePacked(result, out, i * kPack);
  }
};

constexpr int kSome = 4;  // Channels, if they lie together, of types of up to 4 bytes.

template <typename T, int kPack>
cudaError_t RunBilinear(const Resizing& r, const void* in, float* out, cudaStream_t stream) {
  const int64_t packs = r.channels / kPack;
  return ForEach(
      r.batch * r.rows.to * r.columns.to * packs, stream,
      Interpolate<T, kPack>{Coordinates<4>(r.batch, r.rows.to, r.columns.to, packs), Axis(r.rows),
                            Axis(r.columns), r.channels, static_cast<const T*>(in), out});
}

template <typename In, typename Out, int kPack>
cudaError_t RunSum(int64_t outer, const ResizedAxis& axis, int64_t inner, const void* in, void* out,
                   cudaStream_t stream) {
  const int64_t packs = inner / kPack;
  return ForEach(outer * axis.from * packs, stream,
                 SumAxis<In, Out, kPack>{Coordinates<3>(outer, axis.from, packs), Axis(axis), inner,
                                         static_cast<const In*>(in), static_cast<Out*>(out)});
}

template <typename In, typename Out>
cudaError_t Sum(int64_t outer, const ResizedAxis& axis, int64_t inner, const void* in, void* out,
                cudaStream_t stream) {
  if constexpr (sizeof(In) <= 4 && sizeof(Out) <= 4) {
    if (inner % kSome == 0 && IsAligned(in) && IsAligned(out)) {
      return RunSum<In, Out, kSome>(outer, axis, inner, in, out, stream);
    }
  }
  return RunSum<In, Out, 1>(outer, axis, inner, in, out, stream);
}

}  // namespace

cudaError_t LaunchResizeBilinear(Number type, const Resizing& r, const void* in, float* out,
                                 cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (sizeof(T) <= 4) {
      if (r.channels % kSome == 0 && IsAligned(in) && IsAligned(out)) {
        return RunBilinear<T, kSome>(r, in, out, stream);
      }
    }
    return RunBilinear<T, 1>(r, in, out, stream);
  });
}

cudaError_t LaunchResizeNearest(int64_t bytes, const Resizing& r, const void* in, void* out,
                                cudaStream_t stream) {
  const int64_t pixel = r.channels * bytes;
  const int64_t part = Unit().Add(pixel).Add(in).Add(out).bytes();
  return VisitSize(part, [&](auto tag) {
    using U = typename decltype(tag)::Type;
    const int64_t parts = pixel / part;
    return ForEach(
        r.batch * r.rows.to * r.columns.to * parts, stream,
        Repeat<U>{Coordinates<4>(r.batch, r.rows.to, r.columns.to, parts), Axis(r.rows),
                  Axis(r.columns), parts, static_cast<const U*>(in), static_cast<U*>(out)});
  });
}

cudaError_t LaunchResizeGrad(Number from, Number to, const Resizing& r, const void* gradient,
                             void* scratch, void* out, cudaStream_t stream) {
  const cudaError_t error = VisitFloating(from, [&](auto tag) {
    using In = typename decltype(tag)::Type;
    return Sum<In, WideType<In>>(r.batch * r.rows.to, r.columns, r.channels, gradient, scratch,
                                 stream);
  });
  if (error != cudaSuccess) return error;
  const int64_t inner = r.columns.from * r.channels;
  if (from == Number::kDouble) {
    return Sum<double, double>(r.batch, r.rows, inner, scratch, out, stream);
  }
  return VisitFloating(to, [&](auto tag) {
    using Out = typename decltype(tag)::Type;
    return Sum<float, Out>(r.batch, r.rows, inner, scratch, out, stream);
  });
}

}  // namespace troupe::cuda
