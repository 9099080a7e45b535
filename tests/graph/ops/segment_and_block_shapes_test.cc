// What is expected here is what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kInt = ElementType::kInt32;

TEST(Segments, RowsFollowFromTheirNumber) {
  EXPECT_EQ(Inferred("SegmentMax").In({4, 3}).In({4}, kInt).Shapes(), "[?,3]");
  EXPECT_EQ(Inferred("SegmentMax").In({4, 3}).In({2, 2}, kInt).Shapes(), kRefused);
  EXPECT_EQ(Inferred("UnsortedSegmentMin").In({4, 3}).In({4}, kInt).Scalar(7).Shapes(), "[7,3]");
  EXPECT_EQ(Inferred("SparseSegmentSum").In({4, 3}).In({5}, kInt).In({5}, kInt).Shapes(), "[?,3]");
  EXPECT_EQ(Inferred("SparseSegmentSum").In({4, 3}).In({5}, kInt).In({6}, kInt).Shapes(), kRefused);
}

TEST(Counts, SizesMayBeUnknown) {
  EXPECT_EQ(Inferred("DenseBincount").In({2, 3}, kInt).Scalar(4).In({0}).Shapes(), "[2,4]");
  EXPECT_EQ(Inferred("DenseBincount").In({2, 3}, kInt).InScalar(kInt).In({0}).Shapes(), "[?,?]");
  EXPECT_EQ(Inferred("HistogramFixedWidth").In({9}).In({2}).Scalar(4).Shapes(), "[4]");
  EXPECT_EQ(Inferred("HistogramFixedWidth").In({9}).In({3}).Scalar(4).Shapes(), kRefused);
}

TEST(Blocks, SpaceMustBeAMultiple) {
  EXPECT_EQ(Inferred("DepthToSpace").In({1, 2, 3, 8}).Attr("block_size", 2).Shapes(), "[1,4,6,2]");
  EXPECT_EQ(Inferred("DepthToSpace").In({1, 2, 3, 6}).Attr("block_size", 2).Shapes(), kRefused);
  EXPECT_EQ(Inferred("SpaceToDepth").In({1, 4, -1, 2}).Attr("block_size", 2).Shapes(), "[1,2,?,8]");
  EXPECT_EQ(Inferred("SpaceToBatchND").In({1, 5, 4}).Vector({3}).In({1, 2}, kInt).Shapes(),
            "[3,?,4]");
  EXPECT_EQ(Inferred("SpaceToBatchND").In({1, 5, 4}).Vector({0}).In({1, 2}, kInt).Shapes(),
            kRefused);
}

TEST(Rearranging, Shapes) {
  EXPECT_EQ(Inferred("Diag").In({2, -1}).Shapes(), "[2,?,2,?]");
  EXPECT_EQ(Inferred("DiagPart").In({2, 3, -1, 3}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("DiagPart").In({2, 3, 2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("NthElement").In({2, 5}).Scalar(4).Shapes(), "[2]");
  EXPECT_EQ(Inferred("NthElement").In({2, 5}).Scalar(5).Shapes(), kRefused);
}

}  // namespace
}  // namespace troupe
