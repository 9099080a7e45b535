// Depthwise convolutions. A thread computes some rows of a column of the result, of 16 bytes of
// channels where these lie together: it reads the filter once for all of them. Gradients of the
// input are convolutions that read the output; those of the filter are sums over all pixels.
#include "kernels/cuda/depthwise.h"
#include "kernels/cuda/tap_sums.cuh"
#include "kernels/cuda/windows.cuh"

namespace troupe::cuda {
namespace {

/// Rows of the result for a thread.
constexpr int kRows = 4;

template <bool kBackward>
__device__ int64_t Source(const Slide& axis, int64_t at, int64_t tap) {
  return kBackward ? axis.WindowWith(at, tap) : axis.ElementAt(at, tap);
}

template <typename T, int kPack, bool kBackward>
struct Convolve {
  /// Images, pieces of kRows rows, columns, packs of channels; or, channels first: images,
  /// channels, pieces, columns.
  Coordinates<4> items;
  Slide rows, columns;
  ImageSteps from_steps, to_steps;
  int64_t multiplier, out_depth;
  Division by_multiplier;
  bool channels_first;
  const T *from, *filter;
  T* to;

  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    int64_t at[4];
    items.Split(i, at);
    const int64_t channel = channels_first ? at[1] : at[3] * kPack;
    const int64_t first_row = (channels_first ? at[2] : at[1]) * kRows;
    const int64_t column = channels_first ? at[3] : at[2];
    const int64_t last_row = kBackward ? rows.input : rows.output;
    int64_t source, rest;  // Channels of the other side; forwards it is one.
    if (kBackward) {
      source = channel * multiplier;
    } else {
      source = by_multiplier.Divide(channel, &rest);
    }
    const int64_t sources = kBackward ? multiplier : 1;
    const int64_t weight = kBackward ? source : channel;
    const int64_t image = from_steps.At(at[0], 0, 0, source);

    W sums[kRows][kPack] = {};
    for (int64_t r = 0; r < rows.size; ++r) {
      int64_t lines[kRows];  // Where they begin, or -1.
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
        const int64_t y = first_row + t < last_row ? Source<kBackward>(rows, first_row + t, r) : -1;
        lines[t] = y < 0 ? -1 : image + y * from_steps.row;
      }
      for (int64_t c = 0; c < columns.size; ++c) {
        const int64_t x = Source<kBackward>(columns, column, c);
        if (x < 0) continue;
        for (int64_t q = 0; q < sources; ++q) {
          const Packed<T, kPack> w =
              LoadPacked<kPack>(filter, (r * columns.size + c) * out_depth + weight + q);
#pragma unroll
          for (int t = 0; t < kRows; ++t) {
            if (lines[t] < 0) continue;
            const Packed<T, kPack> v =
                LoadPacked<kPack>(from, lines[t] + x * from_steps.column + q * from_steps.channel);
#pragma unroll
            for (int k = 0; k < kPack; ++k) {
              sums[t][k] += static_cast<W>(v.values[k]) * static_cast<W>(w.values[k]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kRows; ++t) {
      if (first_row + t >= last_row) break;
      Packed<T, kPack> result;
      for (int k = 0; k < kPack; ++k) result.values[k] = static_cast<T>(sums[t][k]);
      StorePacked(result, to, to_steps.At(at[0], first_row + t, column, channel));
    }
  }
};

template <typename T, int kPack>
struct FilterGrad {
  Coordinates<3> pixels;  ///< Images, rows, columns of the output.
  Slide rows, columns;
  ImageSteps in_steps, out_steps;
  int64_t taps;
  Division by_multiplier, by_columns;
  const T *input, *gradient;

  __device__ void Add(int64_t pixel, int64_t first_tap, int64_t channel,
                      WideType<T> (&sums)[kTapsAtOnce][kPack]) const {
    using W = WideType<T>;
    int64_t at[3], rest, c;
    pixels.Split(pixel, at);
    const int64_t source = by_multiplier.Divide(channel, &rest);
    int64_t r = by_columns.Divide(first_tap, &c);
    const Packed<T, kPack> dy =
        LoadPacked<kPack>(gradient, out_steps.At(at[0], at[1], at[2], channel));
#pragma unroll
    for (int k = 0; k < kTapsAtOnce; ++k) {
      if (first_tap + k >= taps) break;
      const int64_t y = rows.ElementAt(at[1], r), x = columns.ElementAt(at[2], c);
      if (++c == columns.size) {
        c = 0;
        ++r;
      }
      if (y < 0 || x < 0) continue;
      const Packed<T, kPack> v = LoadPacked<kPack>(input, in_steps.At(at[0], y, x, source));
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        sums[k][j] += static_cast<W>(v.values[j]) * static_cast<W>(dy.values[j]);
      }
    }
  }
};

int64_t OutDepth(const Depthwise& d) { return d.depth * d.multiplier; }
ImageSteps InSteps(const Depthwise& d) {
  return {d.rows.input, d.columns.input, d.depth, d.channels_first};
}
ImageSteps OutSteps(const Depthwise& d) {
  return {d.rows.output, d.columns.output, OutDepth(d), d.channels_first};
}
/// Whether threads take `pack` channels, which are the same on both sides.
bool IsPacked(const Depthwise& d, int pack) {
  return !d.channels_first && d.multiplier == 1 && d.depth % pack == 0;
}

template <typename T, int kPack, bool kBackward>
cudaError_t RunConvolve(const Depthwise& d, const T* from, const T* filter, T* to,
                        cudaStream_t stream) {
  const int64_t rows = kBackward ? d.rows.input : d.rows.output;
  const int64_t columns = kBackward ? d.columns.input : d.columns.output;
  const int64_t packs = (kBackward ? d.depth : OutDepth(d)) / kPack;
  const int64_t pieces = (rows + kRows - 1) / kRows;
  const Coordinates<4> items = d.channels_first ? Coordinates<4>(d.batch, packs, pieces, columns)
                                                : Coordinates<4>(d.batch, pieces, columns, packs);
  const Convolve<T, kPack, kBackward> body{items,
                                           Slide(d.rows),
                                           Slide(d.columns),
                                           kBackward ? OutSteps(d) : InSteps(d),
                                           kBackward ? InSteps(d) : OutSteps(d),
                                           d.multiplier,
                                           OutDepth(d),
                                           Division(d.multiplier, OutDepth(d)),
                                           d.channels_first,
                                           from,
                                           filter,
                                           to};
  return ForEach(d.batch * pieces * columns * packs, stream, body);
}

template <bool kBackward>
cudaError_t Run(Number type, const Depthwise& d, const void* from, const void* filter, void* to,
                cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kPack = 16 / sizeof(T);
    const auto run = [&](auto convolve) {
      return convolve(d, static_cast<const T*>(from), static_cast<const T*>(filter),
                      static_cast<T*>(to), stream);
    };
    const bool packed = IsPacked(d, kPack) && IsAligned(from) && IsAligned(filter) && IsAligned(to);
    return packed ? run(&RunConvolve<T, kPack, kBackward>) : run(&RunConvolve<T, 1, kBackward>);
  });
}

template <typename T, int kPack>
cudaError_t RunFilterGrad(const Depthwise& d, const void* input, const void* gradient,
                          void* scratch, void* output, cudaStream_t stream) {
  const TapSums sums = d.filter_sums();
  const FilterGrad<T, kPack> body{Coordinates<3>(d.batch, d.rows.output, d.columns.output),
                                  Slide(d.rows),
                                  Slide(d.columns),
                                  InSteps(d),
                                  OutSteps(d),
                                  sums.taps,
                                  Division(d.multiplier, OutDepth(d)),
                                  Division(d.columns.size, sums.taps),
                                  static_cast<const T*>(input),
                                  static_cast<const T*>(gradient)};
  return LaunchTapSums<T, kPack>(sums, body, scratch, static_cast<T*>(output), stream);
}

}  // namespace

cudaError_t LaunchDepthwise(Number type, const Depthwise& d, const void* input, const void* filter,
                            void* output, cudaStream_t stream) {
  return Run<false>(type, d, input, filter, output, stream);
}

cudaError_t LaunchDepthwiseInputGrad(Number type, const Depthwise& d, const void* filter,
                                     const void* gradient, void* output, cudaStream_t stream) {
  return Run<true>(type, d, gradient, filter, output, stream);
}

cudaError_t LaunchDepthwiseFilterGrad(Number type, const Depthwise& d, const void* input,
                                      const void* gradient, void* scratch, void* output,
                                      cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    // Sums of all taps stay in registers.
    constexpr int kPack = sizeof(T) == 8 ? 2 : 4;
    const bool packed = IsPacked(d, kPack) && IsAligned(input) && IsAligned(gradient);
    return packed ? RunFilterGrad<T, kPack>(d, input, gradient, scratch, output, stream)
                  : RunFilterGrad<T, 1>(d, input, gradient, scratch, output, stream);
  });
}

}  // namespace troupe::cuda
