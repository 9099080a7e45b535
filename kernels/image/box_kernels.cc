// DrawBoundingBoxes (and V2), SampleDistortedBoundingBox (and V2, and stateless), RandomCrop.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/image/resize_shape.h"
#include "kernels/kernel.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_stream_kernel.h"
#include "kernels/random/stateless.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// --- drawing -------------------------------------------------------------------------------------

using DrawColor = std::array<float, 4>;
constexpr DrawColor kDrawColors[] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

/// Rows and columns, both ends included, perhaps outside of the image.
struct Outline {
  int64_t top, left, bottom, right;
};

template <typename T>
void DrawOutline(const Outline& box, const DrawColor& color, const Shape& shape, T* image) {
  const int64_t height = shape.dim(1), width = shape.dim(2), channels = shape.dim(3);
  const auto draw = [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < channels; ++c) {
      image[(y * width + x) * channels + c] = T(color[c]);
    }
  };
  const int64_t top = std::max<int64_t>(box.top, 0), bottom = std::min(box.bottom, height - 1);
  const int64_t left = std::max<int64_t>(box.left, 0), right = std::min(box.right, width - 1);
  for (int64_t x = left; x <= right; ++x) {
    if (box.top == top && top <= bottom) draw(top, x);
    if (box.bottom == bottom && top <= bottom) draw(bottom, x);
  }
  for (int64_t y = top; y <= bottom; ++y) {
    if (box.left == left && left <= right) draw(y, left);
    if (box.right == right && left <= right) draw(y, right);
  }
}

/// The pixel at the part `at` of `size` pixels.
int64_t PixelAt(float at, int64_t size) {
  constexpr float kFar = 1 << 30;
  return static_cast<int64_t>(std::clamp(at * static_cast<float>(size - 1), -kFar, kFar));
}

/// The colors that take turns: those of input 2, or ten of our own if there are none.
absl::StatusOr<std::vector<DrawColor>> ReadColors(KernelContext& ctx, int64_t channels) {
  std::vector<DrawColor> result;
  if (ctx.num_inputs() > 2) {
    const Tensor& colors = ctx.input(2);
    if (colors.rank() != 2 || colors.dim(1) < channels) {
      return InvalidArgument("`colors` must be [n, ", channels, " or more], got shape ",
                             colors.shape().ToString());
    }
    const float* color = colors.unchecked_data<float>();
    for (int64_t i = 0; colors.num_elements() > 0 && i < colors.dim(0); ++i) {
      std::copy_n(color + i * colors.dim(1), channels, result.emplace_back().begin());
    }
  }
  if (!result.empty()) return result;
  result.assign(std::begin(kDrawColors), std::end(kDrawColors));
  if (channels == 1) {
    for (DrawColor& color : result) color[0] = 1;  // One channel is gray: always white.
  }
  return result;
}

absl::Status DrawBoundingBoxes(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  const Tensor& boxes = ctx.input(1);
  if (images.rank() != 4 || (images.dim(3) != 1 && images.dim(3) != 3 && images.dim(3) != 4)) {
    return InvalidArgument("`images` must be [batch, height, width, 1, 3 or 4], got shape ",
                           images.shape().ToString());
  }
  if (boxes.rank() != 3 || boxes.dim(0) != images.dim(0) || boxes.dim(2) != 4) {
    return InvalidArgument("`boxes` must be [", images.dim(0), ", n, 4], got shape ",
                           boxes.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<DrawColor> colors, ReadColors(ctx, images.dim(3)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (out->raw_data() != images.raw_data()) {
    std::memcpy(out->mutable_raw_data(), images.raw_data(), out->bytes());
  }
  const Shape& shape = out->shape();
  const int64_t size = shape.dim(1) * shape.dim(2) * shape.dim(3), count = boxes.dim(1);
  return SwitchType<float, half>(out->type(), [&]<typename T>() {
    const float* box = boxes.unchecked_data<float>();
    for (int64_t i = 0; i < shape.dim(0) * count; ++i, box += 4) {
      if (std::any_of(box, box + 4, [](float x) { return std::isnan(x); })) continue;
      const Outline outline{PixelAt(box[0], shape.dim(1)), PixelAt(box[1], shape.dim(2)),
                            PixelAt(box[2], shape.dim(1)), PixelAt(box[3], shape.dim(2))};
      DrawOutline(outline, colors[static_cast<size_t>(i % count) % colors.size()], shape,
                  out->mutable_data<T>() + i / count * size);
    }
    return absl::OkStatus();
  });
}
REGISTER_KERNELS(
    KernelSpec("DrawBoundingBoxes").Types("T", {ElementType::kFloat, ElementType::kHalf}),
    MakeKernel<DrawBoundingBoxes>, "DrawBoundingBoxesV2");

// --- sampling ------------------------------------------------------------------------------------

struct PixelBox {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  float Area() const { return static_cast<float>((right - left) * (bottom - top)); }
};

PixelBox Intersection(const PixelBox& a, const PixelBox& b) {
  const PixelBox both{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                      std::min(a.bottom, b.bottom)};
  return both.left > both.right || both.top > both.bottom ? PixelBox() : both;
}

struct Range {
  float low, high;
};

int64_t Rounded(float x) { return std::lrint(x); }

/// Draws a box of the aspect ratio, the area of which is a part of the image's that lies in `area`.
/// Rounds as TensorFlow does, so that both draw the same. False if there is no such box.
bool DrawBox(int64_t width, int64_t height, const Range& area, float aspect_ratio,
             PhiloxWords& words, PixelBox* box) {
  if (width <= 0 || height <= 0 || area.low > area.high) return false;
  const float least = area.low * static_cast<float>(width) * static_cast<float>(height);
  const float most = area.high * static_cast<float>(width) * static_cast<float>(height);
  const auto width_of = [&](int64_t rows) {
    return Rounded(static_cast<float>(rows) * aspect_ratio);
  };
  int64_t rows = Rounded(std::sqrt(least / aspect_ratio));
  int64_t most_rows = Rounded(std::sqrt(most / aspect_ratio));
  if (width_of(most_rows) > width) {
    constexpr float kLittle = 0.0000001f;
    most_rows =
        static_cast<int64_t>((static_cast<double>(width) + 0.5 - static_cast<double>(kLittle)) /
                             static_cast<double>(aspect_ratio));
    if (width_of(most_rows) > width) --most_rows;
  }
  most_rows = std::min(most_rows, height);
  rows = std::min(rows, most_rows);
  if (rows < most_rows) {
    rows += UniformBelow32(words, static_cast<uint32_t>(most_rows - rows + 1));
  }
  int64_t columns = width_of(rows);
  // Rounding may have led out of the range.
  auto drawn_area = static_cast<float>(columns * rows);
  if (drawn_area < least) {
    columns = width_of(++rows);
    drawn_area = static_cast<float>(columns * rows);
  }
  if (drawn_area > most) {
    columns = width_of(--rows);
    drawn_area = static_cast<float>(columns * rows);
  }
  if (drawn_area < least || drawn_area > most || columns > width || rows > height || columns <= 0 ||
      rows <= 0) {
    return false;
  }
  const auto draw = [&](int64_t space) {
    return space == 0 ? int64_t{0} : int64_t{UniformBelow32(words, static_cast<uint32_t>(space))};
  };
  box->top = draw(height - rows);
  box->left = draw(width - columns);
  box->bottom = box->top + rows;
  box->right = box->left + columns;
  return true;
}

/// True if `box` has that part of one of the objects.
bool Covers(const PixelBox& box, float part, const std::vector<PixelBox>& objects) {
  return box.Area() >= 1 &&
         std::any_of(objects.begin(), objects.end(), [&](const PixelBox& object) {
           return object.Area() >= 1 && Intersection(box, object).Area() / object.Area() >= part;
         });
}

/// What the kernels that draw a box have in common. Where their numbers come from is theirs.
class BoxSampler {
 public:
  BoxSampler(KernelConstruction& c, absl::Status* status)
      : type_(c.output_type(0)),
        max_attempts_(c.Attr<int64_t>("max_attempts")),
        use_image_(c.Attr<bool>("use_image_if_no_bounding_boxes")) {
    if (c.num_inputs() == 2) covered_ = c.Attr<float>("min_object_covered");
    const auto read = [&](const char* name, float high, Range* range) {
      const auto values = c.Attr<std::vector<float>>(name);
      if (values.size() != 2 ||
          !(values[0] > 0 && values[1] > 0 && values[0] <= high && values[1] <= high)) {
        *status = InvalidArgument("`", name, "` must be two positive numbers",
                                  high == 1 ? ", at most 1" : "");
        return;
      }
      *range = {values[0], values[1]};
    };
    read("aspect_ratio_range", std::numeric_limits<float>::max(), &aspect_ratio_);
    read("area_range", 1, &area_);
    if (max_attempts_ <= 0) {
      *status = InvalidArgument("`max_attempts` must be positive, got ", max_attempts_);
    }
  }

  /// `numbers(attempts)` gives the position of the numbers for so many attempts.
  template <typename Numbers>
  absl::Status Sample(KernelContext& ctx, const Numbers& numbers) const {
    TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(0), "image_size"));
    if (size.size() != 3) {
      return InvalidArgument("`image_size` must be [height, width, channels], got ", size.size(),
                             " numbers");
    }
    const int64_t height = size[0], width = size[1];
    if (height < 0 || width < 0 || height >= INT32_MAX || width >= INT32_MAX) {
      return InvalidArgument("`image_size` must have 0 to 2^31 - 2 rows and columns, got ", height,
                             " x ", width);
    }
    float covered = covered_;
    if (ctx.num_inputs() > 2) {
      if (ctx.input(2).rank() != 0) {
        return InvalidArgument("`min_object_covered` must be a scalar, got shape ",
                               ctx.input(2).shape().ToString());
      }
      covered = ctx.input(2).unchecked_scalar<float>();
    }
    if (!(covered >= 0)) {
      return InvalidArgument("`min_object_covered` must not be negative, got ", covered);
    }
    const PixelBox image{0, 0, width, height};
    TROUPE_ASSIGN_OR_RETURN(const std::vector<PixelBox> objects, ReadObjects(ctx, image));

    PhiloxWords words(numbers(static_cast<uint64_t>(max_attempts_)));
    PixelBox box;
    bool drawn = false;
    for (int64_t i = 0; i < max_attempts_ && !drawn; ++i) {
      const float aspect_ratio =
          UniformFloat(words) * (aspect_ratio_.high - aspect_ratio_.low) + aspect_ratio_.low;
      drawn =
          DrawBox(width, height, area_, aspect_ratio, words, &box) && Covers(box, covered, objects);
    }
    return Give(ctx, drawn ? box : image, image);
  }

 private:
  absl::StatusOr<std::vector<PixelBox>> ReadObjects(KernelContext& ctx,
                                                    const PixelBox& image) const {
    const Tensor& boxes = ctx.input(1);
    if (boxes.rank() != 3 || boxes.dim(2) != 4) {
      return InvalidArgument("`bounding_boxes` must be [batch, n, 4], got shape ",
                             boxes.shape().ToString());
    }
    std::vector<PixelBox> objects;
    const auto width = static_cast<float>(image.right), height = static_cast<float>(image.bottom);
    const float* box = boxes.unchecked_data<float>();
    for (int64_t i = 0; i < boxes.dim(0) * boxes.dim(1); ++i, box += 4) {
      for (int k = 0; k < 4; ++k) {
        if (box[k] >= 0 && box[k] <= 1) continue;
        return InvalidArgument("bounding box ", i, " has the coordinate ", box[k],
                               "; they must be between 0 and 1");
      }
      objects.push_back(
          {static_cast<int64_t>(box[1] * width), static_cast<int64_t>(box[0] * height),
           static_cast<int64_t>(box[3] * width), static_cast<int64_t>(box[2] * height)});
    }
    if (objects.empty()) {
      if (!use_image_) {
        return InvalidArgument(
            "there are no `bounding_boxes`; use_image_if_no_bounding_boxes would do without");
      }
      objects.push_back(image);
    }
    return objects;
  }

  absl::Status Give(KernelContext& ctx, const PixelBox& box, const PixelBox& image) const {
    TROUPE_ASSIGN_OR_RETURN(Tensor * begin, ctx.AllocateOutput(0, type_, Shape({3})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * size, ctx.AllocateOutput(1, type_, Shape({3})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * boxes,
                            ctx.AllocateOutput(2, ElementType::kFloat, Shape({1, 1, 4})));
    const auto width = static_cast<float>(image.right), height = static_cast<float>(image.bottom);
    float* to = boxes->mutable_data<float>();
    to[0] = static_cast<float>(box.top) / height;
    to[1] = static_cast<float>(box.left) / width;
    to[2] = static_cast<float>(box.bottom) / height;
    to[3] = static_cast<float>(box.right) / width;
    // -1: all channels.
    const int64_t begins[] = {box.top, box.left, 0};
    const int64_t sizes[] = {box.bottom - box.top, box.right - box.left, -1};
    return SwitchType<int8_t, uint8_t, int16_t, int32_t, int64_t>(type_, [&]<typename T>() {
      for (int i = 0; i < 3; ++i) {
        begin->mutable_data<T>()[i] = static_cast<T>(begins[i]);
        size->mutable_data<T>()[i] = static_cast<T>(sizes[i]);
      }
      return absl::OkStatus();
    });
  }

  const ElementType type_;
  const int64_t max_attempts_;
  const bool use_image_;
  float covered_ = 0;
  Range aspect_ratio_{}, area_{};
};

class SampleBoxKernel final : public RandomStreamKernel {
 public:
  SampleBoxKernel(KernelConstruction& c, absl::Status* status)
      : RandomStreamKernel(c), sampler_(c, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    return sampler_.Sample(ctx, [this](uint64_t attempts) { return stream_.Reserve(attempts); });
  }

 private:
  const BoxSampler sampler_;
};
REGISTER_KERNELS(KernelSpec("SampleDistortedBoundingBox"), MakeKernel<SampleBoxKernel>,
                 "SampleDistortedBoundingBoxV2");

class StatelessSampleBoxKernel final : public Kernel {
 public:
  StatelessSampleBoxKernel(KernelConstruction& c, absl::Status* status) : sampler_(c, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Philox position, PositionOfSeed(ctx.input(3)));
    return sampler_.Sample(ctx, [&position](uint64_t) { return position; });
  }

 private:
  const BoxSampler sampler_;
};
REGISTER_KERNEL(KernelSpec("StatelessSampleDistortedBoundingBox"),
                MakeKernel<StatelessSampleBoxKernel>);

class RandomCropKernel final : public RandomStreamKernel {
 public:
  RandomCropKernel(KernelConstruction& c, absl::Status*) : RandomStreamKernel(c) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    if (image.rank() != 3) {
      return InvalidArgument("`image` must be [height, width, channels], got shape ",
                             image.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(1), "size"));
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      return InvalidArgument("`size` must be a height and a width, not negative");
    }
    const int64_t space_y = image.dim(0) - size[0], space_x = image.dim(1) - size[1];
    if (space_y < 0 || space_x < 0) {
      return absl::FailedPreconditionError(StrCat("a crop of ", size[0], " x ", size[1],
                                                  " from an image of ", image.dim(0), " x ",
                                                  image.dim(1)));
    }
    PhiloxWords words(stream_.Reserve(1));
    const auto draw = [&](int64_t space) {
      return space == 0 ? 0 : static_cast<int64_t>(words() % static_cast<uint32_t>(space + 1));
    };
    const int64_t left = draw(space_x), top = draw(space_y);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(0, image.type(), Shape({size[0], size[1], image.dim(2)})));
    const int64_t pixel = image.dim(2) * static_cast<int64_t>(ElementSize(image.type()));
    const auto* from = static_cast<const char*>(image.raw_data());
    auto* to = static_cast<char*>(out->mutable_raw_data());
    for (int64_t y = 0; y < size[0] && out->num_elements() > 0; ++y) {
      std::memcpy(to + y * size[1] * pixel, from + ((top + y) * image.dim(1) + left) * pixel,
                  static_cast<size_t>(size[1] * pixel));
    }
    return absl::OkStatus();
  }
};
REGISTER_KERNEL(KernelSpec("RandomCrop"), MakeKernel<RandomCropKernel>);

}  // namespace
}  // namespace troupe
