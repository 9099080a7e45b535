// CropAndResize and its gradients.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/image/crop_position.h"
#include "kernels/image/crop_shape.h"
#include "kernels/kernel.h"
#include "kernels/math/cast.h"
#include "kernels/simd/resize.h"

namespace troupe {
namespace {

struct Box {
  float y1, x1, y2, x2;
  int64_t image;
  CropPosition Row(int64_t y, const CropShape& s) const {
    return CropPosition::Of({s.crop_height, s.height, y1, y2}, y);
  }
  CropPosition Column(int64_t x, const CropShape& s) const {
    return CropPosition::Of({s.crop_width, s.width, x1, x2}, x);
  }
};

/// The columns of a box's crop: those inside of the image are neighbors.
struct Columns {
  Columns(const Box& box, const CropShape& s) {
    for (int64_t x = 0; x < s.crop_width; ++x) {
      const CropPosition at = box.Column(x, s);
      if (!at.inside()) {
        if (positions.empty()) ++first;
        continue;
      }
      positions.push_back(at);
    }
  }
  int64_t size() const { return static_cast<int64_t>(positions.size()); }

  int64_t first = 0;  ///< Columns before those inside.
  std::vector<CropPosition> positions;
};

/// The boxes, each of one of `batch` images. They are read once, and checked.
absl::StatusOr<std::vector<Box>> ReadBoxes(const CropBoxes& boxes, int64_t batch) {
  std::vector<Box> result(static_cast<size_t>(boxes.boxes.dim(0)));
  const float* at = boxes.boxes.unchecked_data<float>();
  for (size_t i = 0; i < result.size(); ++i, at += 4) {
    const int32_t image = boxes.indices.unchecked_data<int32_t>()[i];
    if (image < 0 || image >= batch) return BadCropIndex(static_cast<int64_t>(i), image, batch);
    result[i] = {at[0], at[1], at[2], at[3], image};
    for (int k = 0; k < 4; ++k) {
      if (!std::isfinite(at[k])) return InfiniteCropBox(static_cast<int64_t>(i));
    }
  }
  return result;
}

/// The rows of one crop.
template <typename T>
class CropRows {
 public:
  CropRows(const CropShape& s, const T* images, const Box& box, bool nearest)
      : s_(s),
        image_(images + box.image * s.height * s.width * s.channels),
        box_(box),
        columns_(box, s),
        nearest_(nearest) {
    for (const CropPosition& at : columns_.positions) {
      if (nearest) {
        pixels_.push_back(static_cast<int32_t>(at.nearest()));
        continue;
      }
      for (const int64_t pixel : {at.lower, at.upper}) {
        pixels_.push_back(static_cast<int32_t>(pixel));
        weights_.push_back(at.fraction);  // The first of the two is not read.
      }
    }
    taken_.resize(kReadsInPlace && !nearest ? 0 : pixels_.size() * s.channels);
    if (nearest) return;
    const int64_t n = columns_.size();
    for (Blend& blend : blends_) blend.row.resize(n * s.channels);
    taps_ = {nullptr, pixels_.data(), weights_.data(), n, s.channels, 0};
    if constexpr (kReadsInPlace) {
      // The last pixels of a row are not read as four numbers.
      const bool fours = s.channels == 3 || s.channels == 4;
      while (fours && taps_.whole + 1 < n &&
             (columns_.positions[taps_.whole].upper + 1) * s.channels + 1 <= s.width * s.channels) {
        ++taps_.whole;
      }
    } else {
      wide_.resize(taken_.size());
      for (size_t i = 0; i < pixels_.size(); ++i) compact_.push_back(static_cast<int32_t>(i));
      taps_.indices = compact_.data();
      taps_.whole = s.channels == 4 ? n : s.channels == 3 ? std::max<int64_t>(n - 1, 0) : 0;
    }
  }

  /// `out`: a whole row, with `outside` where there is no image.
  void Fill(int64_t y, float outside, float* out) {
    const CropPosition row = box_.Row(y, s_);
    const int64_t size = s_.crop_width * s_.channels;
    if (!row.inside()) {
      std::fill_n(out, size, outside);
      return;
    }
    const int64_t before = columns_.first * s_.channels;
    const int64_t inside = columns_.size() * s_.channels;
    std::fill_n(out, before, outside);
    std::fill(out + before + inside, out + size, outside);
    if (inside == 0) return;
    if (nearest_) {
      Take(row.nearest());
      Widen(inside, out + before);
    } else {
      const float* top = Blended(row.lower, row.upper);
      Resize().lerp_rows(top, Blended(row.upper, row.lower), row.fraction, inside, out + before);
    }
  }

 private:
  static constexpr bool kReadsInPlace = std::is_same_v<T, float> || std::is_same_v<T, uint8_t>;

  /// A row of the image between its columns.
  struct Blend {
    int64_t source = -1;
    std::vector<float> row;
  };

  /// Row `y`, which is kept as long as not two others have been asked for; not in place of row
  /// `other`.
  const float* Blended(int64_t y, int64_t other) {
    for (const Blend& blend : blends_) {
      if (blend.source == y) return blend.row.data();
    }
    Blend& blend = blends_[blends_[0].source == other ? 1 : 0];
    blend.source = y;
    if constexpr (std::is_same_v<T, float>) {
      Resize().lerp_floats(taps_, Row(y), blend.row.data());
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      Resize().lerp_bytes(taps_, Row(y), blend.row.data());
    } else {
      Take(y);
      Widen(static_cast<int64_t>(taken_.size()), wide_.data());
      Resize().lerp_floats(taps_, wide_.data(), blend.row.data());
    }
    return blend.row.data();
  }

  const T* Row(int64_t y) const { return image_ + y * s_.width * s_.channels; }

  /// taken_ = the pixels of row `y` that are needed.
  void Take(int64_t y) {
    switch (s_.channels) {
      case 1:
        return TakePixels<1>(Row(y));
      case 3:
        return TakePixels<3>(Row(y));
      case 4:
        return TakePixels<4>(Row(y));
      default:
        return TakePixels<0>(Row(y));
    }
  }
  template <int kChannels>
  void TakePixels(const T* row) {
    const int64_t channels = kChannels > 0 ? kChannels : s_.channels;
    T* to = taken_.data();
    for (const int32_t pixel : pixels_) to = std::copy_n(row + pixel * channels, channels, to);
  }
  void Widen(int64_t n, float* out) const {
    if constexpr (std::is_same_v<T, float>) {
      std::copy_n(taken_.data(), n, out);
    } else {
      static const simd::UnaryFn widen = FindCast(kElementType<T>, ElementType::kFloat);
      widen(taken_.data(), out, n);
    }
  }

  const CropShape& s_;
  const T* image_;
  const Box& box_;
  const Columns columns_;
  const bool nearest_;
  RowTaps taps_;
  std::vector<int32_t> pixels_, compact_;
  std::vector<float> weights_, wide_;
  std::vector<T> taken_;
  Blend blends_[2];
};

class CropKernel final : public Kernel {
 public:
  CropKernel(KernelConstruction& c, absl::Status*)
      : nearest_(c.Attr<std::string>("method") == "nearest"),
        outside_(c.Attr<float>("extrapolation_value")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const CropBoxes inputs{ctx.input(1), ctx.input(2)};
    TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropShapeOf(image, inputs, ctx.input(3)));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Box> boxes, ReadBoxes(inputs, s.batch));
    TROUPE_ASSIGN_OR_RETURN(Tensor * crops,
                            ctx.AllocateOutput(0, ElementType::kFloat, s.crops_shape()));
    if (crops->num_elements() == 0) return absl::OkStatus();
    const int64_t row_size = s.crop_width * s.channels;
    return SwitchReal(image.type(), [&]<typename T>() {
      ctx.ParallelFor(
          s.boxes * s.crop_height, KernelContext::GrainFor(1.0 * static_cast<double>(row_size)),
          [&](int64_t begin, int64_t end) {
            while (begin < end) {
              const int64_t box = begin / s.crop_height, first = box * s.crop_height;
              const int64_t last = std::min(end, first + s.crop_height);
              CropRows<T> rows(s, image.unchecked_data<T>(), boxes[box], nearest_);
              for (; begin < last; ++begin) {
                rows.Fill(begin - first, outside_, crops->mutable_data<float>() + begin * row_size);
              }
            }
          });
      return absl::OkStatus();
    });
  }

 private:
  const bool nearest_;
  const float outside_;
};

class CropGradImageKernel final : public Kernel {
 public:
  CropGradImageKernel(KernelConstruction& c, absl::Status*)
      : nearest_(c.Attr<std::string>("method") == "nearest"), type_(c.output_type(0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    const CropBoxes inputs{ctx.input(1), ctx.input(2)};
    TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropGradImageShapeOf(grads, inputs, ctx.input(3)));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Box> boxes, ReadBoxes(inputs, s.batch));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, s.image_shape()));
    return SwitchType<float, double, half>(type_, [&]<typename T>() {
      Fill<T>(ctx, s, boxes, grads.unchecked_data<float>(), out->mutable_data<T>());
      return absl::OkStatus();
    });
  }

 private:
  /// A row of a crop's gradient, for a row of an image.
  struct Part {
    int64_t box, y;
    float weight;
  };

  /// The parts of each row of the images, in the order of the boxes.
  std::vector<std::vector<Part>> PartsOfRows(const CropShape& s,
                                             const std::vector<Box>& boxes) const {
    std::vector<std::vector<Part>> parts(static_cast<size_t>(s.batch * s.height));
    for (int64_t b = 0; b < s.boxes; ++b) {
      for (int64_t y = 0; y < s.crop_height; ++y) {
        const CropPosition at = boxes[b].Row(y, s);
        if (!at.inside()) continue;
        const int64_t image = boxes[b].image * s.height;
        if (nearest_) {
          parts[image + at.nearest()].push_back({b, y, 1});
          continue;
        }
        parts[image + at.lower].push_back({b, y, 1 - at.fraction});
        if (at.fraction > 0) parts[image + at.upper].push_back({b, y, at.fraction});
      }
    }
    return parts;
  }

  // Each row of an image takes what comes to it, so that sums have one order.
  template <typename T>
  void Fill(KernelContext& ctx, const CropShape& s, const std::vector<Box>& boxes,
            const float* grads, T* out) const {
    using SumType = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const int64_t row_size = s.width * s.channels;
    const std::vector<std::vector<Part>> parts = PartsOfRows(s, boxes);
    std::vector<Columns> columns;
    for (const Box& box : boxes) columns.emplace_back(box, s);
    const double row_ns =
        static_cast<double>(row_size) + 4.0 * static_cast<double>(s.boxes * s.crop_height) *
                                            static_cast<double>(s.crop_width * s.channels) /
                                            static_cast<double>(s.height);
    ctx.ParallelFor(s.batch * s.height, KernelContext::GrainFor(row_ns),
                    [&](int64_t begin, int64_t end) {
                      std::vector<SumType> sum(static_cast<size_t>(row_size));
                      for (int64_t i = begin; i < end; ++i) {
                        std::fill(sum.begin(), sum.end(), SumType(0));
                        for (const Part& part : parts[i]) {
                          const Columns& across = columns[part.box];
                          const int64_t first =
                              (part.box * s.crop_height + part.y) * s.crop_width + across.first;
                          AddRow(s, across, part.weight, grads + first * s.channels, sum.data());
                        }
                        T* to = out + i * row_size;
                        for (int64_t x = 0; x < row_size; ++x) to[x] = static_cast<T>(sum[x]);
                      }
                    });
  }

  template <typename SumType>
  void AddRow(const CropShape& s, const Columns& columns, float weight, const float* grad,
              SumType* sum) const {
    for (const CropPosition& column : columns.positions) {
      if (nearest_) {
        Add(grad, weight, s.channels, sum + column.nearest() * s.channels);
      } else {
        Add(grad, weight * (1 - column.fraction), s.channels, sum + column.lower * s.channels);
        Add(grad, weight * column.fraction, s.channels, sum + column.upper * s.channels);
      }
      grad += s.channels;
    }
  }

  template <typename SumType>
  static void Add(const float* grad, float weight, int64_t channels, SumType* sum) {
    for (int64_t c = 0; c < channels; ++c) sum[c] += static_cast<SumType>(grad[c] * weight);
  }

  const bool nearest_;
  const ElementType type_;
};

/// The gradient for the ends of a box along an axis, of a pixel's by its position in the image.
struct EndGradients {
  double from = 0, to = 0;
  void Add(double by_position, int64_t i, int64_t crop_size, int64_t size) {
    const double part =
        crop_size > 1 ? static_cast<double>(i) / static_cast<double>(crop_size - 1) : 0.5;
    from += by_position * static_cast<double>(size - 1) * (1 - part);
    to += by_position * static_cast<double>(size - 1) * part;
  }
};

/// `grads` are those of the box's crop; `image` is what it was cut from.
template <typename T>
void BoxGradient(const CropShape& s, const Box& box, const T* image, const float* grads,
                 float* out) {
  EndGradients rows, columns;
  const Columns across(box, s);
  for (int64_t y = 0; y < s.crop_height; ++y) {
    const CropPosition row = box.Row(y, s);
    if (!row.inside()) continue;
    const float* grad = grads + (y * s.crop_width + across.first) * s.channels;
    for (int64_t x = 0; x < across.size(); ++x, grad += s.channels) {
      const CropPosition& column = across.positions[x];
      const auto pixel = [&](int64_t at_y, int64_t at_x) {
        return image + (at_y * s.width + at_x) * s.channels;
      };
      const T *top = pixel(row.lower, column.lower), *top_end = pixel(row.lower, column.upper);
      const T *bottom = pixel(row.upper, column.lower),
              *bottom_end = pixel(row.upper, column.upper);
      double by_y = 0, by_x = 0;
      for (int64_t c = 0; c < s.channels; ++c) {
        const auto a = static_cast<float>(top[c]), b = static_cast<float>(top_end[c]);
        const auto d = static_cast<float>(bottom[c]), e = static_cast<float>(bottom_end[c]);
        const float down = (1 - column.fraction) * (d - a) + column.fraction * (e - b);
        const float right = (1 - row.fraction) * (b - a) + row.fraction * (e - d);
        by_y += static_cast<double>(grad[c] * down);
        by_x += static_cast<double>(grad[c] * right);
      }
      rows.Add(by_y, y, s.crop_height, s.height);
      columns.Add(by_x, across.first + x, s.crop_width, s.width);
    }
  }
  const double ends[] = {rows.from, columns.from, rows.to, columns.to};
  for (int k = 0; k < 4; ++k) out[k] = static_cast<float>(ends[k]);
}

absl::Status CropGradBoxes(KernelContext& ctx) {
  const Tensor& grads = ctx.input(0);
  const Tensor& image = ctx.input(1);
  const CropBoxes inputs{ctx.input(2), ctx.input(3)};
  TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropGradBoxesShapeOf(grads, image, inputs));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Box> boxes, ReadBoxes(inputs, s.batch));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                          ctx.AllocateOutput(0, ElementType::kFloat, Shape({s.boxes, 4})));
  const int64_t crop_size = s.crop_height * s.crop_width * s.channels;
  return SwitchReal(image.type(), [&]<typename T>() {
    ctx.ParallelFor(s.boxes, KernelContext::GrainFor(5.0 * static_cast<double>(crop_size)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) {
                        const int64_t at = boxes[b].image * s.height * s.width * s.channels;
                        BoxGradient(s, boxes[b], image.unchecked_data<T>() + at,
                                    grads.unchecked_data<float>() + b * crop_size,
                                    out->mutable_data<float>() + 4 * b);
                      }
                    });
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("CropAndResize").HostMemory("crop_size"), MakeKernel<CropKernel>);
REGISTER_KERNEL(KernelSpec("CropAndResizeGradImage").HostMemory("image_size"),
                MakeKernel<CropGradImageKernel>);
REGISTER_KERNEL(KernelSpec("CropAndResizeGradBoxes"), MakeKernel<CropGradBoxes>);

}  // namespace
}  // namespace troupe
