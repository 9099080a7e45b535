// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kInt = ElementType::kInt32;
constexpr ElementType kBool = ElementType::kBool;

TEST(Broadcasting, UnknownSizes) {
  EXPECT_EQ(Inferred("AddV2").In({-1, 3}).In({2, 1}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("AddV2").In({-1}).In({1}).Shapes(), "[?]");
  EXPECT_EQ(Inferred("AddV2").In({-1}).In({0}).Shapes(), "[?]");
  EXPECT_EQ(Inferred("AddV2").In({4, 1, 3}).In({5, 1}).Shapes(), "[4,5,3]");
  EXPECT_EQ(Inferred("AddV2").In({2}).In().Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("AddV2").In({2}).In({3}).Shapes(), kRefused);
}

TEST(Equal, MayTolerateShapes) {
  EXPECT_EQ(Inferred("Equal").In({2}).In({3}).Shapes(), kRefused);
  auto tolerant = [](PartialShape a, PartialShape b) {
    return Inferred("Equal").In(a).In(b).Attr("incompatible_shape_error", false).Shapes();
  };
  EXPECT_EQ(tolerant({2}, {3}), "[]");
  EXPECT_EQ(tolerant({2}, {-1}), "<unknown>");
  EXPECT_EQ(tolerant({2, 1}, {3}), "[2,3]");
}

TEST(Select, Conditions) {
  EXPECT_EQ(Inferred("Select").InScalar(kBool).In({2, -1}).In({-1, 3}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("Select").In({2}, kBool).In({2, 3}).In({2, 3}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("Select").In({3}, kBool).In({2, 3}).In({2, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Select").In({2, 3}, kBool).In({2, -1}).In({-1, -1}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("Select").InScalar(kBool).In({2}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("SelectV2").In({2, 1}, kBool).In({3}).InScalar().Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("SelectV2").In({2}, kBool).In({3}).InScalar().Shapes(), kRefused);
}

TEST(Reductions, Axes) {
  EXPECT_EQ(Inferred("Sum").In({2, -1, 4}).Vector({0, -1}).Shapes(), "[?]");
  EXPECT_EQ(Inferred("Sum").In({2, -1, 4}).Scalar(1).Attr("keep_dims", true).Shapes(), "[2,1,4]");
  EXPECT_EQ(Inferred("Sum").In({2, 3}).In({1}, kInt).Attr("keep_dims", true).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("Sum").In({2, 3}).In({1}, kInt).Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("Sum").In({2, 3}).Scalar(2).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Sum").In({2, 3}).In({1, 1}, kInt).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ArgMax").In({2, 3, 4}).Scalar(-2).Shapes(), "[2,4]");
  EXPECT_EQ(Inferred("ArgMax").In({2, 3, 4}).InScalar(kInt).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("ArgMax").In({3}).InScalar(kInt).Shapes(), "[]");
  EXPECT_EQ(Inferred("ArgMax").In({2, 3}).Scalar(2).Shapes(), kRefused);
}

TEST(Segments, Sum) {
  EXPECT_EQ(Inferred("UnsortedSegmentSum").In({2, 3, 4}).In({2, 3}, kInt).Scalar(5).Shapes(),
            "[5,4]");
  EXPECT_EQ(Inferred("UnsortedSegmentSum").In({2, 3}).In({2}, kInt).InScalar(kInt).Shapes(),
            "[?,3]");
  EXPECT_EQ(Inferred("UnsortedSegmentSum").In({2, 3}).In({3}, kInt).Scalar(5).Shapes(), kRefused);
  EXPECT_EQ(Inferred("UnsortedSegmentSum").In({2}).In({2}, kInt).Scalar(-1).Shapes(), kRefused);
}

TEST(Sequences, Lengths) {
  auto range = [](int start, int limit, int delta) {
    return Inferred("Range").Scalar(start).Scalar(limit).Scalar(delta).Shapes();
  };
  EXPECT_EQ(range(0, 10, 3), "[4]");
  EXPECT_EQ(range(10, 0, -5), "[2]");
  EXPECT_EQ(range(-2147483647, 2147483647, 1), "[4294967294]");
  EXPECT_EQ(range(5, 5, 1), "[0]");
  EXPECT_EQ(range(0, 10, -1), kRefused);
  EXPECT_EQ(range(0, 10, 0), kRefused);
  auto floats = [](float start, float limit, float delta) {
    return Inferred("Range")
        .Value(Tensor::Scalar(start))
        .Value(Tensor::Scalar(limit))
        .Value(Tensor::Scalar(delta))
        .Shapes();
  };
  EXPECT_EQ(floats(0, 1, 0.25f), "[4]");
  EXPECT_EQ(floats(0, 1, 0.3f), "[4]");
  EXPECT_EQ(floats(0, 1, 1e-30f), kRefused);
  const Tensor zero = Tensor::Scalar(0.0f);
  EXPECT_EQ(Inferred("LinSpace").Value(zero).Value(zero).Scalar(3).Shapes(), "[3]");
  EXPECT_EQ(Inferred("LinSpace").Value(zero).Value(zero).Scalar(0).Shapes(), kRefused);
}

TEST(Products, OfMatrices) {
  EXPECT_EQ(Inferred("MatMul").In({2, 3}).In({3, 4}).Shapes(), "[2,4]");
  EXPECT_EQ(Inferred("MatMul")
                .In({3, 2})
                .In({4, 3})
                .Attr("transpose_a", true)
                .Attr("transpose_b", true)
                .Shapes(),
            "[2,4]");
  EXPECT_EQ(Inferred("MatMul").In().In({3, -1}).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("MatMul").In({2, 3}).In({4, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("MatMul").In({2, 3}).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BatchMatMul").In({5, 2, 3}).In({5, 3, 4}).Shapes(), "[5,2,4]");
  EXPECT_EQ(Inferred("BatchMatMul").In({5, 2, 3}).In({1, 3, 4}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BatchMatMulV2").In({5, 1, 2, 3}).In({6, 3, 4}).Shapes(), "[5,6,2,4]");
  EXPECT_EQ(Inferred("BatchMatMulV2").In({2, 3}).In({4, 3}).Attr("adj_y", true).Shapes(), "[2,4]");
}

}  // namespace
}  // namespace troupe
