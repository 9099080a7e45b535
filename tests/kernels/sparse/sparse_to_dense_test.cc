#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor Ints(std::initializer_list<int32_t> values, const Shape& shape) {
  return Tensor::FromValues<int32_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
      .value();
}
Tensor Vec(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

absl::Status Densify(OpTest& op, const Tensor& indices, const Tensor& shape, const Tensor& values,
                     float default_value = 0) {
  op.Input(indices).Input(shape).Input(values).Input(Tensor::Scalar(default_value));
  return op.Run();
}

TEST(SparseToDense, IndicesOfEveryRank) {
  OpTest matrix("SparseToDense"), vector("SparseToDense"), scalar("SparseToDense");
  ASSERT_TRUE(Densify(matrix, Ints({0, 1, 1, 0}, {2, 2}), Ints({2, 2}), Vec({3, 4}), -1).ok());
  ExpectEqual(matrix.output(0), Tensor::FromValues<float>({-1, 3, 4, -1}, Shape({2, 2})).value());
  ASSERT_TRUE(Densify(vector, Ints({0, 2}), Ints({4}), Tensor::Scalar(5.0f)).ok());
  ExpectEqual(vector.output(0), Vec({5, 0, 5, 0}));
  ASSERT_TRUE(Densify(scalar, Tensor::Scalar<int32_t>(1), Ints({2}), Tensor::Scalar(5.0f)).ok());
  ExpectEqual(scalar.output(0), Vec({0, 5}));
}

TEST(SparseToDense, OrderIsCheckedUnlessToldOtherwise) {
  for (const Tensor& indices : {Ints({2, 1}), Ints({1, 1})}) {
    OpTest strict("SparseToDense"), lax("SparseToDense");
    EXPECT_EQ(Densify(strict, indices, Ints({3}), Vec({1, 2})).code(),
              StatusCode::kInvalidArgument);
    lax.Attr("validate_indices", false);
    EXPECT_TRUE(Densify(lax, indices, Ints({3}), Vec({1, 2})).ok());
    EXPECT_EQ(At(lax.output(0), 1), 2);
  }
  OpTest outside("SparseToDense");
  outside.Attr("validate_indices", false);
  const absl::Status status = Densify(outside, Ints({1, 3}), Ints({3}), Vec({1, 2}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(" = 3 is not in [0, 3)"), std::string::npos) << status;
}

TEST(SparseToDense, IndicesWithoutComponents) {
  const Tensor many = Tensor::Uninitialized(ElementType::kInt32, Shape({int64_t{1} << 50, 0}));
  OpTest strict("SparseToDense"), lax("SparseToDense");
  EXPECT_EQ(Densify(strict, many, Ints({}), Tensor::Scalar(5.0f)).code(),
            StatusCode::kInvalidArgument);
  lax.Attr("validate_indices", false);
  ASSERT_TRUE(Densify(lax, many, Ints({}), Tensor::Scalar(5.0f)).ok());
  ExpectEqual(lax.output(0), Tensor::Scalar(5.0f));
}

TEST(SparseToDense, ShapesThatDoNotFit) {
  const auto run = [](const Tensor& indices, const Tensor& shape, const Tensor& values) {
    OpTest op("SparseToDense");
    return Densify(op, indices, shape, values).code();
  };
  EXPECT_EQ(run(Ints({0}, {1, 1, 1}), Ints({2}), Vec({1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Ints({0}), Ints({2, 2}), Vec({1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Ints({0}), Ints({-2}), Vec({1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Ints({0}), Ints({2}), Vec({1, 2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Ints({}), Ints({0}), Vec({})), StatusCode::kOk);
}

}  // namespace
}  // namespace troupe::testing
