// Ops on sparse tensors. TensorFlow's own results: tests/golden/sparse.pb.gz.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/protos/tensor.pb.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

Tensor Longs(const std::vector<int64_t>& values) { return Tensor::Vector<int64_t>(values); }
Tensor Longs(const std::vector<int64_t>& values, const Shape& shape) {
  return Tensor::FromValues<int64_t>(values, shape).value();
}
Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor Floats(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

/// A sparse matrix.
struct Matrix {
  std::vector<int64_t> indices;
  std::vector<float> values;
  std::vector<int64_t> shape;

  Tensor IndexTensor() const {
    return Longs(indices, Shape({static_cast<int64_t>(indices.size()) / 2, 2}));
  }
  Tensor ValueTensor() const { return Tensor::Vector<float>(values); }
  Tensor ShapeTensor() const { return Longs(shape); }
  std::map<std::pair<int64_t, int64_t>, float> Elements() const {
    std::map<std::pair<int64_t, int64_t>, float> elements;
    for (size_t i = 0; i < values.size(); ++i) {
      elements[{indices[2 * i], indices[2 * i + 1]}] = values[i];
    }
    return elements;
  }
};

/// Elements in row-major order, about half of all.
Matrix RandomMatrix(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix matrix{{}, {}, {rows, columns}};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      if (random() % 2 == 0) continue;
      matrix.indices.insert(matrix.indices.end(), {row, column});
      matrix.values.push_back(static_cast<float>(random() % 19) - 9);
    }
  }
  return matrix;
}

OpTest& Input(OpTest& op, const Matrix& matrix) {
  return op.Input(matrix.IndexTensor()).Input(matrix.ValueTensor()).Input(matrix.ShapeTensor());
}

void ExpectMatrix(OpTest& op, const Matrix& want) {
  const absl::Status status = op.Run();
  ASSERT_TRUE(status.ok()) << status;
  ExpectEqual(op.output(0), want.IndexTensor());
  ExpectNear(op.output(1), want.ValueTensor());
  if (op.num_outputs() > 2) ExpectEqual(op.output(2), want.ShapeTensor());
}

const Matrix kOutside = {{0, 0, 2, 1}, {1, 2}, {2, 2}};

TEST(SparseLayout, ReorderSortsAndKeepsEqualOnesInOrder) {
  OpTest op("SparseReorder");
  Input(op, {{1, 0, 0, 1, 1, 0}, {1, 2, 3}, {2, 2}});
  ExpectMatrix(op, {{0, 1, 1, 0, 1, 0}, {2, 1, 3}, {2, 2}});
}

TEST(SparseLayout, ReshapeMovesIndices) {
  const auto reshape = [](const std::vector<int64_t>& to, OpTest& op) {
    op.Input(Longs({0, 1, 1, 2}, Shape({2, 2}))).Input(Longs({2, 3})).Input(Longs(to));
    return op.Run().code();
  };
  OpTest op("SparseReshape"), twice("SparseReshape"), wrong("SparseReshape"),
      negative("SparseReshape");
  ASSERT_EQ(reshape({3, -1}, op), StatusCode::kOk);
  ExpectEqual(op.output(0), Longs({0, 1, 2, 1}, Shape({2, 2})));
  ExpectEqual(op.output(1), Longs({3, 2}));
  EXPECT_EQ(reshape({-1, -1}, twice), StatusCode::kInvalidArgument);
  EXPECT_EQ(reshape({4, -1}, wrong), StatusCode::kInvalidArgument);
  EXPECT_EQ(reshape({-2, 3}, negative), StatusCode::kInvalidArgument);
}

TEST(SparseLayout, ConcatAndSplitAreInverse) {
  const Matrix a = RandomMatrix(3, 4, 1), b = RandomMatrix(3, 3, 2);
  OpTest concat("SparseConcat");
  concat.Attr("concat_dim", -1).Attr("N", 2);
  concat.Input(a.IndexTensor()).Input(b.IndexTensor());
  concat.Input(a.ValueTensor()).Input(b.ValueTensor());
  concat.Input(a.ShapeTensor()).Input(b.ShapeTensor());
  ASSERT_TRUE(concat.Run().ok());
  ExpectEqual(concat.output(2), Longs({3, 7}));
  OpTest split("SparseSplit");
  split.Attr("num_split", 2).Input(Tensor::Scalar<int64_t>(1));
  for (int i = 0; i < 3; ++i) split.Input(concat.output(i));
  ASSERT_TRUE(split.Run().ok());
  ExpectEqual(split.output(0), a.IndexTensor());
  ExpectEqual(split.output(1), b.IndexTensor());
  ExpectEqual(split.output(2), a.ValueTensor());
  ExpectEqual(split.output(3), b.ValueTensor());
  ExpectEqual(split.output(4), a.ShapeTensor());
  OpTest many("SparseSplit");
  many.Attr("num_split", 8).Input(Tensor::Scalar<int64_t>(1));
  for (int i = 0; i < 3; ++i) many.Input(concat.output(i));
  EXPECT_EQ(many.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseLayout, SliceLeavesOutWhatIsOutside) {
  const auto slice = [](const std::vector<int64_t>& start, const std::vector<int64_t>& size,
                        OpTest& op) {
    Input(op, {{0, 0, 1, 1, 2, 0}, {1, 2, 3}, {3, 2}}).Input(Longs(start)).Input(Longs(size));
    return op.Run().code();
  };
  OpTest op("SparseSlice"), before("SparseSlice"), extreme("SparseSlice"), negative("SparseSlice"),
      rank("SparseSlice");
  ASSERT_EQ(slice({1, 0}, {9, 1}, op), StatusCode::kOk);
  ExpectEqual(op.output(0), Longs({1, 0}, Shape({1, 2})));
  ExpectEqual(op.output(2), Longs({2, 1}));
  ASSERT_EQ(slice({-1, 0}, {2, 2}, before), StatusCode::kOk);
  ExpectEqual(before.output(0), Longs({1, 0}, Shape({1, 2})));
  ASSERT_EQ(slice({INT64_MIN, 0}, {INT64_MAX, 1}, extreme), StatusCode::kOk);
  ExpectEqual(extreme.output(1), Floats({}));
  EXPECT_EQ(slice({0, 0}, {-1, 1}, negative), StatusCode::kInvalidArgument);
  EXPECT_EQ(slice({0}, {1}, rank), StatusCode::kInvalidArgument);
}

TEST(SparseLayout, EmptyRowsAreFilled) {
  OpTest op("SparseFillEmptyRows");
  Input(op, {{2, 1, 0, 1, 2, 0}, {1, 2, 3}, {4, 2}}).Input(Tensor::Scalar(9.0f));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Longs({0, 1, 1, 0, 2, 1, 2, 0, 3, 0}, Shape({5, 2})));
  ExpectEqual(op.output(1), Floats({2, 9, 1, 3, 9}));
  ExpectEqual(op.output(2), Tensor::Vector<bool>({false, true, false, true}));
  ExpectEqual(op.output(3), Longs({2, 0, 3}));
  OpTest outside("SparseFillEmptyRows");
  Input(outside, kOutside).Input(Tensor::Scalar(9.0f));
  EXPECT_EQ(outside.Run().code(), StatusCode::kInvalidArgument);
  OpTest grad("SparseFillEmptyRowsGrad"), wrong("SparseFillEmptyRowsGrad");
  grad.Input(Longs({2, 0})).Input(Floats({1, 2, 4}));
  ASSERT_TRUE(grad.Run().ok());
  ExpectEqual(grad.output(0), Floats({4, 1}));
  ExpectEqual(grad.output(1), Tensor::Scalar(2.0f));
  wrong.Input(Longs({3})).Input(Floats({1, 2, 4}));
  EXPECT_EQ(wrong.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseArithmetic, UnionOfTwo) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const Matrix a = RandomMatrix(4, 5, seed), b = RandomMatrix(4, 5, seed + 100);
    for (const std::string name : {"SparseAdd", "SparseSparseMaximum", "SparseSparseMinimum"}) {
      auto elements = a.Elements();
      for (const auto& [index, value] : b.Elements()) elements[index] += 0;
      Matrix want{{}, {}, a.shape};
      const auto of_a = a.Elements(), of_b = b.Elements();
      for (const auto& [index, unused] : elements) {
        const float x = of_a.count(index) ? of_a.at(index) : 0;
        const float y = of_b.count(index) ? of_b.at(index) : 0;
        const float z = name == "SparseAdd"             ? x + y
                        : name == "SparseSparseMaximum" ? std::fmax(x, y)
                                                        : std::fmin(x, y);
        // The threshold is for elements of both.
        const bool both = of_a.count(index) && of_b.count(index);
        if (name == "SparseAdd" && both && std::fabs(z) < 3) continue;
        want.indices.insert(want.indices.end(), {index.first, index.second});
        want.values.push_back(z);
      }
      OpTest op(name);
      Input(Input(op, a), b);
      if (name == "SparseAdd") op.Input(Tensor::Scalar(3.0f));
      ExpectMatrix(op, want);
    }
  }
  OpTest shapes("SparseAdd"), outside("SparseAdd");
  Input(Input(shapes, RandomMatrix(2, 2, 1)), RandomMatrix(2, 3, 1)).Input(Tensor::Scalar(0.0f));
  EXPECT_EQ(shapes.Run().code(), StatusCode::kInvalidArgument);
  Input(Input(outside, kOutside), kOutside).Input(Tensor::Scalar(0.0f));
  EXPECT_EQ(outside.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseArithmetic, GradientsPickByIndex) {
  OpTest add("SparseAddGrad"), slice("SparseSliceGrad"), lost("SparseSliceGrad");
  add.Input(Floats({1, 2, 3})).Input(Longs({0, 2}, Shape({2, 1})));
  add.Input(Longs({1, 3}, Shape({2, 1}))).Input(Longs({0, 1, 2}, Shape({3, 1})));
  ASSERT_TRUE(add.Run().ok());
  ExpectEqual(add.output(0), Floats({1, 3}));
  ExpectEqual(add.output(1), Floats({2, 0}));
  slice.Input(Floats({5})).Input(Longs({0, 1, 2}, Shape({3, 1}))).Input(Longs({1}));
  slice.Input(Longs({1}, Shape({1, 1})));
  ASSERT_TRUE(slice.Run().ok());
  ExpectEqual(slice.output(0), Floats({0, 0, 5}));
  lost.Input(Floats({5})).Input(Longs({0}, Shape({1, 1}))).Input(Longs({0}));
  lost.Input(Longs({7}, Shape({1, 1})));
  EXPECT_EQ(lost.Run().code(), StatusCode::kInternal);
}

TEST(SparseDense, OnlyElementsThatAreThere) {
  const Matrix a = {{0, 1, 1, 0}, {6, 8}, {2, 2}};
  const std::vector<std::pair<const char*, Tensor>> cases = {
      {"SparseDenseCwiseAdd", Floats({10, 12})},
      {"SparseDenseCwiseMul", Floats({24, 16})},
      {"SparseDenseCwiseDiv", Floats({1.5, 4})}};
  for (const auto& [name, want] : cases) {
    OpTest op(name), wide(name), outside(name);
    Input(op, a).Input(Floats({2, 4}));
    ASSERT_TRUE(op.Run().ok());
    // 8 + 2 and 6 + 4 are what addition gives.
    ExpectEqual(op.output(0), name == cases[0].first ? Floats({10, 10}) : want);
    Input(wide, a).Input(Floats({1, 2, 3}));
    EXPECT_EQ(wide.Run().code(), StatusCode::kInvalidArgument);
    Input(outside, kOutside).Input(Floats({1, 2}));
    EXPECT_EQ(outside.Run().code(), StatusCode::kInvalidArgument);
  }
  OpTest zero("SparseDenseCwiseDiv"), lowest("SparseDenseCwiseDiv");
  zero.Input(Longs({0}, Shape({1, 1}))).Input(Ints({1})).Input(Longs({1})).Input(Ints({0}));
  EXPECT_EQ(zero.Run().code(), StatusCode::kInvalidArgument);
  lowest.Input(Longs({0}, Shape({1, 1}))).Input(Ints({INT32_MIN})).Input(Longs({1}));
  lowest.Input(Ints({-1}));
  ASSERT_TRUE(lowest.Run().ok());
  ExpectEqual(lowest.output(0), Ints({INT32_MIN}));
  OpTest add("SparseTensorDenseAdd"), beyond("SparseTensorDenseAdd");
  Input(add, a).Input(MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 2, 3, 4}));
  ASSERT_TRUE(add.Run().ok());
  ExpectEqual(add.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 8, 11, 4}));
  Input(beyond, kOutside).Input(MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 2, 3, 4}));
  EXPECT_EQ(beyond.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseReduce, DenseAndSparseResults) {
  const Matrix a = {{0, 1, 0, 2, 2, 0}, {-3, -5, 7}, {3, 3}};
  const auto reduce = [&](std::initializer_list<int32_t> axes, OpTest& op) {
    Input(op, a).Input(Tensor::Vector<int32_t>(axes));
    return op.Run().code();
  };
  OpTest sum("SparseReduceSum"), largest("SparseReduceMax"), sparse("SparseReduceSumSparse"),
      all("SparseReduceMaxSparse"), wrong("SparseReduceSum");
  ASSERT_EQ(reduce({1}, sum), StatusCode::kOk);
  ExpectEqual(sum.output(0), Floats({-8, 0, 7}));
  largest.Attr("keep_dims", true);
  ASSERT_EQ(reduce({-1, 1}, largest), StatusCode::kOk);
  ExpectEqual(largest.output(0), MakeTensor(ElementType::kFloat, Shape({3, 1}), {-3, 0, 7}));
  ASSERT_EQ(reduce({1}, sparse), StatusCode::kOk);
  ExpectEqual(sparse.output(0), Longs({0, 2}, Shape({2, 1})));
  ExpectEqual(sparse.output(1), Floats({-8, 7}));
  ExpectEqual(sparse.output(2), Longs({3}));
  ASSERT_EQ(reduce({0, 1}, all), StatusCode::kOk);
  ExpectEqual(all.output(0), Longs({}, Shape({1, 0})));
  ExpectEqual(all.output(1), Floats({7}));
  EXPECT_EQ(reduce({2}, wrong), StatusCode::kInvalidArgument);
  OpTest outside("SparseReduceSum");
  Input(outside, kOutside).Input(Ints({0}));
  EXPECT_EQ(outside.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseReduce, Softmax) {
  OpTest op("SparseSoftmax"), vector("SparseSoftmax");
  Input(op, {{0, 1, 0, 2, 2, 0}, {0, std::log(3.0f), 100}, {3, 3}});
  ASSERT_TRUE(op.Run().ok());
  ExpectNear(op.output(0), Floats({0.25, 0.75, 1}));
  vector.Input(Longs({0}, Shape({1, 1}))).Input(Floats({1})).Input(Longs({1}));
  EXPECT_EQ(vector.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseMatMul, AgainstTheNaiveProduct) {
  const Matrix a = RandomMatrix(4, 3, 7);
  for (const bool adjoint_a : {false, true}) {
    for (const bool adjoint_b : {false, true}) {
      const int64_t inner = adjoint_a ? 4 : 3, rows = adjoint_a ? 3 : 4;
      const Tensor b = RandomTensor(ElementType::kFloat,
                                    adjoint_b ? Shape({5, inner}) : Shape({inner, 5}), -1, 1);
      std::vector<double> want(rows * 5);
      for (const auto& [index, value] : a.Elements()) {
        const auto [row, column] = adjoint_a ? std::pair(index.second, index.first) : index;
        for (int64_t k = 0; k < 5; ++k) {
          want[row * 5 + k] += value * At(b, adjoint_b ? k * inner + column : column * 5 + k);
        }
      }
      OpTest op("SparseTensorDenseMatMul", 2);
      op.Attr("adjoint_a", adjoint_a).Attr("adjoint_b", adjoint_b);
      Input(op, a).Input(b);
      ASSERT_TRUE(op.Run().ok());
      ExpectNear(op.output(0), MakeTensor(ElementType::kFloat, Shape({rows, 5}), want));
    }
  }
  OpTest outside("SparseTensorDenseMatMul"), inner("SparseTensorDenseMatMul");
  Input(outside, kOutside).Input(RandomTensor(ElementType::kFloat, Shape({2, 2}), 0, 1));
  EXPECT_EQ(outside.Run().code(), StatusCode::kInvalidArgument);
  Input(inner, a).Input(RandomTensor(ElementType::kFloat, Shape({2, 2}), 0, 1));
  EXPECT_EQ(inner.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseBincount, CountsRows) {
  const auto count = [](std::initializer_list<int64_t> values, int64_t size, OpTest& op) {
    op.Input(Longs({0, 0, 0, 1, 1, 1}, Shape({3, 2}))).Input(Tensor::Vector<int64_t>(values));
    op.Input(Longs({2, 2})).Input(Tensor::Scalar(size)).Input(Floats({1, 2, 4}));
    return op.Run().code();
  };
  OpTest op("SparseBincount"), binary("SparseBincount"), negative("SparseBincount"),
      size("SparseBincount");
  ASSERT_EQ(count({1, 1, 5}, 2, op), StatusCode::kOk);
  ExpectEqual(op.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {0, 3, 0, 0}));
  binary.Attr("binary_output", true);
  ASSERT_EQ(count({1, 1, 0}, 2, binary), StatusCode::kOk);
  ExpectEqual(binary.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {0, 1, 1, 0}));
  EXPECT_EQ(count({-1, 1, 0}, 2, negative), StatusCode::kInvalidArgument);
  EXPECT_EQ(count({1, 1, 0}, -2, size), StatusCode::kInvalidArgument);
}

TEST(Sets, OperationsOfEveryKind) {
  const Tensor a = Longs({3, 1, 1, 2, 2, 2}, Shape({2, 3}));
  const Tensor b = Longs({1, 4, 5, 5}, Shape({2, 2}));
  const std::vector<std::pair<const char*, std::vector<int64_t>>> cases = {
      {"a-b", {3, 2}}, {"b-a", {4, 5}}, {"intersection", {1}}, {"UNION", {1, 3, 4, 2, 5}}};
  for (const auto& [operation, want] : cases) {
    OpTest dense("DenseToDenseSetOperation"), mixed("DenseToSparseSetOperation"),
        sparse("SparseToSparseSetOperation");
    const Tensor b_indices = Longs({0, 0, 0, 1, 1, 0, 1, 1}, Shape({4, 2}));
    dense.Attr("set_operation", operation).Input(a).Input(b);
    mixed.Attr("set_operation", operation).Input(a).Input(b_indices);
    mixed.Input(b.Reshaped(Shape({4}))).Input(Longs({2, 2}));
    sparse.Attr("set_operation", operation);
    sparse.Input(Longs({0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}, Shape({6, 2})));
    sparse.Input(a.Reshaped(Shape({6}))).Input(Longs({2, 3})).Input(b_indices);
    sparse.Input(b.Reshaped(Shape({4}))).Input(Longs({2, 2}));
    for (OpTest* op : {&dense, &mixed, &sparse}) {
      ASSERT_TRUE(op->Run().ok());
      ExpectEqual(op->output(1), Longs(want));
      ExpectEqual(op->output(0), dense.output(0));
      ExpectEqual(op->output(2), dense.output(2));
    }
  }
  OpTest unknown("DenseToDenseSetOperation"), shapes("DenseToDenseSetOperation");
  unknown.Attr("set_operation", "xor").Input(a).Input(b);
  EXPECT_EQ(unknown.Run().code(), StatusCode::kInvalidArgument);
  shapes.Attr("set_operation", "union").Input(a).Input(Longs({1, 2}, Shape({1, 2})));
  EXPECT_EQ(shapes.Run().code(), StatusCode::kInvalidArgument);
}

TEST(Sets, SizeCountsDifferentValues) {
  for (const bool validate : {false, true}) {
    OpTest ordered("SetSize"), unordered("SetSize");
    ordered.Attr("validate_indices", validate);
    ordered.Input(Longs({0, 0, 0, 1, 2, 0}, Shape({3, 2}))).Input(Longs({5, 5, 6}));
    ordered.Input(Longs({3, 2}));
    ASSERT_TRUE(ordered.Run().ok());
    ExpectEqual(ordered.output(0), Ints({1, 0, 1}));
    unordered.Attr("validate_indices", validate);
    unordered.Input(Longs({1, 0, 0, 0}, Shape({2, 2}))).Input(Longs({5, 5})).Input(Longs({2, 2}));
    EXPECT_EQ(unordered.Run().code(), validate ? StatusCode::kInvalidArgument : StatusCode::kOk);
  }
}

TEST(SparseCross, TextOfEveryChoice) {
  OpTest op("SparseCrossV2"), rows("SparseCrossV2");
  const std::vector<ElementType> text = {ElementType::kString}, numbers = {ElementType::kInt64};
  op.Attr("sparse_types", text).Attr("dense_types", numbers);
  rows.Attr("sparse_types", numbers).Attr("dense_types", numbers);
  op.Attr("N", 1).Input(Longs({0, 0, 1, 0, 1, 1}, Shape({3, 2})));
  op.Input(Tensor::Vector<std::string>({"a", "b", "c"})).Input(Longs({2, 2}));
  op.Input(Longs({1, 2, 3, 4}, Shape({2, 2}))).Input(Tensor::Scalar("_"));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(1),
              Tensor::Vector<std::string>({"a_1", "a_2", "b_3", "b_4", "c_3", "c_4"}));
  ExpectEqual(op.output(2), Longs({2, 4}));
  rows.Attr("N", 1).Input(Longs({0, 0}, Shape({1, 2}))).Input(Longs({7})).Input(Longs({2, 1}));
  rows.Input(Longs({1}, Shape({1, 1}))).Input(Tensor::Scalar("_"));
  EXPECT_EQ(rows.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseCross, RefusesMoreCrossesThanCanBe) {
  // 20 columns of 1000 features.
  OpTest op("SparseCrossV2");
  op.Attr("N", 0).Attr("sparse_types", std::vector<ElementType>{});
  op.Attr("dense_types", std::vector<ElementType>(20, ElementType::kInt64));
  for (int i = 0; i < 20; ++i) op.Input(RandomTensor(ElementType::kInt64, Shape({1, 1000}), 0, 9));
  op.Input(Tensor::Scalar("_"));
  EXPECT_EQ(op.Run().code(), StatusCode::kInvalidArgument);
}

TEST(SparseCross, DoesNotGoThroughRowsThatAreOnlyClaimed) {
  OpTest op("SparseCrossV2");
  op.Attr("N", 1).Attr("sparse_types", std::vector<ElementType>{ElementType::kInt64});
  op.Attr("dense_types", std::vector<ElementType>{});
  op.Input(Longs({INT64_MAX - 1, 0}, Shape({1, 2}))).Input(Longs({7}));
  op.Input(Longs({INT64_MAX, 1})).Input(Tensor::Scalar("_"));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(1), Tensor::Vector<std::string>({"7"}));
}

TEST(SparseSerialization, ThereAndBack) {
  const Matrix a = RandomMatrix(3, 4, 9);
  for (const ElementType type : {ElementType::kString, ElementType::kVariant}) {
    OpTest one("SerializeSparse"), many("SerializeManySparse"), back("DeserializeSparse"),
        rows("DeserializeSparse");
    Input(one.Attr("out_type", type), a);
    Input(many.Attr("out_type", type), a);
    ASSERT_TRUE(one.Run().ok());
    ASSERT_TRUE(many.Run().ok());
    ExpectMatrix(back.Attr("dtype", ElementType::kFloat).Input(one.output(0)), a);
    ExpectMatrix(rows.Attr("dtype", ElementType::kFloat).Input(many.output(0)), a);
  }
  OpTest garbage("DeserializeManySparse"), type("DeserializeSparse"), one("SerializeSparse");
  garbage.Attr("dtype", ElementType::kFloat);
  garbage.Input(Tensor::FromValues<std::string>({"\xff", "\xff", "\xff"}, Shape({1, 3})).value());
  EXPECT_EQ(garbage.Run().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Input(one, a).Run().ok());
  type.Attr("dtype", ElementType::kInt32).Input(one.output(0));
  EXPECT_EQ(type.Run().code(), StatusCode::kInvalidArgument);
}

// The shape of a sparse tensor may claim any number of rows.
TEST(SparseSerialization, RowsThatAreOnlyClaimed) {
  for (const char* name : {"SerializeManySparse", "AddManySparseToTensorsMap"}) {
    OpTest many(name);
    many.Input(Longs({}, Shape({0, 2})));
    many.Input(Floats({}));
    many.Input(Tensor::Vector<int64_t>({int64_t{1} << 46, 3}));
    EXPECT_EQ(many.Run().code(), StatusCode::kResourceExhausted) << name;
  }
}

/// The bytes of a tensor of `shape`, all elements of which are the one value that is written.
std::string Repeated(ElementType type, absl::Span<const int64_t> shape) {
  TensorProto proto;
  proto.set_dtype(static_cast<DataType>(type));
  Shape(shape).ToProto(proto.mutable_tensor_shape());
  if (type == ElementType::kInt64) {
    proto.add_int64_val(1);
  } else {
    proto.add_float_val(1);
  }
  return proto.SerializeAsString();
}

TEST(SparseSerialization, ElementsThatAreOnlyClaimed) {
  constexpr int64_t kMany = 1 << 20;
  const std::string shape = Repeated(ElementType::kInt64, {2});
  const auto run = [&](std::string indices, std::string values) {
    OpTest back("DeserializeManySparse");
    back.Attr("dtype", ElementType::kFloat);
    back.Input(Tensor::FromValues<std::string>({indices, values, shape}, Shape({1, 3})).value());
    return back.Run();
  };
  EXPECT_EQ(run(Repeated(ElementType::kInt64, {1, 2}), Repeated(ElementType::kFloat, {1})).code(),
            StatusCode::kInvalidArgument);  // The index 1 is outside of the shape {1, 1}.
  for (const int64_t rows : {int64_t{0}, int64_t{1}, kMany}) {
    const absl::Status status =
        run(Repeated(ElementType::kInt64, {rows, 2}), Repeated(ElementType::kFloat, {kMany}));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("serialized sparse tensor"));
  }
}

}  // namespace
}  // namespace troupe::testing
