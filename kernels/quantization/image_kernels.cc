// QuantizedInstanceNorm, QuantizedResizeBilinear, QuantizedBatchNormWithGlobalNormalization. The
// arithmetic is TensorFlow's, QuantizedInstanceNorm's up to the last bit of sums of floats.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/image/resize_shape.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// --- QuantizedInstanceNorm -----------------------------------------------------------------------

class InstanceNorm final : public Kernel {
 public:
  InstanceNorm(const KernelConstruction& c, absl::Status* status)
      : range_given_(c.Attr<bool>("output_range_given")),
        given_{c.Attr<float>("given_y_min"), c.Attr<float>("given_y_max")},
        epsilon_(c.Attr<float>("variance_epsilon")),
        min_separation_(c.Attr<float>("min_separation")) {
    if (range_given_ && !(given_.min < given_.max)) {
      *status = InvalidArgument("given_y_min must be less than given_y_max, got ", given_.min,
                                " and ", given_.max);
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4) {
      return InvalidArgument("x must be [batch, height, width, channels], got the shape ",
                             x.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadWideRange(ctx, 1));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, x.type(), x.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor normal, ctx.AllocateTemp(ElementType::kFloat, x.shape()));
    float* values = normal.mutable_data<float>();
    const int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
    ctx.ParallelFor(x.dim(0), KernelContext::GrainFor(5.0 * static_cast<double>(pixels * channels)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t image = begin; image < end; ++image) {
                        const int64_t at = image * pixels * channels;
                        Normalize(x.unchecked_data<quint8>() + at, pixels, channels,
                                  range.width() / 255.0f, values + at);
                      }
                    });
    const QuantizedRange to = OutputRange(normal.unchecked_values<float>());
    const ToInteger quantize = QuantizerOf<quint8>(to);
    quint8* out = output->mutable_data<quint8>();
    ctx.ParallelFor(x.num_elements(), KernelContext::GrainFor(0.2),
                    [&](int64_t begin, int64_t end) {
                      QuantizeAll(values + begin, end - begin, quantize, out + begin);
                    });
    return SetRange(ctx, 1, to);
  }

 private:
  /// One image. Means are of the integers.
  void Normalize(const quint8* in, int64_t pixels, int64_t channels, float step, float* out) const {
    std::vector<int64_t> sums(channels, 0);
    std::vector<float> means(channels), factors(channels, 0.0f);
    for (int64_t i = 0; i < pixels * channels; ++i) sums[i % channels] += in[i].value;
    const auto count = static_cast<float>(pixels);
    for (int64_t c = 0; c < channels; ++c) means[c] = static_cast<float>(sums[c]) / count;
    for (int64_t i = 0; i < pixels * channels; ++i) {
      const float x = step * (static_cast<float>(in[i].value) - means[i % channels]);
      out[i] = x;
      factors[i % channels] += x * x;
    }
    for (float& factor : factors) factor = 1.0f / std::sqrt(factor / count + epsilon_);
    for (int64_t i = 0; i < pixels * channels; ++i) out[i] *= factors[i % channels];
  }

  QuantizedRange OutputRange(absl::Span<const float> values) const {
    QuantizedRange range = given_;
    if (!range_given_) {
      range = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
      for (const float value : values) {
        range = {std::min(range.min, value), std::max(range.max, value)};
      }
    }
    if (range.width() < min_separation_) range.max = range.min + min_separation_;
    return range;
  }

  const bool range_given_;
  const QuantizedRange given_;
  const float epsilon_, min_separation_;
};

// --- QuantizedResizeBilinear ---------------------------------------------------------------------

/// The two old pixels of a new one along an axis, and how far it is from the first to the second.
struct Between {
  int64_t lower, upper;
  float fraction;
};

std::vector<Between> Positions(int64_t from, int64_t to, bool align_corners,
                               bool half_pixel_centers) {
  const float scale = ResizeScale(from, to, align_corners);
  std::vector<Between> positions(to);
  for (int64_t i = 0; i < to; ++i) {
    const auto x = static_cast<float>(i);
    const float at = half_pixel_centers ? (x + 0.5f) * scale - 0.5f : x * scale;
    const float floor = std::floor(at);
    const int64_t upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, from - 1);
    const int64_t lower = std::max<int64_t>(static_cast<int64_t>(floor), 0);
    positions[i] = {std::min(lower, upper), upper, at - floor};
  }
  return positions;
}

/// Between four pixels, the fractions in fixed point, of which Q has so many bits.
template <typename T>
struct Interpolate {
  static constexpr int kBits = sizeof(T) == 1 ? 7 : 30;
  static constexpr int64_t kOne = int64_t{1} << kBits;

  T operator()(T top_left, T top_right, T bottom_left, T bottom_right, float x, float y) const {
    const auto along_x = static_cast<int64_t>(x * static_cast<float>(kOne));
    const auto along_y = static_cast<int64_t>(y * static_cast<float>(kOne));
    const int64_t top = Mix(top_left, top_right, along_x);
    const int64_t bottom = Mix(bottom_left, bottom_right, along_x);
    const int64_t mixed = top + (bottom - top) / kOne * along_y;
    return T(static_cast<typename T::Storage>(
        std::clamp((mixed + kOne / 2) / kOne, kLowestOf<T>, kHighestOf<T>)));
  }

 private:
  /// TensorFlow's integers become floats first, of which 32 bits lose some.
  static int64_t Value(T q) { return static_cast<int64_t>(static_cast<float>(q.value)); }
  static int64_t Mix(T a, T b, int64_t fraction) {
    return Value(a) * kOne + (Value(b) - Value(a)) * fraction;
  }
};

template <>
struct Interpolate<float> {
  float operator()(float top_left, float top_right, float bottom_left, float bottom_right, float x,
                   float y) const {
    const float top = top_left + (top_right - top_left) * x;
    const float bottom = bottom_left + (bottom_right - bottom_left) * x;
    return top + (bottom - top) * y;
  }
};

absl::Status ResizeBilinear(KernelContext& ctx, bool align_corners, bool half_pixel_centers) {
  const Tensor& images = ctx.input(0);
  // TensorFlow takes both attributes here, and no other resizing op does.
  TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, ResizeShapeOf(images, ctx.input(1), {}));
  for (int i = 2; i < 4; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument("min and max must be scalars, got the shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 2));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * output,
      ctx.AllocateOutput(0, images.type(), Shape({s.batch, s.height, s.width, s.channels})));
  if (output->num_elements() == 0) return SetRange(ctx, 1, range);
  if (s.height == s.from_height && s.width == s.from_width) {
    std::copy_n(static_cast<const char*>(images.raw_data()), images.bytes(),
                static_cast<char*>(output->mutable_raw_data()));
    return SetRange(ctx, 1, range);
  }
  const std::vector<Between> rows =
      Positions(s.from_height, s.height, align_corners, half_pixel_centers);
  const std::vector<Between> columns =
      Positions(s.from_width, s.width, align_corners, half_pixel_centers);
  const int64_t row = s.from_width * s.channels;
  TROUPE_RETURN_IF_ERROR((SwitchType<quint8, qint32, float>(images.type(), [&]<typename T>() {
    const T* in = images.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    const Interpolate<T> interpolate;
    const double row_ns = 4.0 * static_cast<double>(s.width * s.channels);
    ctx.ParallelFor(s.batch * s.height, KernelContext::GrainFor(row_ns),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const Between& y = rows[i % s.height];
                        const T* image = in + i / s.height * s.from_height * row;
                        const T *upper = image + y.lower * row, *lower = image + y.upper * row;
                        T* to = out + i * s.width * s.channels;
                        for (const Between& x : columns) {
                          const int64_t left = x.lower * s.channels, right = x.upper * s.channels;
                          for (int64_t c = 0; c < s.channels; ++c) {
                            *to++ = interpolate(upper[left + c], upper[right + c], lower[left + c],
                                                lower[right + c], x.fraction, y.fraction);
                          }
                        }
                      }
                    });
    return absl::OkStatus();
  })));
  return SetRange(ctx, 1, range);
}

// --- QuantizedBatchNormWithGlobalNormalization ---------------------------------------------------

/// Fixed point, that of a range from -2^20 to 2^20; arithmetic wraps around as TensorFlow's does.
constexpr QuantizedRange kFixedPoint = {-1048576.0f, 1048576.0f};

int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

absl::Status BatchNorm(KernelContext& ctx, float epsilon, bool scale_after_normalization) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 4) {
    return InvalidArgument("t must be [batch, height, width, channels], got the shape ",
                           input.shape().ToString());
  }
  const int64_t channels = input.dim(3);
  std::vector<float> vectors[5];  // Real numbers: m, v, beta, gamma behind an unused one.
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1, /*any_rank=*/true));
  for (int i = 1; i < 5; ++i) {
    const Tensor& vector = ctx.input(3 * i);
    if (vector.rank() != 1 || vector.dim(0) != channels) {
      return InvalidArgument("input ", 3 * i, " must be a vector of the ", channels,
                             " channels, got the shape ", vector.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange of_vector,
                            ReadRange(ctx, 3 * i + 1, /*any_rank=*/true));
    for (const quint8 q : vector.unchecked_values<quint8>()) {
      vectors[i].push_back(DequantizeOne(q, of_vector));
    }
  }
  std::vector<int32_t> scales, offsets;
  for (int64_t c = 0; c < channels; ++c) {
    float scale = 1.0f / std::sqrt(vectors[2][c] + epsilon);
    if (scale_after_normalization) scale *= vectors[4][c];
    const float offset = -vectors[1][c] * scale + vectors[3][c];
    scales.push_back(QuantizeOne<qint32>(scale, kFixedPoint).value);
    offsets.push_back(QuantizeOne<qint32>(offset, kFixedPoint).value);
  }
  const int64_t one = QuantizeOne<qint32>(1.0f, kFixedPoint).value;
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kQint32, input.shape()));
  const quint8* in = input.unchecked_data<quint8>();
  qint32* out = output->mutable_data<qint32>();
  ctx.ParallelFor(
      input.num_elements(), KernelContext::GrainFor(20.0), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t x = QuantizeOne<qint32>(DequantizeOne(in[i], range), kFixedPoint).value;
          const int64_t scaled = Wrapped(x * scales[i % channels]) / one;
          out[i] = qint32(Wrapped(scaled + offsets[i % channels]));
        }
      });
  return SetRange(ctx, 1, kFixedPoint);
}

REGISTER_KERNEL(KernelSpec("QuantizedInstanceNorm").Types("T", {ElementType::kQuint8}),
                MakeKernel<InstanceNorm>);
REGISTER_KERNEL(KernelSpec("QuantizedResizeBilinear")
                    .Types("T", {ElementType::kQuint8, ElementType::kQint32, ElementType::kFloat}),
                (MakeAttrKernel<ResizeBilinear, "align_corners", "half_pixel_centers">));
REGISTER_KERNEL(KernelSpec("QuantizedBatchNormWithGlobalNormalization")
                    .Types("Tinput", {ElementType::kQuint8})
                    .Types("out_type", {ElementType::kQint32}),
                (MakeAttrKernel<BatchNorm, "variance_epsilon", "scale_after_normalization">));

}  // namespace
}  // namespace troupe
