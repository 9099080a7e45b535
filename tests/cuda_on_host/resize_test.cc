// Images that cards resize, cut and transform, against the CPU's.
#include <string>
#include <vector>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Resize : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

constexpr ElementType kTypes[] = {kHalf, kBfloat16, kFloat, kDouble};

struct Mode {
  bool align_corners, half_pixel_centers;
  AgainstCpu::Attrs attrs() const {
    return [*this](NodeSpec& node) {
      node.Attr("align_corners", align_corners).Attr("half_pixel_centers", half_pixel_centers);
    };
  }
};
constexpr Mode kModes[] = {{false, false}, {true, false}, {false, true}};

struct Sizes {
  int64_t from_height, from_width, height, width;
};
constexpr Sizes kSizes[] = {
    {3, 4, 7, 9},     // larger
    {11, 13, 4, 5},   // smaller
    {5, 5, 10, 10},   // twice as large
    {8, 6, 8, 3},     // one axis as it is
    {1, 1, 6, 5},     // of one pixel
    {6, 7, 1, 1},     // to one
    {2, 31, 40, 30},  // much larger, hardly smaller
};

TEST_F(Resize, SameBits) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const Sizes& s : kSizes) {
      for (const Mode& mode : kModes) {
        for (const int64_t channels : {1, 3, 8}) {
          const Tensor images = Numbers(type, Shape({2, s.from_height, s.from_width, channels}), 1);
          const Operand size =
              HostInts({static_cast<int32_t>(s.height), static_cast<int32_t>(s.width)});
          for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
            both.Add(op, {images, size}, {}, mode.attrs());
          }
        }
        const Tensor images = Numbers(type, Shape({1, s.from_height, s.from_width, 4}), 1);
        const Operand size = HostInts({5, 3});
        both.Add("ResizeBilinear", {{images, Operand::kView}, size}, {}, mode.attrs());
        both.Add("ResizeNearestNeighbor", {{images, Operand::kView}, size}, {}, mode.attrs());
      }
    }
  }
  both.Compare();
}

/// Sums of up to some hundred numbers of up to 2^4, in another order.
Within WithinFor(ElementType type) { return {2, type == kDouble ? 2e-4 : 1e-3}; }

TEST_F(Resize, Gradients) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const Sizes& s : kSizes) {
      for (const Mode& mode : kModes) {
        for (const int64_t channels : {1, 3, 8}) {
          const Shape shape({2, s.height, s.width, channels});
          const Shape original({2, s.from_height, s.from_width, channels});
          const Tensor like = Numbers(type, original, 1);
          both.Add("ResizeBilinearGrad", {Numbers(kFloat, shape, 2, Values::kModerate), like},
                   WithinFor(type), mode.attrs());
          both.Add(
              "ResizeNearestNeighborGrad",
              {Numbers(type, shape, 2, Values::kModerate),
               HostInts({static_cast<int32_t>(s.from_height), static_cast<int32_t>(s.from_width)})},
              WithinFor(type), mode.attrs());
        }
        const Tensor grads =
            Numbers(kFloat, Shape({1, s.height, s.width, 4}), 3, Values::kModerate);
        both.Add("ResizeBilinearGrad",
                 {{grads, Operand::kView}, Numbers(type, Shape({1, 5, 3, 4}), 1)}, WithinFor(type),
                 mode.attrs());
      }
    }
  }
  both.Compare();
}

TEST_F(Resize, EmptyAndBad) {
  AgainstCpu both;
  const Tensor none = Numbers(kFloat, Shape({0, 3, 4, 2}), 1);
  both.Add("ResizeBilinear", {none, HostInts({5, 6})});
  both.Add("ResizeNearestNeighbor", {none, HostInts({5, 6})});
  both.Add("ResizeBilinearGrad", {none, Numbers(kFloat, Shape({0, 6, 6, 2}), 1)});
  both.Add("ResizeNearestNeighborGrad", {none, HostInts({5, 6})});
  both.Add("ResizeNearestNeighborGrad",
           {Numbers(kFloat, Shape({2, 0, 3, 2}), 1), HostInts({5, 6})});
  both.Compare();
  const Tensor image = Numbers(kFloat, Shape({1, 3, 4, 2}), 1);
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
    EXPECT_EQ(AgainstCpu::StatusOf(op, {image, HostInts({0, 3})}).code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(AgainstCpu::StatusOf(op, {image, HostInts({3, 3})}, Mode{true, true}.attrs()).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// --- crops ---------------------------------------------------------------------------------------

class Crop : public Resize {};

constexpr ElementType kCropTypes[] = {kHalf, kFloat, kDouble};

/// Boxes inside and outside of the image, turned over, of no size, and exactly as large as it.
const std::vector<float>& Corners() {
  static const auto* const corners = new std::vector<float>{
      0,     0,    1,       1,      //
      0.1f,  0.2f, 0.7f,    0.9f,   //
      0.9f,  0.8f, 0.15f,   0.05f,  // turned over
      -0.3f, 0.5f, 1.2f,    1.5f,   // partly outside
      2,     2,    3,       3,      // outside
      0.5f,  0.5f, 0.5f,    0.5f,   // a point
      0.25f, 1,    0.75f,   0,      // turned to the side
      0.3f,  0.3f, 0.3001f, 0.3001f,
  };
  return *corners;
}
Tensor Boxes() {
  const auto count = static_cast<int64_t>(Corners().size()) / 4;
  Tensor boxes = *Tensor::Allocate(kFloat, Shape({count, 4}));
  std::copy(Corners().begin(), Corners().end(), boxes.mutable_data<float>());
  return boxes;
}
Tensor BoxImages() { return Tensor::Vector<int32_t>({0, 1, 1, 0, 1, 2, 2, 1}); }

AgainstCpu::Attrs Method(const std::string& method) {
  return
      [method](NodeSpec& node) { node.Attr("method", method).Attr("extrapolation_value", -7.5f); };
}

TEST_F(Crop, SameBits) {
  AgainstCpu both;
  for (const ElementType type : kCropTypes) {
    for (const char* method : {"bilinear", "nearest"}) {
      for (const int64_t channels : {1, 3, 8}) {
        const Tensor images = Numbers(type, Shape({3, 9, 12, channels}), 1);
        for (const Operand& size : {HostInts({5, 7}), HostInts({1, 1}), HostInts({20, 1})}) {
          both.Add("CropAndResize", {images, Boxes(), BoxImages(), size}, {}, Method(method));
        }
        both.Add(
            "CropAndResize",
            {{images, Operand::kView}, {Boxes(), Operand::kView}, BoxImages(), HostInts({4, 4})},
            {}, Method(method));
      }
      const Tensor pixel = Numbers(type, Shape({3, 1, 1, 2}), 1);
      both.Add("CropAndResize", {pixel, Boxes(), BoxImages(), HostInts({3, 2})}, {},
               Method(method));
    }
  }
  both.Compare();
}

TEST_F(Crop, Gradients) {
  AgainstCpu both;
  for (const ElementType type : kCropTypes) {
    for (const int64_t channels : {1, 3, 8}) {
      const auto depth = static_cast<int32_t>(channels);
      for (const Shape& shape :
           {Shape({8, 5, 7, channels}), Shape({8, 1, 1, channels}), Shape({8, 20, 3, channels})}) {
        const Tensor grads = Numbers(kFloat, shape, 2, Values::kModerate);
        for (const char* method : {"bilinear", "nearest"}) {
          both.Add("CropAndResizeGradImage",
                   {grads, Boxes(), BoxImages(), HostInts({3, 9, 12, depth})}, {2, 1e-3},
                   [method, type](NodeSpec& node) { node.Attr("method", method).Attr("T", type); });
        }
        both.Add("CropAndResizeGradBoxes",
                 {grads, Numbers(type, Shape({3, 9, 12, channels}), 3, Values::kModerate), Boxes(),
                  BoxImages()},
                 {4, 1e-2});
      }
    }
  }
  both.Compare();
}

TEST_F(Crop, EmptyAndBad) {
  AgainstCpu both;
  const Tensor images = Numbers(kFloat, Shape({2, 3, 4, 2}), 1, Values::kModerate);
  const Tensor no_boxes = Numbers(kFloat, Shape({0, 4}), 1);
  const Tensor no_images = *Tensor::Allocate(kInt32, Shape({0}));
  const Tensor no_grads = Numbers(kFloat, Shape({0, 2, 2, 2}), 1);
  both.Add("CropAndResize", {images, no_boxes, no_images, HostInts({2, 2})});
  both.Add("CropAndResizeGradImage", {no_grads, no_boxes, no_images, HostInts({2, 3, 4, 2})}, {},
           [](NodeSpec& node) { node.Attr("T", kFloat); });
  both.Add("CropAndResizeGradBoxes", {no_grads, images, no_boxes, no_images});
  both.Compare();

  Tensor boxes = Numbers(kFloat, Shape({2, 4}), 1, Values::kPositive);
  const auto crop = [&](const Tensor& of_images) {
    return AgainstCpu::StatusOf("CropAndResize", {images, boxes, of_images, HostInts({2, 2})});
  };
  absl::Status status = crop(Tensor::Vector<int32_t>({1, 2}));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(status.message().find("`box_ind`[1] is 2; there are 2 images"), std::string::npos)
      << status;
  boxes.mutable_data<float>()[1] = INFINITY;
  status = crop(Tensor::Vector<int32_t>({0, 0}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("box 0 is not finite"), std::string::npos) << status;
}

// --- projective transforms -----------------------------------------------------------------------

class Projective : public Resize {};

TEST_F(Projective, SameBits) {
  Tensor transforms = *Tensor::Allocate(kFloat, Shape({3, 8}));
  const float values[] = {1,    0,     0,  0,     1,    0, 0,      0,        // as it is
                          0.8f, -0.3f, 2,  0.3f,  0.8f, 1, 0.001f, 0.02f,    // turned and tilted
                          -2,   0.1f,  15, 0.05f, 3,    0, 0,      -0.25f};  // with a horizon
  std::copy(std::begin(values), std::end(values), transforms.mutable_data<float>());
  Tensor one = *Tensor::Allocate(kFloat, Shape({1, 8}));
  std::copy_n(values + 8, 8, one.mutable_data<float>());
  AgainstCpu both;
  for (const ElementType type : {kUint8, kInt32, kInt64, kHalf, kFloat, kDouble}) {
    const Tensor images = Numbers(type, Shape({3, 7, 9, 2}), 1, Values::kModerate);
    for (const char* interpolation : {"NEAREST", "BILINEAR"}) {
      for (const char* fill_mode : {"CONSTANT", "REFLECT", "WRAP", "NEAREST"}) {
        const auto attrs = [&](NodeSpec& node) {
          node.Attr("interpolation", interpolation).Attr("fill_mode", fill_mode);
        };
        both.Add("ImageProjectiveTransformV2", {images, transforms, HostInts({8, 11})}, {}, attrs);
        both.Add("ImageProjectiveTransformV3",
                 {images, one, HostInts({5, 6}), OnHost(Tensor::Scalar<float>(300.7f))}, {}, attrs);
      }
    }
  }
  const auto nearest = [](NodeSpec& node) { node.Attr("interpolation", "NEAREST"); };
  both.Add("ImageProjectiveTransformV2",
           {Numbers(kFloat, Shape({0, 7, 9, 2}), 1), one, HostInts({8, 11})}, {}, nearest);
  both.Compare();
  EXPECT_EQ(AgainstCpu::StatusOf(
                "ImageProjectiveTransformV2",
                {Numbers(kFloat, Shape({2, 3, 3, 1}), 1), transforms, HostInts({2, 2})}, nearest)
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
