#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

/// Those of images come out as floats.
void AddImageCases(std::vector<Case>* cases) {
  auto add = [&](std::string op, std::vector<In> inputs, Attrs attrs = nullptr) {
    const bool twice = op != "ScaleAndTranslate" && op != "CropAndResize" &&
                       op != "ResizeBicubic" && op != "ResizeNearestNeighbor";
    cases->push_back({std::move(op), std::move(inputs), std::move(attrs), {}, {}, kFloat, twice});
  };
  const auto half_pixels = Bools({{"half_pixel_centers", true}});
  const auto corners = Bools({{"align_corners", true}});
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    for (const Attrs& attrs : {Attrs(), half_pixels, corners}) {
      add(op, {X({2, 4, 3, 2}), I({7, 5})}, attrs);
      add(op, {X({1, 7, 9, 3}), I({3, 4})}, attrs);
    }
  }
  for (const char* filter : {"lanczos3", "triangle"}) {
    add("ScaleAndTranslate",
        {X({1, 4, 5, 2}), I({3, 6}), C(Tensor::Vector<float>({0.7f, 1.3f})),
         C(Tensor::Vector<float>({0.2f, -0.3f}))},
        Text("kernel_type", filter));
  }
  const Tensor boxes =
      Tensor::FromValues<float>({0.1f, 0.2f, 0.9f, 0.7f, 0.8f, 1.3f, -0.1f, 0.3f}, Shape({2, 4}))
          .value();
  // The second is flipped, and partly outside.
  add("CropAndResize", {X({2, 5, 4, 2}), C(boxes), I({1, 0}), I({3, 4})});
  add("CropAndResize", {X({2, 5, 4, 2}), C(boxes), I({1, 0}), I({3, 4})},
      Text("method", "nearest"));
  // A plane is as steep everywhere.
  Tensor plane = Tensor::Uninitialized(kFloat, Shape({1, 6, 7, 1}));
  for (int i = 0; i < 42; ++i) {
    plane.mutable_data<float>()[i] =
        0.03f * static_cast<float>(i / 7) + 0.05f * static_cast<float>(i % 7);
  }
  add("CropAndResize", {C(plane), X({2, 4}, 0.1, 0.9), I({0, 0}), I({3, 2})});
  add("CropAndResize", {C(plane), X({2, 4}, 0.1, 0.9), I({0, 0}), I({1, 1})});
  const auto patches = [](std::vector<int64_t> sizes, std::vector<int64_t> strides,
                          std::vector<int64_t> rates, std::string padding) {
    return [=](NodeSpec& spec) {
      spec.Attr("ksizes", Ints(sizes)).Attr("strides", Ints(strides)).Attr("rates", Ints(rates));
      spec.Attr("padding", padding);
    };
  };
  add("ExtractImagePatches", {X({2, 4, 5, 2})},
      patches({1, 2, 3, 1}, {1, 1, 2, 1}, {1, 1, 1, 1}, "SAME"));
  add("ExtractImagePatches", {X({1, 5, 5, 1})},
      patches({1, 2, 2, 1}, {1, 2, 1, 1}, {1, 2, 1, 1}, "VALID"));
  // A shift, and a quarter turn: pixels come to lie on pixels.
  const Tensor moves =
      Tensor::FromValues<float>({1, 0, 1, 0, 1, -1, 0, 0, 0, 1, 0, -1, 0, 3, 0, 0}, Shape({2, 8}))
          .value();
  for (const char* interpolation : {"BILINEAR", "NEAREST"}) {
    const auto attrs = Text("interpolation", interpolation);
    add("ImageProjectiveTransformV2", {X({2, 4, 4, 2}), C(moves), I({4, 4})}, attrs);
    add("ImageProjectiveTransformV3",
        {X({2, 4, 4, 2}), C(moves), I({4, 4}), C(Tensor::Scalar(0.0f))}, attrs);
  }
  cases->push_back({"RGBToHSV", {X({2, 4, 3}, 0.2, 1)}});
}

}  // namespace troupe::numeric
