// Crops: a thread for each channel of a pixel, or for some that lie together. Gradients of images
// look for the boxes that a pixel is in; those of boxes have a block each. Compiled without fused
// operations: what lies at the edge of an image must not fall off it.
#include "kernels/cuda/crop.h"

#include "kernels/cuda/coordinates.cuh"
#include "kernels/cuda/group.cuh"
#include "kernels/cuda/late_check.cuh"
#include "kernels/image/crop_position.h"

namespace troupe::cuda {
namespace {

constexpr int kSome = 4;  // Channels, if they lie together, of types of up to 4 bytes.

__device__ CropAxis RowsOf(const Crops& c, int64_t box) {
  return {c.crop_height, c.height, c.boxes[4 * box], c.boxes[4 * box + 2]};
}
__device__ CropAxis ColumnsOf(const Crops& c, int64_t box) {
  return {c.crop_width, c.width, c.boxes[4 * box + 1], c.boxes[4 * box + 3]};
}
/// False for a box that has been reported.
__device__ bool IsOfImage(const Crops& c, int64_t image) { return image >= 0 && image < c.batch; }

struct CheckBox {
  Crops c;
  LateCheck check;
  __device__ void operator()(int64_t i) const {
    if (!IsOfImage(c, c.indices[i])) ReportLate(check, i, c.indices[i], c.batch);
    for (int k = 0; k < 4; ++k) {
      if (!isfinite(c.boxes[4 * i + k])) ReportLate(check, i, -1, -1);
    }
  }
};

template <typename T, int kPack>
struct CropPixels {
  Coordinates<4> items;  ///< Boxes, rows, columns, packs of channels.
  Crops c;
  const T* images;
  float outside;
  float* crops;

  __device__ void operator()(int64_t i) const {
    int64_t at[4];
    items.Split(i, at);
    const int64_t image = c.indices[at[0]];
    const CropPosition y = CropPosition::Of(RowsOf(c, at[0]), at[1]);
    const CropPosition x = CropPosition::Of(ColumnsOf(c, at[0]), at[2]);
    Packed<float, kPack> result;
    if (!y.inside() || !x.inside() || !IsOfImage(c, image)) {
      for (int k = 0; k < kPack; ++k) result.values[k] = outside;
      StorePacked(result, crops, i * kPack);
      return;
    }
    const auto load = [&](int64_t row, int64_t column) {
      const Packed<T, kPack> pixel = LoadPacked<kPack>(
          images, ((image * c.height + row) * c.width + column) * c.channels + at[3] * kPack);
      Packed<float, kPack> wide;
      for (int k = 0; k < kPack; ++k) wide.values[k] = static_cast<float>(pixel.values[k]);
      return wide;
    };
    if (c.nearest) {
      StorePacked(load(y.nearest(), x.nearest()), crops, i * kPack);
      return;
    }
    const auto mix = [](const Packed<float, kPack>& from, const Packed<float, kPack>& to,
                        float fraction) {
      Packed<float, kPack> mixed;
      for (int k = 0; k < kPack; ++k) {
        mixed.values[k] = from.values[k] + (to.values[k] - from.values[k]) * fraction;
      }
      return mixed;
    };
    const Packed<float, kPack> top =
        mix(load(y.lower, x.lower), load(y.lower, x.upper), x.fraction);
    const Packed<float, kPack> bottom =
        mix(load(y.upper, x.lower), load(y.upper, x.upper), x.fraction);
    StorePacked(mix(top, bottom, y.fraction), crops, i * kPack);
  }
};

/// The pixels of a crop that may have a part of a pixel of the image, counted in the direction in
/// which they lie there.
struct Around {
  CropAxis axis;
  bool falling;
  int64_t begin = 0, end = 0;

  __device__ Around(const CropAxis& a, int64_t pixel) : axis(a), falling(a.from > a.to) {
    const float before = static_cast<float>(pixel) - 1, behind = static_cast<float>(pixel) + 1;
    const float first = At(0);
    if (first >= behind || At(axis.crop_size - 1) <= before) return;
    const float step = axis.crop_size > 1 ? At(1) - first : 0;
    begin = First((before - first) / step, [&](float at) { return at > before; });
    end = First((behind - first) / step, [&](float at) { return at >= behind; });
  }
  __device__ int64_t InCrop(int64_t i) const { return falling ? axis.crop_size - 1 - i : i; }
  /// How much of the i-th one comes from a pixel of the image.
  __device__ float WeightOf(int64_t pixel, int64_t i, bool nearest) const {
    const CropPosition at = CropPosition::Of(axis, InCrop(i));
    if (nearest) return at.inside() && at.nearest() == pixel ? 1 : 0;
    return (at.lower == pixel ? 1 - at.fraction : 0.0f) + (at.upper == pixel ? at.fraction : 0.0f);
  }

 private:
  __device__ float At(int64_t i) const { return axis.At(InCrop(i)); }
  /// The first one at a position for which `holds` does, as for all later ones: about `guess`.
  template <typename Holds>
  __device__ int64_t First(float guess, Holds holds) const {
    const auto count = static_cast<float>(axis.crop_size);
    auto i = static_cast<int64_t>(fminf(fmaxf(guess, 0.0f), count));
    if (i > axis.crop_size) i = axis.crop_size;
    while (i > 0 && holds(At(i - 1))) --i;
    while (i < axis.crop_size && !holds(At(i))) ++i;
    return i;
  }
};

template <typename T, int kPack>
struct CropGradImage {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Coordinates<4> items;  ///< Images, rows, columns, packs of channels.
  Crops c;
  const float* grads;
  T* out;

  __device__ void operator()(int64_t i) const {
    int64_t at[4];
    items.Split(i, at);
    Sum sums[kPack] = {};
    for (int64_t box = 0; box < c.count; ++box) {
      if (c.indices[box] != at[0]) continue;
      const Around rows(RowsOf(c, box), at[1]);
      if (rows.begin == rows.end) continue;
      const Around columns(ColumnsOf(c, box), at[2]);
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        const float row_weight = rows.WeightOf(at[1], y, c.nearest);
        if (row_weight == 0) continue;
        const int64_t row = (box * c.crop_height + rows.InCrop(y)) * c.crop_width;
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          const float weight = row_weight * columns.WeightOf(at[2], x, c.nearest);
          if (weight == 0) continue;
          const Packed<float, kPack> grad =
              LoadPacked<kPack>(grads, (row + columns.InCrop(x)) * c.channels + at[3] * kPack);
          for (int k = 0; k < kPack; ++k) sums[k] += static_cast<Sum>(grad.values[k] * weight);
        }
      }
    }
    Packed<T, kPack> result;
    for (int k = 0; k < kPack; ++k) result.values[k] = static_cast<T>(sums[k]);
    StorePacked(result, out, i * kPack);
  }
};

/// The gradients of the ends of a box.
struct Ends {
  double y1, x1, y2, x2;
};

/// For the ends of an axis, of a pixel's by its position in the image.
__device__ void AddEnds(double by_position, int64_t i, const CropAxis& axis, double* from,
                        double* to) {
  const double part =
      axis.crop_size > 1 ? static_cast<double>(i) / static_cast<double>(axis.crop_size - 1) : 0.5;
  *from += by_position * static_cast<double>(axis.size - 1) * (1 - part);
  *to += by_position * static_cast<double>(axis.size - 1) * part;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CropGradBoxes(Crops c, Coordinates<3> items, const float* grads, const T* images, float* out) {
  __shared__ Ends of_warps[kWarps];
  const int64_t size = c.crop_height * c.crop_width * c.channels;
  for (int64_t box = blockIdx.x; box < c.count; box += gridDim.x) {
    const CropAxis rows = RowsOf(c, box), columns = ColumnsOf(c, box);
    const int64_t image = c.indices[box];
    Ends ends{0, 0, 0, 0};
    for (int64_t i = IsOfImage(c, image) ? threadIdx.x : size; i < size; i += kThreads) {
      int64_t at[3];
      items.Split(i, at);
      const CropPosition y = CropPosition::Of(rows, at[0]), x = CropPosition::Of(columns, at[1]);
      if (!y.inside() || !x.inside()) continue;
      const auto pixel = [&](int64_t row, int64_t column) {
        return static_cast<float>(
            images[((image * c.height + row) * c.width + column) * c.channels + at[2]]);
      };
      const float top = pixel(y.lower, x.lower), top_end = pixel(y.lower, x.upper);
      const float bottom = pixel(y.upper, x.lower), bottom_end = pixel(y.upper, x.upper);
      const float grad = grads[box * size + i];
      const float down = (1 - x.fraction) * (bottom - top) + x.fraction * (bottom_end - top_end);
      const float right = (1 - y.fraction) * (top_end - top) + y.fraction * (bottom_end - bottom);
      AddEnds(static_cast<double>(grad * down), at[0], rows, &ends.y1, &ends.y2);
      AddEnds(static_cast<double>(grad * right), at[1], columns, &ends.x1, &ends.x2);
    }
    ends = JoinGroup(ends, kThreads, of_warps, [](const Ends& a, const Ends& b) {
      return Ends{a.y1 + b.y1, a.x1 + b.x1, a.y2 + b.y2, a.x2 + b.x2};
    });
    if (threadIdx.x != 0) continue;
    const double all[] = {ends.y1, ends.x1, ends.y2, ends.x2};
    for (int k = 0; k < 4; ++k) out[4 * box + k] = static_cast<float>(all[k]);
  }
}

/// Calls fn with the type of the image's elements.
template <typename Fn>
cudaError_t VisitImage(Number type, Fn fn) {
  switch (type) {
    case Number::kHalf:
      return fn(TypeTag<__half>());
    case Number::kFloat:
      return fn(TypeTag<float>());
    case Number::kDouble:
      return fn(TypeTag<double>());
    default:
      return cudaErrorNotSupported;
  }
}

/// Whether threads take kSome channels of tensors at these addresses.
template <typename T>
bool TakesSome(const Crops& c, const void* a, const void* b) {
  return sizeof(T) <= 4 && c.channels % kSome == 0 && IsAligned(a) && IsAligned(b);
}

template <typename T, int kPack>
cudaError_t RunCrop(const Crops& c, const T* images, float outside, float* crops,
                    cudaStream_t stream) {
  const int64_t packs = c.channels / kPack;
  return ForEach(c.count * c.crop_height * c.crop_width * packs, stream,
                 CropPixels<T, kPack>{Coordinates<4>(c.count, c.crop_height, c.crop_width, packs),
                                      c, images, outside, crops});
}

template <typename T, int kPack>
cudaError_t RunGradImage(const Crops& c, const float* grads, T* out, cudaStream_t stream) {
  const int64_t packs = c.channels / kPack;
  return ForEach(
      c.batch * c.height * c.width * packs, stream,
      CropGradImage<T, kPack>{Coordinates<4>(c.batch, c.height, c.width, packs), c, grads, out});
}

}  // namespace

cudaError_t LaunchCheckCrops(const Crops& c, const LateCheck& check, cudaStream_t stream) {
  return ForEach(c.count, stream, CheckBox{c, check});
}

cudaError_t LaunchCrop(Number type, const Crops& c, const void* images, float outside, float* crops,
                       cudaStream_t stream) {
  return VisitImage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto* const from = static_cast<const T*>(images);
    if constexpr (sizeof(T) <= 4) {
      if (TakesSome<T>(c, images, crops)) {
        return RunCrop<T, kSome>(c, from, outside, crops, stream);
      }
    }
    return RunCrop<T, 1>(c, from, outside, crops, stream);
  });
}

cudaError_t LaunchCropGradImage(Number type, const Crops& c, const float* grads, void* out,
                                cudaStream_t stream) {
  return VisitImage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (sizeof(T) <= 4) {
      if (TakesSome<T>(c, grads, out)) {
        return RunGradImage<T, kSome>(c, grads, static_cast<T*>(out), stream);
      }
    }
    return RunGradImage<T, 1>(c, grads, static_cast<T*>(out), stream);
  });
}

cudaError_t LaunchCropGradBoxes(Number type, const Crops& c, const float* grads, const void* images,
                                float* out, cudaStream_t stream) {
  return VisitImage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return Launch(&CropGradBoxes<T>, static_cast<unsigned>(std::min<int64_t>(c.count, INT32_MAX)),
                  kThreads, stream, c, Coordinates<3>(c.crop_height, c.crop_width, c.channels),
                  grads, static_cast<const T*>(images), out);
  });
}

}  // namespace troupe::cuda
