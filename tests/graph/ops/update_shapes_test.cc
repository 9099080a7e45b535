// Shapes of scattered updates, gathered slices, parts, and linear systems: what TensorFlow infers.
#include <gtest/gtest.h>

#include "tests/graph/ops/inferred.h"

namespace troupe {
namespace {

constexpr char kRefused[] = "INVALID_ARGUMENT";
constexpr ElementType kInt = ElementType::kInt32;

TEST(ScatterShapes, Variables) {
  EXPECT_EQ(Inferred("ScatterAdd").Variable({3, 2}).In({4}, kInt).In({4, 2}).Shapes(), "[3,2]");
  EXPECT_EQ(Inferred("ScatterAdd").Variable({3, 2}).In({4}, kInt).InScalar().Shapes(), "[3,2]");
  EXPECT_EQ(Inferred("ScatterAdd").Variable({3, 2}).In({4}, kInt).In({4, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ScatterNdAdd").Variable({3, 2}).In({4, 2}, kInt).In({4}).Shapes(), "[3,2]");
  EXPECT_EQ(Inferred("ScatterNdAdd").Variable({3, 2}).In({4, 2}, kInt).In({3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("ResourceScatterAdd").Handle({3, 2}).In({4}, kInt).In({4, 2}).Shapes(), "");
  EXPECT_EQ(Inferred("ResourceScatterAdd").Handle({3, 2}).In({4}, kInt).In({5, 2}).Shapes(),
            kRefused);
  EXPECT_EQ(Inferred("ResourceScatterNdSub").Handle({3, 2}).In({1, 1}, kInt).In({1, 3}).Shapes(),
            kRefused);
}

TEST(ScatterShapes, Tensors) {
  EXPECT_EQ(Inferred("TensorScatterAdd").In({3, 2}).In({4, 1}, kInt).In({4, 2}).Shapes(), "[3,2]");
  EXPECT_EQ(Inferred("TensorScatterAdd").In({3, 2}).In({4, 1}, kInt).In({4, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("TensorScatterUpdate").In({0, 2}).In({4, 1}, kInt).In({4, 2}).Shapes(),
            kRefused);
}

TEST(GatherShapes, VariablesAndTensors) {
  EXPECT_EQ(Inferred("GatherNd").In({3, 2, 4}).In({-1, 5, 2}, kInt).Shapes(), "[?,5,4]");
  EXPECT_EQ(Inferred("GatherNd").In({3, 2}).In({5, -1}, kInt).Shapes(), "<unknown>");
  EXPECT_EQ(Inferred("GatherNd").In({3, 2}).In({5, 3}, kInt).Shapes(), kRefused);
  const auto gather = [](PartialShape variable, PartialShape indices, int64_t batch_dims) {
    return Inferred("ResourceGather")
        .Handle(variable)
        .In(indices, kInt)
        .Attr("dtype", ElementType::kFloat)
        .Attr("batch_dims", batch_dims)
        .Shapes();
  };
  EXPECT_EQ(gather({3, 2, 4}, {5, 6}, 0), "[5,6,2,4]");
  EXPECT_EQ(gather({3, 2, 4}, {3, 6}, 1), "[3,6,4]");
  EXPECT_EQ(gather({3, 2}, {3, 6}, -1), kRefused);
  EXPECT_EQ(gather({3}, {3}, 1), kRefused);
}

TEST(PartShapes, PartitionsAndDistinctElements) {
  EXPECT_EQ(Inferred("DynamicPartition")
                .In({3, 2, 4})
                .In({3, -1}, kInt)
                .Attr("num_partitions", 2)
                .Shapes(),
            "[?,4] [?,4]");
  EXPECT_EQ(
      Inferred("DynamicPartition").In({3, 2}).In({2}, kInt).Attr("num_partitions", 1).Shapes(),
      kRefused);
  EXPECT_EQ(Inferred("Unique").In({5}).Shapes(), "[?] [5]");
  EXPECT_EQ(Inferred("Unique").In({5, 1}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("UniqueV2").In({5, 3}).Vector({-1}).Shapes(), "[?,?] [3]");
  EXPECT_EQ(Inferred("UniqueV2").In({5, 3}).Vector({2}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("UniqueV2").In({5, 3}).In({1}, kInt).Shapes(), "[?,?] [?]");
  EXPECT_EQ(Inferred("SegmentSum").In({5, 3}).In({5}, kInt).Shapes(), "[?,3]");
  EXPECT_EQ(Inferred("SegmentSum").In({5, 3}).In({5, 1}, kInt).Shapes(), kRefused);
}

TEST(BitcastShapes, RowsOfSmallerElements) {
  const auto cast = [](PartialShape shape, ElementType from, ElementType to) {
    return Inferred("Bitcast").In(shape, from).Attr("type", to).Shapes();
  };
  EXPECT_EQ(cast({2, -1}, ElementType::kFloat, ElementType::kInt32), "[2,?]");
  EXPECT_EQ(cast({2, -1}, ElementType::kFloat, ElementType::kUint8), "[2,?,4]");
  EXPECT_EQ(cast({2, -1}, ElementType::kUint8, ElementType::kFloat), "[2]");
  EXPECT_EQ(cast({2, 3}, ElementType::kUint8, ElementType::kFloat), kRefused);
  EXPECT_EQ(cast(InferenceContext::Scalar(), ElementType::kUint8, ElementType::kFloat), kRefused);
}

TEST(MatrixShapes, SystemsAndDiagonals) {
  EXPECT_EQ(Inferred("MatrixInverse").In({2, -1, 3}).Shapes(), "[2,3,3]");
  EXPECT_EQ(Inferred("Cholesky").In({2, 3}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("MatrixSolve").In({-1, 3, 3}).In({2, -1, 4}).Shapes(), "[2,3,4]");
  EXPECT_EQ(Inferred("MatrixSolve").In({3, 3}).In({2, 3, 4}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("MatrixTriangularSolve").In({3, 3}).In({2, 3, 4}).Shapes(), "[2,3,4]");
  EXPECT_EQ(Inferred("MatrixTriangularSolve").In({2, 3, 3}).In({4, 3, 1}).Shapes(), kRefused);
  EXPECT_EQ(Inferred("MatrixDiag").In({2, 3}).Shapes(), "[2,3,3]");
  EXPECT_EQ(Inferred("MatrixDiagPart").In({2, 3, 4}).Shapes(), "[2,3]");
  EXPECT_EQ(Inferred("MatrixDiagPart").In({2, -1, 4}).Shapes(), "[2,?]");
  EXPECT_EQ(Inferred("MatrixSetDiag").In().In({2, 3}).Shapes(), "[2,?,?]");
  EXPECT_EQ(Inferred("MatrixSetDiag").In({2, 3, 4}).In({2, 4}).Shapes(), kRefused);
}

TEST(SamplerShapes, CountsAndClasses) {
  EXPECT_EQ(Inferred("UniformCandidateSampler")
                .In({-1, 2}, ElementType::kInt64)
                .Attr("num_true", 2)
                .Attr("num_sampled", 5)
                .Attr("unique", true)
                .Attr("range_max", 10)
                .Shapes(),
            "[5] [?,2] [5]");
  EXPECT_EQ(Inferred("Multinomial").In({3, 4}).Scalar(7).Shapes(), "[3,7]");
  EXPECT_EQ(Inferred("Multinomial").In({3, 4}).Scalar(-7).Shapes(), kRefused);
}

}  // namespace
}  // namespace troupe
