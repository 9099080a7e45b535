// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kInt = ElementType::kInt32;

Inferred Conv2D(PartialShape input, PartialShape filter, const char* padding) {
  return Inferred("Conv2D").In(input).In(filter).Attr("padding", padding);
}

TEST(Conv2D, Paddings) {
  const PartialShape input = {2, 7, -1, 3}, filter = {3, 2, 3, 8};
  EXPECT_EQ(Conv2D(input, filter, "VALID").Attr("strides", {1, 2, 1, 1}).Shapes(), "[2,3,?,8]");
  EXPECT_EQ(Conv2D(input, filter, "SAME").Attr("strides", {1, 2, 2, 1}).Shapes(), "[2,4,?,8]");
  EXPECT_EQ(Conv2D(input, filter, "EXPLICIT")
                .Attr("strides", {1, 1, 1, 1})
                .Attr("explicit_paddings", {0, 0, 1, 2, 0, 0, 0, 0})
                .Shapes(),
            "[2,8,?,8]");
  EXPECT_EQ(Conv2D(input, filter, "VALID")
                .Attr("strides", {1, 1, 1, 1})
                .Attr("dilations", {1, 2, 1, 1})
                .Shapes(),
            "[2,3,?,8]");
  EXPECT_EQ(Conv2D({2, 3, 7, 9}, filter, "VALID")
                .Attr("strides", {1, 1, 1, 1})
                .Attr("data_format", "NCHW")
                .Shapes(),
            "[2,8,5,8]");
}

TEST(Conv2D, Groups) {
  EXPECT_EQ(Conv2D({1, 4, 4, 6}, {1, 1, 3, 4}, "SAME").Attr("strides", {1, 1, 1, 1}).Shapes(),
            "[1,4,4,4]");
  EXPECT_EQ(Conv2D({1, 4, 4, 6}, {1, 1, 3, 5}, "SAME").Attr("strides", {1, 1, 1, 1}).Shapes(),
            kRefused);
}

TEST(Conv2D, Refuses) {
  const PartialShape input = {2, 7, 7, 3}, filter = {3, 2, 3, 8};
  auto refused = [&](std::initializer_list<int64_t> strides, const char* padding = "VALID") {
    return Conv2D(input, filter, padding).Attr("strides", strides).Shapes();
  };
  EXPECT_EQ(refused({1, 0, 1, 1}), kRefused);
  EXPECT_EQ(refused({1, 1, 1}), kRefused);
  EXPECT_EQ(refused({1, 1, 1, 1}, "EXPLICIT"), kRefused);
  EXPECT_EQ(Conv2D({2, 2, 7, 3}, filter, "VALID").Attr("strides", {1, 1, 1, 1}).Shapes(), kRefused);
  EXPECT_EQ(Conv2D({2, 7, 7, 4}, filter, "SAME").Attr("strides", {1, 1, 1, 1}).Shapes(), kRefused);
  EXPECT_EQ(Conv2D(input, filter, "SAME")
                .Attr("strides", {1, 1, 1, 1})
                .Attr("explicit_paddings", {0, 0, 0, 0, 0, 0, 0, 0})
                .Shapes(),
            kRefused);
  EXPECT_EQ(Conv2D(input, filter, "EXPLICIT")
                .Attr("strides", {1, 1, 1, 1})
                .Attr("explicit_paddings", {1, 0, 0, 0, 0, 0, 0, 0})
                .Shapes(),
            kRefused);
}

TEST(Conv2DGradients, SizesGiven) {
  auto input_gradient = [](std::initializer_list<int32_t> sizes) {
    return Inferred("Conv2DBackpropInput")
        .Vector(sizes)
        .In({3, 3, 4, 8})
        .In({-1, 5, 5, 8})
        .Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "SAME")
        .Shapes();
  };
  EXPECT_EQ(input_gradient({2, 5, 5, 4}), "[?,5,5,4]");
  EXPECT_EQ(input_gradient({5, 6}), "[?,5,6,4]");
  EXPECT_EQ(input_gradient({5, 6, 7}), kRefused);
  EXPECT_EQ(Inferred("Conv2DBackpropFilter")
                .In()
                .In({4}, kInt)
                .In()
                .Attr("strides", {1, 1, 1, 1})
                .Attr("padding", "SAME")
                .Shapes(),
            "[?,?,?,?]");
}

TEST(Pools, Windows) {
  auto pool = [](const char* op, PartialShape input, std::initializer_list<int64_t> ksize,
                 const char* padding) {
    return Inferred(op)
        .In(input)
        .Attr("ksize", ksize)
        .Attr("strides", {1, 2, 2, 1})
        .Attr("padding", padding)
        .Shapes();
  };
  EXPECT_EQ(pool("MaxPool", {2, 7, 8, 3}, {1, 3, 3, 1}, "VALID"), "[2,3,3,3]");
  EXPECT_EQ(pool("AvgPool", {2, 7, -1, 3}, {1, 3, 3, 1}, "SAME"), "[2,4,?,3]");
  EXPECT_EQ(pool("MaxPool", {2, 7, 8}, {1, 3, 3, 1}, "VALID"), kRefused);
  EXPECT_EQ(pool("AvgPool", {2, 2, 8, 3}, {1, 3, 3, 1}, "VALID"), kRefused);
  EXPECT_EQ(pool("AvgPool", {2, 7, 8, 3}, {1, 3, 3}, "VALID"), kRefused);
  EXPECT_EQ(Inferred("MaxPoolV2")
                .In({2, 7, 8, 3})
                .Vector({1, 3, 3, 1})
                .In({4}, kInt)
                .Attr("padding", "VALID")
                .Shapes(),
            "<unknown>");
  EXPECT_EQ(Inferred("MaxPoolGradGrad")
                .In({2, 4, 4, 3})
                .In({2, 2, 2, 3})
                .In({2, 4, 4, 4})
                .Attr("ksize", {1, 2, 2, 1})
                .Attr("strides", {1, 2, 2, 1})
                .Attr("padding", "VALID")
                .Shapes(),
            kRefused);
}

TEST(Bias, Channels) {
  EXPECT_EQ(Inferred("BiasAdd").In({2, -1}).In({3}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("BiasAdd").In({2, -1, 4}).In({3}).Attr("data_format", "NCHW").Shapes(),
            "[2,3,4]");
  EXPECT_EQ(Inferred("BiasAdd").In({2, 4}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BiasAdd").In({4}).In({4}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BiasAddGrad").In({2, 4}).Shapes(), "[4]");
}

TEST(BatchNorm, Channels) {
  auto norm = [](PartialShape x, PartialShape scale, PartialShape mean, bool training) {
    return Inferred("FusedBatchNormV3")
        .In(x)
        .In(scale)
        .In(scale)
        .In(mean)
        .In(mean)
        .Attr("is_training", training)
        .Shapes();
  };
  EXPECT_EQ(norm({2, 5, 5, -1}, {3}, {0}, true), "[2,5,5,3] [3] [3] [3] [3] <unknown>");
  EXPECT_EQ(norm({2, 5, 5, 3}, {3}, {0}, false), kRefused);
  EXPECT_EQ(norm({2, 5, 5, 3}, {4}, {0}, true), kRefused);
  EXPECT_EQ(norm({2, 5, 3}, {3}, {0}, true), kRefused);
}

TEST(CrossEntropy, Shapes) {
  EXPECT_EQ(Inferred("SoftmaxCrossEntropyWithLogits").In({-1, 4}).In({5, -1}).Shapes(),
            "[5] [5,4]");
  EXPECT_EQ(Inferred("SoftmaxCrossEntropyWithLogits").In({5, 4}).In({1, 4}).Shapes(), "[5] [5,4]");
  EXPECT_EQ(Inferred("SoftmaxCrossEntropyWithLogits").In({5}).In({5}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("SparseSoftmaxCrossEntropyWithLogits").In({-1, 4}).In({5}, kInt).Shapes(),
            "[5] [5,4]");
  EXPECT_EQ(Inferred("SparseSoftmaxCrossEntropyWithLogits").In({6, 4}).In({5}, kInt).Shapes(),
            kRefused);
}

}  // namespace
}  // namespace troupe
