// Colors against the textbook's formulas in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct Hsv {
  double hue, saturation, value;
};

Hsv ToHsv(double r, double g, double b) {
  const double high = std::max({r, g, b}), range = high - std::min({r, g, b});
  double sixths = 0;
  if (range > 0) {
    sixths = high == r ? (g - b) / range : high == g ? 2 + (b - r) / range : 4 + (r - g) / range;
    if (sixths < 0) sixths += 6;
  }
  return {sixths / 6, high > 0 ? range / high : 0, high};
}

/// f(n) of Wikipedia's "HSV to RGB alternative", n = 5, 3, 1 for red, green, blue.
double Channel(const Hsv& c, int n) {
  const double k = std::fmod(n + c.hue * 6, 6);
  return c.value - c.value * c.saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
}

/// Colors in [0, 1], grays and primaries among them.
Tensor Colors(ElementType type, int64_t pixels) {
  Tensor colors = RandomTensor(type, Shape({pixels / 10, 10, 3}), 0, 1);
  for (int64_t i = 0; i < 8 * 3; ++i) Set(&colors, i, static_cast<double>(i / 3 >> i % 3 & 1));
  for (int64_t i = 24; i < 36; ++i) Set(&colors, i, static_cast<double>(i / 3) / 16);
  return colors;
}

// Hues next to 0 may come out next to 1.
void ExpectHue(double got, double want, double tolerance) {
  const double apart = std::abs(got - want);
  EXPECT_LE(std::min(apart, 1 - apart), tolerance) << got << " for " << want;
}

TEST(Colors, GoToHsvAndBack) {
  for (const ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16}) {
    const double tolerance = type == ElementType::kDouble  ? 1e-12
                             : type == ElementType::kFloat ? 1e-6
                                                           : 0.02;
    const Tensor rgb = Colors(type, 1000);
    OpTest to_hsv("RGBToHSV");
    ASSERT_TRUE(to_hsv.Input(rgb).Run().ok());
    OpTest back("HSVToRGB");
    ASSERT_TRUE(back.Input(to_hsv.output(0)).Run().ok());
    for (int64_t i = 0; i < rgb.num_elements(); i += 3) {
      const Hsv want = ToHsv(At(rgb, i), At(rgb, i + 1), At(rgb, i + 2));
      ExpectHue(At(to_hsv.output(0), i), want.hue, tolerance);
      EXPECT_NEAR(At(to_hsv.output(0), i + 1), want.saturation, tolerance);
      EXPECT_NEAR(At(to_hsv.output(0), i + 2), want.value, tolerance);
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(At(back.output(0), i + c), At(rgb, i + c), 2 * tolerance);
      }
    }
  }
}

template <typename Change>
void ExpectAdjusted(const char* op, float by, const Change& change) {
  const Tensor rgb = Colors(ElementType::kFloat, 2000);
  OpTest test(op, /*threads=*/2);
  ASSERT_TRUE(test.Input(rgb).Input(Tensor::Scalar(by)).Run().ok());
  for (int64_t i = 0; i < rgb.num_elements(); i += 3) {
    Hsv color = ToHsv(At(rgb, i), At(rgb, i + 1), At(rgb, i + 2));
    change(&color);
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(At(test.output(0), i + c), Channel(color, 5 - 2 * c), 2e-5) << op << " " << by;
    }
  }
}

TEST(Colors, TurnTheirHue) {
  for (const float by : {0.0f, 0.3f, -0.7f, 1.0f, 12.25f}) {
    ExpectAdjusted("AdjustHue", by, [by](Hsv* color) {
      color->hue += static_cast<double>(by);
      color->hue -= std::floor(color->hue);
    });
  }
}

TEST(Colors, ScaleTheirSaturation) {
  for (const float by : {0.0f, 0.5f, 1.0f, 3.0f, -1.0f}) {
    ExpectAdjusted("AdjustSaturation", by, [by](Hsv* color) {
      color->saturation = std::clamp(color->saturation * static_cast<double>(by), 0.0, 1.0);
    });
  }
}

// Few channels, many, and more than the wide loops take.
TEST(Colors, MoveFromTheirMean) {
  for (const int64_t channels : {1, 3, 4, 7, 256, 300}) {
    const Tensor images = RandomTensor(ElementType::kFloat, Shape({2, 61, 47, channels}), 0, 1);
    OpTest one("AdjustContrastv2"), four("AdjustContrastv2", /*threads=*/4);
    ASSERT_TRUE(one.Input(images).Input(Tensor::Scalar(1.5f)).Run().ok());
    ASSERT_TRUE(four.Input(images).Input(Tensor::Scalar(1.5f)).Run().ok());
    ExpectEqual(four.output(0), one.output(0));
    std::vector<double> sums(static_cast<size_t>(2 * channels), 0.0);
    const int64_t size = 61 * 47 * channels;
    for (int64_t i = 0; i < 2 * size; ++i)
      sums[i / size * channels + i % channels] += At(images, i);
    for (int64_t i = 0; i < 2 * size; ++i) {
      const double mean = sums[i / size * channels + i % channels] / (61 * 47);
      ASSERT_NEAR(At(one.output(0), i), (At(images, i) - mean) * 1.5 + mean, 1e-5);
    }
  }
}

TEST(Colors, RefuseOtherChannels) {
  const Tensor four = RandomTensor(ElementType::kFloat, Shape({2, 2, 4}), 0, 1);
  EXPECT_EQ(OpTest("RGBToHSV").Input(four).Run().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpTest("AdjustHue").Input(four).Input(Tensor::Scalar(0.5f)).Run().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
