// Crops, boxes, patches and transforms against naive loops.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

// --- CropAndResize -------------------------------------------------------------------------------

// Which part of pixel (iy, ix) of an image of 9 x 7 pixels a crop's pixel is made of; all 0
// outside.
struct CropWeights {
  CropWeights(const Tensor& boxes, int64_t box, int64_t y, int64_t x, int64_t rows, int64_t columns,
              bool nearest)
      : nearest(nearest) {
    const auto at = [&](int64_t begin, int64_t k, int64_t count, int64_t size) {
      const double from = At(boxes, 4 * box + begin), to = At(boxes, 4 * box + begin + 2);
      const double part = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0.5;
      return (from + (to - from) * part) * static_cast<double>(size - 1);
    };
    py = at(0, y, rows, 9);
    px = at(1, x, columns, 7);
    inside = py >= 0 && py <= 8 && px >= 0 && px <= 6;
  }
  static double Along(double place, int64_t i, bool nearest) {
    const double distance = std::abs(place - static_cast<double>(i));
    return nearest ? (std::round(place) == static_cast<double>(i) ? 1 : 0)
                   : std::max(0.0, 1 - distance);
  }
  double operator()(int64_t iy, int64_t ix) const {
    return inside ? Along(py, iy, nearest) * Along(px, ix, nearest) : 0;
  }
  bool nearest, inside;
  double py, px;
};

TEST(CropAndResize, EqualsNaiveLoops) {
  const Tensor boxes = RandomTensor(ElementType::kFloat, Shape({20, 4}), -0.3, 1.3);
  const Tensor indices = RandomTensor(ElementType::kInt32, Shape({20}), 0, 2);
  for (const ElementType type :
       {ElementType::kUint8, ElementType::kFloat, ElementType::kHalf, ElementType::kInt32}) {
    for (const int64_t channels : {1, 2, 3, 4, 9}) {
      const Tensor images = RandomTensor(type, Shape({3, 9, 7, channels}), 0, 255);
      for (const int rows : {1, 4, 30}) {
        for (const bool nearest : {false, true}) {
          OpTest op("CropAndResize", /*threads=*/2);
          op.Input(images).Input(boxes).Input(indices).Input(Tensor::Vector<int32_t>({rows, 5}));
          op.Attr("extrapolation_value", -7.0f).Attr("method", nearest ? "nearest" : "bilinear");
          ASSERT_TRUE(op.Run().ok());
          for (int64_t i = 0; i < op.output(0).num_elements(); ++i) {
            const int64_t c = i % channels, x = i / channels % 5, y = i / channels / 5 % rows;
            const int64_t box = i / channels / 5 / rows;
            const CropWeights weights(boxes, box, y, x, rows, 5, nearest);
            double want = weights.inside ? 0 : -7;
            for (int64_t pixel = 0; pixel < 63; ++pixel) {
              const auto image = static_cast<int64_t>(At(indices, box));
              const double weight = weights(pixel / 7, pixel % 7);
              if (weight > 0) want += weight * At(images, (image * 63 + pixel) * channels + c);
            }
            ASSERT_NEAR(At(op.output(0), i), want, 1e-2)
                << ElementTypeName(type) << " " << channels << " " << nearest << " " << i;
          }
        }
      }
    }
  }
}

TEST(CropAndResize, GradientOfTheImages) {
  const Tensor boxes = RandomTensor(ElementType::kFloat, Shape({20, 4}), -0.3, 1.3);
  const Tensor indices = RandomTensor(ElementType::kInt32, Shape({20}), 0, 2);
  const Tensor grads = RandomTensor(ElementType::kFloat, Shape({20, 4, 5, 2}), -1, 1);
  for (const bool nearest : {false, true}) {
    OpTest op("CropAndResizeGradImage", /*threads=*/2);
    op.Input(grads).Input(boxes).Input(indices).Input(Tensor::Vector<int32_t>({3, 9, 7, 2}));
    op.Attr("T", ElementType::kFloat).Attr("method", nearest ? "nearest" : "bilinear");
    ASSERT_TRUE(op.Run().ok());
    std::vector<double> want(3 * 63 * 2);
    for (int64_t i = 0; i < grads.num_elements(); ++i) {
      const int64_t c = i % 2, x = i / 2 % 5, y = i / 10 % 4, box = i / 40;
      const CropWeights weights(boxes, box, y, x, 4, 5, nearest);
      for (int64_t pixel = 0; pixel < 63; ++pixel) {
        const auto image = static_cast<int64_t>(At(indices, box));
        want[(image * 63 + pixel) * 2 + c] += weights(pixel / 7, pixel % 7) * At(grads, i);
      }
    }
    ExpectNear(op.output(0), MakeTensor(ElementType::kFloat, Shape({3, 9, 7, 2}), want), 1e-4,
               1e-4);
  }
}

TEST(CropAndResize, RefusesBadBoxes) {
  const Tensor images = RandomTensor(ElementType::kFloat, Shape({2, 3, 3, 1}), 0, 1);
  const Tensor size = Tensor::Vector<int32_t>({2, 2});
  const auto run = [&](Tensor boxes, std::vector<int32_t> indices) {
    OpTest op("CropAndResize");
    op.Input(images)
        .Input(std::move(boxes))
        .Input(Tensor::Vector<int32_t>(absl::MakeConstSpan(indices)));
    op.Input(size);
    return op.Run().code();
  };
  const Tensor box = MakeTensor(ElementType::kFloat, Shape({1, 4}), {0, 0, 1, 1});
  EXPECT_EQ(run(box, {1}), absl::StatusCode::kOk);
  EXPECT_EQ(run(box, {2}), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(run(box, {-1}), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(run(box, {0, 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(MakeTensor(ElementType::kFloat, Shape({1, 4}), {0, 0, NAN, 1}), {0}),
            absl::StatusCode::kInvalidArgument);
}

// --- NonMaxSuppression ---------------------------------------------------------------------------

double Overlap(const Tensor& boxes, int64_t a, int64_t b) {
  const auto side = [&](int64_t box, int k, bool high) {
    const double x = At(boxes, 4 * box + k), y = At(boxes, 4 * box + k + 2);
    return high ? std::max(x, y) : std::min(x, y);
  };
  double both = 1, area_a = 1, area_b = 1;
  for (const int k : {0, 1}) {
    both *= std::max(0.0, std::min(side(a, k, true), side(b, k, true)) -
                              std::max(side(a, k, false), side(b, k, false)));
    area_a *= side(a, k, true) - side(a, k, false);
    area_b *= side(b, k, true) - side(b, k, false);
  }
  return both / (area_a + area_b - both);
}

TEST(NonMaxSuppression, EqualsNaiveLoops) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    constexpr int64_t kBoxes = 60;
    const Tensor boxes = RandomTensor(ElementType::kFloat, Shape({kBoxes, 4}), 0, 1, seed);
    const Tensor scores = RandomTensor(ElementType::kFloat, Shape({kBoxes}), 0, 1, seed + 100);
    std::vector<int64_t> order, want;
    for (int64_t i = 0; i < kBoxes; ++i) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return At(scores, a) > At(scores, b); });
    for (const int64_t i : order) {
      const bool overlaps = std::any_of(want.begin(), want.end(), [&](int64_t picked) {
        return Overlap(boxes, i, picked) > 0.3;
      });
      if (!overlaps && want.size() < 15 && At(scores, i) > 0.2) want.push_back(i);
    }
    OpTest op("NonMaxSuppressionV4");
    op.Input(boxes).Input(scores).Input(Tensor::Scalar<int32_t>(15));
    op.Input(Tensor::Scalar(0.3f)).Input(Tensor::Scalar(0.2f));
    op.Attr("pad_to_max_output_size", true);
    ASSERT_TRUE(op.Run().ok());
    ASSERT_EQ(At(op.output(1), 0), static_cast<double>(want.size()));
    want.resize(15, 0);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(At(op.output(0), static_cast<int64_t>(i)), static_cast<double>(want[i]));
    }
  }
}

// A class of its own for each score: as many boxes as each class alone gives.
TEST(NonMaxSuppression, CombinesClasses) {
  const Tensor boxes = RandomTensor(ElementType::kFloat, Shape({1, 30, 1, 4}), 0, 1);
  const Tensor scores = RandomTensor(ElementType::kFloat, Shape({1, 30, 3}), 0, 1, 9);
  OpTest all("CombinedNonMaxSuppression", /*threads=*/2);
  all.Input(boxes)
      .Input(scores)
      .Input(Tensor::Scalar<int32_t>(30))
      .Input(Tensor::Scalar<int32_t>(90));
  all.Input(Tensor::Scalar(0.4f)).Input(Tensor::Scalar(0.5f));
  ASSERT_TRUE(all.Run().ok());
  std::multiset<double> want;
  for (int64_t label = 0; label < 3; ++label) {
    Tensor of_class = Tensor::Uninitialized(ElementType::kFloat, Shape({30}));
    for (int64_t i = 0; i < 30; ++i) Set(&of_class, i, At(scores, 3 * i + label));
    OpTest one("NonMaxSuppressionV3");
    one.Input(boxes.Reshaped(Shape({30, 4}))).Input(of_class).Input(Tensor::Scalar<int32_t>(30));
    one.Input(Tensor::Scalar(0.4f)).Input(Tensor::Scalar(0.5f));
    ASSERT_TRUE(one.Run().ok());
    for (int64_t i = 0; i < one.output(0).num_elements(); ++i) {
      want.insert(At(of_class, static_cast<int64_t>(At(one.output(0), i))));
    }
  }
  const auto count = static_cast<int64_t>(At(all.output(3), 0));
  std::multiset<double> got;
  for (int64_t i = 0; i < count; ++i) got.insert(At(all.output(1), i));
  EXPECT_EQ(got, want);
  EXPECT_EQ(At(all.output(1), count), 0);
}

// --- the others ----------------------------------------------------------------------------------

TEST(SampleDistortedBoundingBox, StaysWithinItsRanges) {
  OpTest op("SampleDistortedBoundingBoxV2");
  op.Input(Tensor::Vector<int32_t>({200, 300, 3}))
      .Input(MakeTensor(ElementType::kFloat, Shape({1, 1, 4}), {0.2, 0.2, 0.8, 0.9}))
      .Input(Tensor::Scalar(0.3f));
  op.Attr("seed", 3).Attr("seed2", 4);
  std::set<double> tops;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(op.Run().ok());
    const double top = At(op.output(0), 0), left = At(op.output(0), 1);
    const double height = At(op.output(1), 0), width = At(op.output(1), 1);
    tops.insert(top);
    EXPECT_GE(top, 0);
    EXPECT_GE(left, 0);
    EXPECT_LE(top + height, 200);
    EXPECT_LE(left + width, 300);
    const double rows = std::min(top + height, 160.0) - std::max(top, 40.0);
    const double columns = std::min(left + width, 270.0) - std::max(left, 60.0);
    EXPECT_GE(std::max(0.0, rows) * std::max(0.0, columns), 0.3 * 120 * 210 - 1);
    EXPECT_GE(height * width, 0.05 * 200 * 300 - 1);
    if (height < 200 || width < 300) {  // not the whole image
      EXPECT_GT(width / height, 0.75 - 0.02);
      EXPECT_LT(width / height, 1.33 + 0.02);
    }
  }
  EXPECT_GT(tops.size(), 20u);
}

TEST(ExtractGlimpse, FillsWithNoiseOfTheImage) {
  const Tensor images = RandomTensor(ElementType::kFloat, Shape({1, 8, 8, 2}), 3, 5);
  for (const char* noise : {"uniform", "gaussian", "zero"}) {
    OpTest op("ExtractGlimpse");
    op.Input(images).Input(Tensor::Vector<int32_t>({6, 6}));
    op.Input(MakeTensor(ElementType::kFloat, Shape({1, 2}), {8, 0}));
    op.Attr("centered", false).Attr("normalized", false).Attr("uniform_noise", false);
    op.Attr("noise", noise);
    ASSERT_TRUE(op.Run().ok());
    for (int64_t i = 0; i < 6 * 6 * 2; ++i) {
      const int64_t c = i % 2, x = i / 2 % 6 - 3, y = i / 12 + 5;
      const double got = At(op.output(0), i);
      if (y < 8 && x >= 0) {
        EXPECT_EQ(got, At(images, (y * 8 + x) * 2 + c));
      } else if (std::string(noise) == "zero") {
        EXPECT_EQ(got, 0);
      } else {
        EXPECT_GE(got, 3);
        EXPECT_LE(got, 5);
      }
    }
  }
}

TEST(ImageProjectiveTransform, Shifts) {
  const Tensor image = MakeTensor(ElementType::kFloat, Shape({1, 1, 4, 1}), {1, 2, 3, 4});
  const Tensor shift = MakeTensor(ElementType::kFloat, Shape({1, 8}), {1, 0, -3, 0, 1, 0, 0, 0});
  const std::pair<const char*, std::vector<double>> kModes[] = {
      {"CONSTANT", {0, 0, 0, 1, 2, 3, 4, 0, 0}},
      {"NEAREST", {1, 1, 1, 1, 2, 3, 4, 4, 4}},
      {"REFLECT", {3, 2, 1, 1, 2, 3, 4, 4, 3}}};
  for (const auto& [mode, values] : kModes) {
    OpTest op("ImageProjectiveTransformV2");
    op.Input(image).Input(shift).Input(Tensor::Vector<int32_t>({1, 9}));
    op.Attr("interpolation", "NEAREST").Attr("fill_mode", mode);
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0),
                MakeTensor(ElementType::kFloat, Shape({1, 1, 9, 1}), absl::MakeConstSpan(values)));
  }
}

TEST(ImageProjectiveTransform, TakesAnyNumbers) {
  const Tensor image = RandomTensor(ElementType::kInt32, Shape({1, 3, 3, 1}), -9, 9);
  for (const char* mode : {"CONSTANT", "NEAREST", "REFLECT", "WRAP"}) {
    for (const double x : {1e30, -1e30, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
      OpTest op("ImageProjectiveTransformV2");
      op.Input(image).Input(
          MakeTensor(ElementType::kFloat, Shape({1, 8}), {x, 1, 0, 1, x, 0, 0, 1}));
      op.Input(Tensor::Vector<int32_t>({3, 4}));
      op.Attr("interpolation", "BILINEAR").Attr("fill_mode", mode);
      EXPECT_TRUE(op.Run().ok());
    }
  }
}

TEST(DrawBoundingBoxes, TakesAnyNumbers) {
  const Tensor image = Tensor::Uninitialized(ElementType::kHalf, Shape({1, 5, 6, 3}));
  OpTest op("DrawBoundingBoxes");
  op.Input(image).Input(RandomTensor(ElementType::kFloat, Shape({1, 50, 4}), -2, 2));
  ASSERT_TRUE(op.Run().ok());
  op.ClearInputs();
  op.Input(image).Input(MakeTensor(ElementType::kFloat, Shape({1, 3, 4}),
                                   {NAN, 0, 1, 1, -1e30, -1e30, 1e30, 1e30, 0.5, 0.5, 0.1, 0.1}));
  EXPECT_TRUE(op.Run().ok());
}

}  // namespace
}  // namespace troupe::testing
