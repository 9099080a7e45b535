// ScaleAndTranslate, and the later forms of ops on boxes, glimpses and files.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

// --- ScaleAndTranslate ---------------------------------------------------------------------------

Tensor Scaled(const Tensor& images, std::vector<int32_t> size, float scale, float translation) {
  OpTest op("ScaleAndTranslate", /*threads=*/2);
  op.Input(images)
      .Input(Tensor::Vector<int32_t>({size[0], size[1]}))
      .Input(Tensor::Vector<float>({scale, scale}))
      .Input(Tensor::Vector<float>({translation, translation}))
      .Attr("kernel_type", "triangle")
      .Attr("antialias", true);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? op.output(0) : Tensor();
}

/// The weights of the old pixels for new pixel `i`.
std::vector<double> TriangleWeights(int64_t from, int64_t i, double scale, double translation) {
  const double center = (static_cast<double>(i) + 0.5 - translation) / scale;
  std::vector<double> weights(from);
  if (center < 0 || center > static_cast<double>(from)) return weights;
  double sum = 0;
  for (int64_t k = 0; k < from; ++k) {
    const double distance =
        std::abs(static_cast<double>(k) + 0.5 - center) / std::max(1 / scale, 1.0);
    sum += weights[k] = std::max(0.0, 1 - distance);
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST(ScaleAndTranslateTest, EqualsNaiveSums) {
  for (const ElementType type : {kFloat, kDouble, kHalf, kBfloat16, kUint8, kInt64}) {
    const Tensor images = RandomTensor(type, Shape({2, 9, 7, 3}), 0, 100);
    for (const auto& [scale, translation] : {std::pair(0.4, 0.3), {1.7, -2.0}, {1.0, 0.0}}) {
      SCOPED_TRACE(::testing::Message() << ElementTypeName(type) << " " << scale);
      const Tensor got =
          Scaled(images, {6, 8}, static_cast<float>(scale), static_cast<float>(translation));
      Tensor want = Tensor::Uninitialized(kFloat, Shape({2, 6, 8, 3}));
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const int64_t c = i % 3, x = i / 3 % 8, y = i / 24 % 6, image = i / 144;
        const auto rows = TriangleWeights(9, y, scale, translation);
        const auto columns = TriangleWeights(7, x, scale, translation);
        double sum = 0;
        for (int64_t r = 0; r < 9; ++r) {
          for (int64_t k = 0; k < 7; ++k) {
            sum += rows[r] * columns[k] * At(images, ((image * 9 + r) * 7 + k) * 3 + c);
          }
        }
        Set(&want, i, sum);
      }
      ExpectNear(got, want, 1e-4, 1e-3);
    }
  }
}

TEST(ScaleAndTranslateTest, BadInputs) {
  const auto run = [](const Shape& images, Tensor size, Tensor scale, const char* filter) {
    OpTest op("ScaleAndTranslate");
    op.Input(Tensor::Uninitialized(kUint8, images))
        .Input(std::move(size))
        .Input(std::move(scale))
        .Input(Tensor::Vector<float>({NAN, INFINITY}))
        .Attr("kernel_type", filter);
    return op.Run().code();
  };
  const Shape image({1, 2, 2, 1});
  const Tensor size = Tensor::Vector<int32_t>({2, 2}), one = Tensor::Vector<float>({1, 1});
  EXPECT_EQ(run(image, size, one, "box"), absl::StatusCode::kOk);
  EXPECT_EQ(run(image, size, Tensor::Vector<float>({1e-45f, 1e38f}), "lanczos5"),
            absl::StatusCode::kOk);
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run(image, size, one, "sharp"), kBad);
  EXPECT_EQ(run(Shape({2, 2, 1}), size, one, "box"), kBad);
  EXPECT_EQ(run(Shape({1, 0, 2, 1}), size, one, "box"), kBad);
  EXPECT_EQ(run(image, Tensor::Vector<int32_t>({2, 0}), one, "box"), kBad);
  EXPECT_EQ(run(image, size, Tensor::Vector<float>({1, 0}), "box"), kBad);
  EXPECT_EQ(run(image, size, Tensor::Vector<float>({1, NAN}), "box"), kBad);
  EXPECT_EQ(run(image, size, Tensor::Vector<float>({1}), "box"), kBad);
}

// --- boxes ---------------------------------------------------------------------------------------

TEST(DrawBoundingBoxesV2Test, TakesItsColors) {
  const auto draw = [](Tensor colors) {
    OpTest op("DrawBoundingBoxesV2");
    op.Input(MakeTensor(kFloat, Shape({1, 1, 2, 1}), {0, 0}))
        .Input(MakeTensor(kFloat, Shape({1, 1, 4}), {0, 0, 0, 0}))
        .Input(std::move(colors));
    const absl::Status status = op.Run();
    return status.ok() ? At(op.output(0), 0) : -1;
  };
  EXPECT_EQ(draw(MakeTensor(kFloat, Shape({1, 1}), {0.25})), 0.25);
  EXPECT_EQ(draw(MakeTensor(kFloat, Shape({1, 4}), {0.5, 0, 0, 0})), 0.5);
  EXPECT_EQ(draw(Tensor::Uninitialized(kFloat, Shape({0, 1}))), 1);
  EXPECT_EQ(draw(Tensor::Uninitialized(kFloat, Shape({3, 0}))), -1);
  EXPECT_EQ(draw(Tensor::Vector<float>({1})), -1);
}

TEST(NonMaxSuppressionWithOverlapsTest, PicksByScores) {
  const auto pick = [](Tensor overlaps, int32_t most) -> absl::StatusOr<Tensor> {
    OpTest op("NonMaxSuppressionWithOverlaps");
    op.Input(std::move(overlaps))
        .Input(Tensor::Vector<float>({0.5f, 0.9f, 0.1f}))
        .Input(Tensor::Scalar<int32_t>(most))
        .Input(Tensor::Scalar(0.5f))
        .Input(Tensor::Scalar(0.2f));
    const absl::Status status = op.Run();
    if (!status.ok()) return status;
    return op.output(0);
  };
  const Tensor apart = MakeTensor(kFloat, Shape({3, 3}), {1, 0, 0, 0, 1, 0, 0, 0, 1});
  ExpectEqual(pick(apart, 5).value(), Tensor::Vector<int32_t>({1, 0}));
  ExpectEqual(pick(apart, 1).value(), Tensor::Vector<int32_t>({1}));
  const Tensor near = MakeTensor(kFloat, Shape({3, 3}), {1, 0.6, 0, 0.6, 1, 0, 0, 0, 1});
  ExpectEqual(pick(near, 5).value(), Tensor::Vector<int32_t>({1}));
  EXPECT_FALSE(pick(near, -1).ok());
  EXPECT_FALSE(pick(Tensor::Uninitialized(kFloat, Shape({3, 2})), 1).ok());
}

TEST(StatelessSampleDistortedBoundingBoxTest, TheSeedDecides) {
  const auto draw = [](std::vector<int64_t> seed) -> absl::StatusOr<Tensor> {
    OpTest op("StatelessSampleDistortedBoundingBox");
    op.Input(Tensor::Vector<int32_t>({50, 40, 3}))
        .Input(MakeTensor(kFloat, Shape({1, 1, 4}), {0.1, 0.1, 0.9, 0.9}))
        .Input(Tensor::Scalar(0.1f))
        .Input(
            Tensor::FromValues<int64_t>(seed, Shape({static_cast<int64_t>(seed.size())})).value());
    const absl::Status status = op.Run();
    if (!status.ok()) return status;
    return op.output(2);
  };
  const Tensor box = draw({3, 4}).value();
  ExpectEqual(draw({3, 4}).value(), box);
  EXPECT_NE(At(draw({3, 5}).value(), 2), At(box, 2));
  EXPECT_FALSE(draw({3}).ok());
}

// --- glimpses and files --------------------------------------------------------------------------

TEST(ExtractGlimpseV2Test, OffsetsOfTheCorner) {
  const auto take = [](bool centered, bool normalized, float offset) {
    OpTest op("ExtractGlimpseV2");
    op.Input(MakeTensor(kFloat, Shape({1, 1, 6, 1}), {1, 2, 3, 4, 5, 6}))
        .Input(Tensor::Vector<int32_t>({1, 2}))
        .Input(MakeTensor(kFloat, Shape({1, 2}), {0, offset}))
        .Attr("centered", centered)
        .Attr("normalized", normalized)
        .Attr("uniform_noise", false)
        .Attr("noise", "zero");
    EXPECT_TRUE(op.Run().ok());
    return At(op.output(0), 0);
  };
  EXPECT_EQ(take(false, false, 2), 3);
  EXPECT_EQ(take(false, true, 0.5f), 4);
}

TEST(EncodeJpegVariableQualityTest, QualityIsAnInput) {
  const Tensor image = RandomTensor(kUint8, Shape({16, 16, 3}), 0, 255);
  const auto encode = [&](const Tensor& pixels, Tensor quality) -> size_t {
    OpTest op("EncodeJpegVariableQuality");
    op.Input(pixels).Input(std::move(quality));
    return op.Run().ok() ? op.output(0).unchecked_scalar<std::string>().size() : 0;
  };
  EXPECT_GT(encode(image, Tensor::Scalar<int32_t>(95)), encode(image, Tensor::Scalar<int32_t>(5)));
  EXPECT_EQ(encode(image, Tensor::Scalar<int32_t>(101)), 0u);
  EXPECT_EQ(encode(image, Tensor::Scalar<int32_t>(-1)), 0u);
  EXPECT_EQ(encode(image, Tensor::Vector<int32_t>({5})), 0u);
  EXPECT_EQ(encode(RandomTensor(kUint8, Shape({4, 4, 2}), 0, 255), Tensor::Scalar<int32_t>(5)), 0u);
}

}  // namespace
}  // namespace troupe::testing
