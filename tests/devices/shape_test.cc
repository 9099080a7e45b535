#include "devices/shape.h"

#include <cstdint>
#include <vector>

#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int64_t kBig = int64_t{1} << 40;

TEST(Shape, ValuesAndText) {
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape({2, 3}).ToString(), "[2,3]");
  EXPECT_EQ(Shape({2, 0, 3}).num_elements(), 0);
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({1}), Shape());
}

TEST(Shape, CopiesMovesAndEditsAcrossTheInlineLimit) {
  Shape shape;
  for (int64_t i = 1; i <= 7; ++i) {
    shape.AddDim(i);
    Shape copy = shape;
    EXPECT_EQ(copy, shape);
    Shape moved = std::move(copy);
    EXPECT_EQ(moved, shape);
    copy = moved;
    moved = Shape({9, 9});
    EXPECT_EQ(copy, shape);
    copy = *&copy;
    EXPECT_EQ(copy, shape);
  }
  EXPECT_EQ(shape.ToString(), "[1,2,3,4,5,6,7]");
  EXPECT_EQ(shape.num_elements(), 5040);
  shape.RemoveDim(0);
  shape.RemoveDim(5);
  EXPECT_EQ(shape.ToString(), "[2,3,4,5,6]");
  shape.RemoveDim(2);
  EXPECT_EQ(shape.ToString(), "[2,3,5,6]");
  shape.InsertDim(0, 10);
  EXPECT_EQ(shape.ToString(), "[10,2,3,5,6]");
  shape.set_dim(4, 0);
  EXPECT_EQ(shape.num_elements(), 0);
  shape.set_dim(4, 2);
  EXPECT_EQ(shape.num_elements(), 600);
}

TEST(Shape, CreateRefusesBadSizes) {
  const std::vector<std::vector<int64_t>> kBad = {{-1},
                                                  {2, -3},
                                                  {INT64_MIN},
                                                  {kBig, kBig},
                                                  {INT64_MAX, 2},
                                                  {kBig, kBig, 0},
                                                  std::vector<int64_t>(255, 1)};
  for (const auto& dims : kBad) {
    EXPECT_EQ(Shape::Create(dims).status().code(), absl::StatusCode::kInvalidArgument)
        << dims.size();
    TensorShapeProto proto;
    for (int64_t size : dims) proto.add_dim()->set_size(size);
    EXPECT_EQ(Shape::FromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(Shape::Create({INT64_MAX}).ok());
  EXPECT_TRUE(Shape::Create({0, kBig, kBig}).ok());
  EXPECT_TRUE(Shape::Create(std::vector<int64_t>(254, 1)).ok());
  TensorShapeProto unknown;
  unknown.set_unknown_rank(true);
  EXPECT_FALSE(Shape::FromProto(unknown).ok());
}

TEST(Shape, ProtoRoundTrip) {
  TensorShapeProto proto;
  Shape({4, 5, 6, 7, 8}).ToProto(&proto);
  EXPECT_EQ(*Shape::FromProto(proto), Shape({4, 5, 6, 7, 8}));
}

TEST(MultiplyWithoutOverflow, Limits) {
  EXPECT_EQ(MultiplyWithoutOverflow(3, 4), 12);
  EXPECT_EQ(MultiplyWithoutOverflow(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(MultiplyWithoutOverflow(INT64_MAX, 2), -1);
  EXPECT_EQ(MultiplyWithoutOverflow(kBig, 1 << 23), -1);
  EXPECT_EQ(MultiplyWithoutOverflow(0, INT64_MAX), 0);
}

TEST(PartialShape, TextAndKnowledge) {
  EXPECT_EQ(PartialShape().ToString(), "<unknown>");
  EXPECT_EQ(PartialShape({-1, 3}).ToString(), "[?,3]");
  EXPECT_EQ(PartialShape().rank(), -1);
  EXPECT_FALSE(PartialShape().fully_known());
  EXPECT_FALSE(PartialShape({-1, 3}).fully_known());
  EXPECT_TRUE(PartialShape(Shape({2, 3})).fully_known());
  EXPECT_EQ(*PartialShape({2, 3}).ToShape(), Shape({2, 3}));
  EXPECT_FALSE(PartialShape({-1}).ToShape().ok());
  EXPECT_FALSE(PartialShape().ToShape().ok());
}

TEST(PartialShape, MergeAndCompatibility) {
  const PartialShape unknown, a({-1, 3}), b({2, -1}), c({2, 4}), d({1, 2, 3});
  const struct {
    PartialShape left, right;
    const char* merged;  // nullptr: incompatible
  } kCases[] = {
      {unknown, unknown, "<unknown>"},
      {unknown, a, "[?,3]"},
      {a, unknown, "[?,3]"},
      {a, b, "[2,3]"},
      {b, c, "[2,4]"},
      {a, c, nullptr},
      {a, d, nullptr},
  };
  for (const auto& t : kCases) {
    const auto merged = t.left.MergeWith(t.right);
    EXPECT_EQ(merged.ok(), t.merged != nullptr);
    EXPECT_EQ(t.left.IsCompatibleWith(t.right), t.merged != nullptr);
    if (merged.ok()) {
      EXPECT_EQ(merged->ToString(), t.merged);
    }
  }
  EXPECT_TRUE(a.IsCompatibleWith(Shape({7, 3})));
  EXPECT_FALSE(a.IsCompatibleWith(Shape({7, 4})));
  EXPECT_FALSE(a.IsCompatibleWith(Shape({3})));
  EXPECT_EQ(a.Concatenate(b).ToString(), "[?,3,2,?]");
  EXPECT_EQ(a.Concatenate(unknown).ToString(), "<unknown>");
}

TEST(PartialShape, CreateAndProtos) {
  EXPECT_FALSE(PartialShape::Create({-2}).ok());
  EXPECT_FALSE(PartialShape::Create({kBig, kBig}).ok());
  EXPECT_TRUE(PartialShape::Create({-1, kBig, kBig}).ok());
  EXPECT_FALSE(PartialShape::Create(std::vector<int64_t>(255, -1)).ok());
  for (const PartialShape& shape :
       {PartialShape(), PartialShape({-1, 0, 5}), PartialShape(Shape())}) {
    TensorShapeProto proto;
    shape.ToProto(&proto);
    EXPECT_EQ(*PartialShape::FromProto(proto), shape);
  }
  TensorShapeProto odd;
  odd.set_unknown_rank(true);
  odd.add_dim()->set_size(1);
  EXPECT_FALSE(PartialShape::FromProto(odd).ok());
}

}  // namespace
}  // namespace troupe
