// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kInt = ElementType::kInt32;

TEST(Reshape, FindsTheMissingSize) {
  EXPECT_EQ(Inferred("Reshape").In({4, 6}).Vector({3, -1}).Shapes(), "[3,8]");
  EXPECT_EQ(Inferred("Reshape").In({-1, 6}).Vector({3, -1}).Shapes(), "[3,?]");
  EXPECT_EQ(Inferred("Reshape").In({4, 6}).PartVector({2, -1}).Shapes(), "[2,12]");
  EXPECT_EQ(Inferred("Reshape").In({0, 6}).Vector({0, -1}).Shapes(), "[0,?]");
  EXPECT_EQ(Inferred("Reshape").In().Vector({2, -1}).Shapes(), "[2,?]");
  EXPECT_EQ(Inferred("Reshape").In({4}).In({2}, kInt).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("Reshape").In({4}).In({-1}, kInt).Shapes(), "<unknown>");
}

TEST(Reshape, Refuses) {
  EXPECT_EQ(Inferred("Reshape").In({4, 6}).Vector({5, -1}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Reshape").In({4, 6}).Vector({5}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Reshape").In({-1, 5}).Vector({4, 4}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Reshape").In({4}).Vector({-2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Reshape").In({4}).In({2, 1}, kInt).Shapes(), kRefused);
}

TEST(ExpandAndSqueeze, Axes) {
  EXPECT_EQ(Inferred("ExpandDims").In({2, -1}).Scalar(-1).Shapes(), "[2,?,1]");
  EXPECT_EQ(Inferred("ExpandDims").In({2, -1}).InScalar(kInt).Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("ExpandDims").In({2, 3}).Scalar(3).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Squeeze").In({1, 2, 1}).Shapes(), "[2]");
  EXPECT_EQ(Inferred("Squeeze").In({1, -1, 1}).Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("Squeeze").In({1, -1, 1}).Attr("squeeze_dims", {-2}).Shapes(), "[1,1]");
  EXPECT_EQ(Inferred("Squeeze").In({1, 2}).Attr("squeeze_dims", {1}).Shapes(), kRefused);
}

TEST(Broadcast, ToAShape) {
  EXPECT_EQ(Inferred("BroadcastTo").In({3, 1}).Vector({2, 3, 4}).Shapes(), "[2,3,4]");
  EXPECT_EQ(Inferred("BroadcastTo").In({3, 1}).In({3}, kInt).Shapes(), "[?,3,?]");
  EXPECT_EQ(Inferred("BroadcastTo").In({3, 2}).Vector({3, 4}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BroadcastTo").In({3, 2}).Vector({2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("BroadcastArgs").In({2}, kInt).In({3}, kInt).Shapes(), "[3]");
  EXPECT_EQ(Inferred("BroadcastGradientArgs").In({2}, kInt).In({3}, kInt).Shapes(), "[?] [?]");
}

TEST(Concat, JoinsSizes) {
  auto concat = [](std::vector<PartialShape> shapes, int axis) {
    return Inferred("ConcatV2").List(shapes).Scalar(axis).Shapes();
  };
  EXPECT_EQ(concat({{2, 3}, {4, 3}}, 0), "[6,3]");
  EXPECT_EQ(concat({{2, -1}, {4, 3}}, -2), "[6,3]");
  EXPECT_EQ(concat({{-1, 3}, {4, 3}}, 0), "[?,3]");
  EXPECT_EQ(concat({InferenceContext::Scalar(), {4, 3}}, 0), kRefused);
  EXPECT_EQ(concat({PartialShape(), {4, 3}}, 0), "[?,3]");
  EXPECT_EQ(concat({{2, 3}, {4, 5}}, 0), kRefused);
  EXPECT_EQ(concat({{2, 3}, {4, 3}}, 2), kRefused);
  EXPECT_EQ(Inferred("ConcatV2").List({{2, 3}, {4, 3}}).InScalar(kInt).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("Concat").Scalar(1).List({{2, 3}, {2, 4}}).Shapes(), "[2,7]");
}

TEST(PackAndUnpack, Axes) {
  EXPECT_EQ(Inferred("Pack").List({{2, -1}, {-1, 3}}).Attr("axis", -1).Shapes(), "[2,3,2]");
  EXPECT_EQ(Inferred("Pack").List({{2}, {3}}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Pack").List({{2}, {2}}).Attr("axis", 2).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Unpack").In({2, -1}).Attr("num", 2).Shapes(), "[?] [?]");
  EXPECT_EQ(Inferred("Unpack").In({2, 4}).Attr("num", 2).Attr("axis", 1).Shapes(), kRefused);
}

TEST(Split, Parts) {
  EXPECT_EQ(Inferred("Split").Scalar(-1).In({2, 6}).Attr("num_split", 2).Shapes(), "[2,3] [2,3]");
  EXPECT_EQ(Inferred("Split").Scalar(0).In({5}).Attr("num_split", 2).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Split").InScalar(kInt).In({5}).Attr("num_split", 1).Shapes(), "[?]");
  auto split = [](PartialShape shape, std::initializer_list<int32_t> sizes) {
    return Inferred("SplitV")
        .In(shape)
        .Vector(sizes)
        .Scalar(0)
        .Attr("num_split", static_cast<int>(sizes.size()))
        .Shapes();
  };
  EXPECT_EQ(split({7, 2}, {3, -1}), "[3,2] [4,2]");
  EXPECT_EQ(split({-1, 2}, {3, -1}), "[3,2] [?,2]");
  EXPECT_EQ(split({7, 2}, {3, 3}), kRefused);
  EXPECT_EQ(split({7, 2}, {8, -1}), kRefused);
  EXPECT_EQ(split({7, 2}, {-1, -1}), kRefused);
}

TEST(Slice, BeginAndSize) {
  EXPECT_EQ(Inferred("Slice").In({5, 6}).Vector({1, 2}).Vector({-1, 3}).Shapes(), "[4,3]");
  EXPECT_EQ(Inferred("Slice").In({-1, 6}).Vector({1, 2}).Vector({-1, 3}).Shapes(), "[?,3]");
  EXPECT_EQ(Inferred("Slice").In({5, 6}).In({2}, kInt).Vector({-1, 3}).Shapes(), "[?,3]");
  EXPECT_EQ(Inferred("Slice").In({5, 6}).Vector({0, 0}).In({2}, kInt).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("Slice").In({5, 6}).Vector({6, 0}).Vector({-1, 1}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Slice").In({5, 6}).Vector({0, 0}).Vector({-2, 1}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Slice").In({5, 6}).Vector({0}).Vector({1}).Shapes(), kRefused);
}

struct Masks {
  int begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};

std::string StridedSlice(PartialShape shape, std::initializer_list<int32_t> begin,
                         std::initializer_list<int32_t> end, std::initializer_list<int32_t> strides,
                         Masks masks = {}) {
  return Inferred("StridedSlice")
      .In(shape)
      .Vector(begin)
      .Vector(end)
      .Vector(strides)
      .Attr("begin_mask", masks.begin)
      .Attr("end_mask", masks.end)
      .Attr("ellipsis_mask", masks.ellipsis)
      .Attr("new_axis_mask", masks.new_axis)
      .Attr("shrink_axis_mask", masks.shrink)
      .Shapes();
}

TEST(StridedSlice, Bounds) {
  EXPECT_EQ(StridedSlice({5, 6}, {1}, {4}, {2}), "[2,6]");
  EXPECT_EQ(StridedSlice({5, 6}, {-1}, {-6}, {-1}), "[5,6]");
  EXPECT_EQ(StridedSlice({5, -1}, {4, 1}, {1, 3}, {1, 1}), "[0,?]");
  EXPECT_EQ(StridedSlice({5}, {3}, {0}, {-2}, {.begin = 1, .end = 1}), "[3]");
  EXPECT_EQ(StridedSlice({5}, {-100}, {100}, {1}), "[5]");
  EXPECT_EQ(Inferred("StridedSlice").In({5}).In({1}, kInt).Vector({2}).Vector({1}).Shapes(), "[?]");
  EXPECT_EQ(StridedSlice({5}, {0}, {1}, {0}), kRefused);
  EXPECT_EQ(StridedSlice({5}, {0, 0}, {1, 1}, {1, 1}), kRefused);
}

TEST(StridedSlice, Masks) {
  EXPECT_EQ(StridedSlice({5, 6, 7}, {0, 2}, {0, 0}, {1, 1}, {.ellipsis = 1, .shrink = 2}), "[5,6]");
  EXPECT_EQ(StridedSlice({5, 6}, {0, 1}, {0, 3}, {1, 1}, {.new_axis = 1}), "[1,2,6]");
  EXPECT_EQ(StridedSlice({5, 6}, {0, 0, 0}, {0, 0, 2}, {1, 1, 1}, {.ellipsis = 1, .new_axis = 2}),
            "[5,1,2]");
  EXPECT_EQ(StridedSlice({5}, {-5}, {0}, {1}, {.shrink = 1}), "[]");
  EXPECT_EQ(StridedSlice({5}, {5}, {0}, {1}, {.shrink = 1}), kRefused);
  EXPECT_EQ(StridedSlice({5}, {1}, {0}, {-1}, {.shrink = 1}), kRefused);
  EXPECT_EQ(StridedSlice({5, 6}, {0, 0}, {1, 1}, {1, 1}, {.ellipsis = 3}), kRefused);
}

TEST(PadTileTranspose, Sizes) {
  const Tensor paddings = Tensor::FromValues<int32_t>({1, 2, 0, 3}, Shape({2, 2})).value();
  EXPECT_EQ(Inferred("Pad").In({4, -1}).Value(paddings).Shapes(), "[7,?]");
  EXPECT_EQ(Inferred("Pad").In().In({3, 2}, kInt).Shapes(), "[?,?,?]");
  EXPECT_EQ(Inferred("Pad").In({4}).Value(paddings).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Pad").In({4}).In({1, 3}, kInt).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Tile").In({4, -1}).Vector({2, 3}).Shapes(), "[8,?]");
  EXPECT_EQ(Inferred("Tile").In({4, -1}).Vector({2, 0}).Shapes(), "[8,0]");
  EXPECT_EQ(Inferred("Tile").In({4}).Vector({2, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Transpose").In({2, -1, 4}).Vector({2, 0, -2}).Shapes(), "[4,2,?]");
  EXPECT_EQ(Inferred("Transpose").In({2, -1, 4}).In({3}, kInt).Shapes(), "[?,?,?]");
  EXPECT_EQ(Inferred("Transpose").In().In({1}, kInt).Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("Transpose").In({2, 3}).Vector({0, 2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("Transpose").In({2, 3}).Vector({0}).Shapes(), kRefused);
}

TEST(Gather, AxesAndBatches) {
  EXPECT_EQ(Inferred("Gather").In({5, 6}).In({2, -1}, kInt).Shapes(), "[2,?,6]");
  EXPECT_EQ(Inferred("Gather").InScalar().In({2}, kInt).Shapes(), kRefused);
  EXPECT_EQ(Inferred("GatherV2").In({5, 6}).In({2}, kInt).Scalar(-1).Shapes(), "[5,2]");
  EXPECT_EQ(Inferred("GatherV2").In({5, 6}).In({2}, kInt).InScalar(kInt).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("GatherV2").In({5, 6}).In({2}, kInt).Scalar(2).Shapes(), kRefused);
  EXPECT_EQ(
      Inferred("GatherV2").In({5, 6, 7}).In({5, 2}, kInt).Scalar(1).Attr("batch_dims", 1).Shapes(),
      "[5,2,7]");
}

TEST(Scattering, Shapes) {
  EXPECT_EQ(Inferred("ScatterNd").In({4, 1}, kInt).In({4, 3}).Vector({8, 3}).Shapes(), "[8,3]");
  EXPECT_EQ(Inferred("ScatterNd").In({4, 1}, kInt).In({4, 2}).Vector({8, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ScatterNd").In({4, 1}, kInt).In({4}).Vector({0}).Shapes(), kRefused);
  EXPECT_EQ(
      Inferred("DynamicStitch").List({{2}, {-1}}, kInt).List({{2, 3}, PartialShape()}).Shapes(),
      "[?,3]");
  EXPECT_EQ(Inferred("DynamicStitch").List({{2}, {3}}, kInt).List({{2, 3}, {3, 4}}).Shapes(),
            kRefused);
}

TEST(TopK, ReplacesTheLastSize) {
  EXPECT_EQ(Inferred("TopKV2").In({-1, 5}).Scalar(2).Shapes(), "[?,2] [?,2]");
  EXPECT_EQ(Inferred("TopKV2").In({5}).InScalar(kInt).Shapes(), "[?] [?]");
  EXPECT_EQ(Inferred("TopKV2").In({5}).Scalar(6).Shapes(), kRefused);
  EXPECT_EQ(Inferred("TopKV2").InScalar().Scalar(0).Shapes(), kRefused);
}

TEST(OneHotFillWhere, Shapes) {
  auto one_hot = [](int axis) {
    return Inferred("OneHot")
        .In({2, -1}, kInt)
        .Scalar(4)
        .InScalar()
        .InScalar()
        .Attr("axis", axis)
        .Shapes();
  };
  EXPECT_EQ(one_hot(-1), "[2,?,4]");
  EXPECT_EQ(one_hot(1), "[2,4,?]");
  EXPECT_EQ(one_hot(-2), kRefused);
  EXPECT_EQ(Inferred("Fill").PartVector({2, -1}).InScalar().Shapes(), "[2,?]");
  EXPECT_EQ(Inferred("Fill").Vector({2, -1}).InScalar().Shapes(), kRefused);
  EXPECT_EQ(Inferred("Where").In({2, 3}).Shapes(), "[?,2]");
  EXPECT_EQ(Inferred("Where").In().Shapes(), "[?,?]");
}

}  // namespace
}  // namespace troupe
