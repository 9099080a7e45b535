// Counts, norms and sums of copies against known values.
#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

TEST(Bincount, CountsOrWeighs) {
  for (const ElementType type :
       {ElementType::kInt32, ElementType::kInt64, ElementType::kFloat, ElementType::kDouble}) {
    const auto run = [type](int32_t size, const Shape& shape, std::initializer_list<double> w) {
      OpTest op("Bincount");
      op.Input(Tensor::Vector<int32_t>({1, 3, 1, 7})).Input(Tensor::Scalar<int32_t>(size));
      op.Input(MakeTensor(type, shape, w));
      return op.Run().ok() ? op.output(0) : Tensor();
    };
    ExpectEqual(run(4, Shape({0}), {}), MakeTensor(type, Shape({4}), {0, 2, 0, 1}));
    ExpectEqual(run(4, Shape({4}), {5, 6, 7, 8}), MakeTensor(type, Shape({4}), {0, 12, 0, 6}));
    EXPECT_EQ(run(0, Shape({0}), {}).shape(), Shape({0}));
    EXPECT_FALSE(run(-1, Shape({0}), {}).valid());
    EXPECT_FALSE(run(4, Shape({3}), {1, 2, 3}).valid());
  }
}

TEST(Bincount, RowsAndNegativeNumbers) {
  const Tensor rows = Tensor::FromValues<int64_t>({0, 2, 2, 1, 9, 1}, Shape({2, 3})).value();
  for (const bool binary : {false, true}) {
    OpTest op("DenseBincount");
    op.Attr("binary_output", binary).Input(rows).Input(Tensor::Scalar<int64_t>(3));
    op.Input(Tensor::Vector<float>({}));
    ASSERT_TRUE(op.Run().ok());
    const double two = binary ? 1 : 2;
    ExpectEqual(op.output(0),
                MakeTensor(ElementType::kFloat, Shape({2, 3}), {1, 0, two, 0, two, 0}));
  }
  OpTest negative("DenseBincount");
  negative.Input(Tensor::Vector<int32_t>({-1})).Input(Tensor::Scalar<int32_t>(3));
  negative.Input(Tensor::Vector<float>({}));
  EXPECT_EQ(negative.Run().code(), StatusCode::kInvalidArgument);
}

TEST(HistogramFixedWidth, OutsideCountsForTheEnds) {
  const auto run = [](const Tensor& values, double low, double high, int32_t bins) {
    OpTest op("HistogramFixedWidth");
    op.Input(values).Input(MakeTensor(values.type(), Shape({2}), {low, high}));
    op.Input(Tensor::Scalar<int32_t>(bins));
    return op.Run().ok() ? op.output(0) : Tensor();
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  ExpectEqual(run(Tensor::Vector<float>({-1, 0, 1.5, 2, 5, 15, inf, -inf}), 0, 5, 5),
              Tensor::Vector<int32_t>({3, 1, 1, 0, 3}));
  ExpectEqual(run(Tensor::Vector<int32_t>({-7, 3, 4}), 0, 4, 2), Tensor::Vector<int32_t>({1, 2}));
  EXPECT_FALSE(run(Tensor::Vector<float>({nan}), 0, 5, 5).valid());
  EXPECT_FALSE(run(Tensor::Vector<float>({1}), 5, 5, 5).valid());
  EXPECT_FALSE(run(Tensor::Vector<float>({1}), 0, inf, 5).valid());
  EXPECT_FALSE(run(Tensor::Vector<float>({1}), 0, 5, 0).valid());
}

TEST(EuclideanNorm, OfEveryKind) {
  for (const ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16,
        ElementType::kInt16, ElementType::kInt32, ElementType::kUint64, ElementType::kComplex128}) {
    SCOPED_TRACE(ElementTypeName(type));
    OpTest rows("EuclideanNorm"), columns("EuclideanNorm");
    const Tensor input = MakeTensor(type, Shape({2, 2}), {3, 4, 5, 12});
    rows.Input(input).Input(Tensor::Scalar<int32_t>(1));
    ASSERT_TRUE(rows.Run().ok());
    ExpectNear(rows.output(0), MakeTensor(type, Shape({2}), {5, 13}), 0.01);
    columns.Attr("keep_dims", true).Input(MakeTensor(type, Shape({2, 1}), {3, 4}));
    columns.Input(Tensor::Scalar<int32_t>(0));
    ASSERT_TRUE(columns.Run().ok());
    ExpectNear(columns.output(0), MakeTensor(type, Shape({1, 1}), {5}), 0.01);
  }
}

TEST(TileGrad, AddsUpTheCopies) {
  const auto run = [](std::initializer_list<int32_t> multiples) {
    OpTest op("TileGrad");
    op.Input(MakeTensor(ElementType::kFloat, Shape({2, 4}), {1, 2, 3, 4, 5, 6, 7, 8}));
    op.Input(Tensor::Vector<int32_t>(multiples));
    return op.Run().ok() ? op.output(0) : Tensor();
  };
  ExpectEqual(run({1, 2}), MakeTensor(ElementType::kFloat, Shape({2, 2}), {4, 6, 12, 14}));
  ExpectEqual(run({2, 4}), MakeTensor(ElementType::kFloat, Shape({1, 1}), {36}));
  EXPECT_FALSE(run({1, 3}).valid());
  EXPECT_FALSE(run({1, 0}).valid());
  EXPECT_FALSE(run({1}).valid());
}

}  // namespace
}  // namespace troupe::testing
