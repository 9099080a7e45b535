// Array ops that compute, and the errors of those that move elements.
#include <limits>

#include "tests/kernels/array/picks.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

Tensor Floats(const Shape& shape, std::initializer_list<double> values) {
  return MakeTensor(ElementType::kFloat, shape, values);
}

TEST(ArrayOps, ScatterNdAddsEqualIndices) {
  OpTest op("ScatterNd");
  op.Input(Tensor::FromValues<int32_t>({1, 3, 1}, Shape({3, 1})).value())
      .Input(Floats(Shape({3, 2}), {1, 2, 3, 4, 10, 20}))
      .Input(Int32Vector({4, 2}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats(Shape({4, 2}), {0, 0, 11, 22, 0, 0, 3, 4}));
}

TEST(ArrayOps, ScatterNdCanIgnoreBadIndices) {
  OpTest op("ScatterNd");
  op.Attr("bad_indices_policy", "IGNORE")
      .Input(Tensor::FromValues<int32_t>({1, -3, 7}, Shape({3, 1})).value())
      .Input(Floats(Shape({3}), {1, 2, 3}))
      .Input(Int32Vector({2}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats(Shape({2}), {0, 1}));
}

TEST(ArrayOps, DynamicStitchLaterOnesWin) {
  OpTest op("DynamicStitch");
  op.Attr("N", 2)
      .Input(Tensor::Scalar<int32_t>(4))
      .Input(Int32Vector({0, 4}))
      .Input(Floats(Shape({2}), {1, 2}))
      .Input(Floats(Shape({2, 2}), {3, 4, 5, 6}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats(Shape({5, 2}), {3, 4, 0, 0, 0, 0, 0, 0, 5, 6}));
}

TEST(ArrayOps, OneHotAxes) {
  OpTest last("OneHot");
  last.Input(IntVector({2, -1, 0})).Input(Tensor::Scalar<int32_t>(3));
  last.Input(Tensor::Scalar(5.0f)).Input(Tensor::Scalar(1.0f));
  ASSERT_TRUE(last.Run().ok());
  ExpectEqual(last.output(0), Floats(Shape({3, 3}), {1, 1, 5, 1, 1, 1, 5, 1, 1}));
  OpTest first("OneHot");
  first.Attr("axis", 0).Input(IntVector({2, -1, 0})).Input(Tensor::Scalar<int32_t>(3));
  first.Input(Tensor::Scalar(5.0f)).Input(Tensor::Scalar(1.0f));
  ASSERT_TRUE(first.Run().ok());
  ExpectEqual(first.output(0), Floats(Shape({3, 3}), {1, 1, 5, 1, 1, 1, 5, 1, 1}));
}

TEST(ArrayOps, TopKTakesTheFirstOfEqualOnes) {
  OpTest op("TopKV2");
  op.Input(Floats(Shape({2, 5}), {1, 3, 3, 2, 3, -1, -5, -1, 0, -2}))
      .Input(Tensor::Scalar<int32_t>(3));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats(Shape({2, 3}), {3, 3, 3, 0, -1, -1}));
  ExpectEqual(op.output(1), MakeTensor(ElementType::kInt32, Shape({2, 3}), {1, 2, 4, 3, 0, 2}));
}

TEST(ArrayOps, TopKOrdersNan) {
  OpTest op("TopKV2");
  op.Input(Floats(Shape({4}), {1, NAN, 3, NAN})).Input(Tensor::Scalar<int32_t>(3));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(1), MakeTensor(ElementType::kInt32, Shape({3}), {1, 3, 2}));
}

TEST(ArrayOps, InTopKIsFalseWhereNothingCanBeSaid) {
  const float inf = std::numeric_limits<float>::infinity();
  OpTest op("InTopKV2");
  op.Input(Floats(Shape({4, 3}), {3, 2, 1, 3, 2, 1, 3, inf, 1, 3, 2, 1}))
      .Input(Int32Vector({1, 2, 0, 5}))
      .Input(Tensor::Scalar<int32_t>(2));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kBool, Shape({4}), {1, 0, 0, 0}));
}

TEST(ArrayOps, WhereListDiffAndPermutations) {
  OpTest where("Where");
  where.Input(Floats(Shape({2, 2}), {0, -0.5, -0.0, 3}));
  ASSERT_TRUE(where.Run().ok());
  ExpectEqual(where.output(0), MakeTensor(ElementType::kInt64, Shape({2, 2}), {0, 1, 1, 1}));

  OpTest diff("ListDiff");
  diff.Input(Int32Vector({1, 2, 3, 2, 6})).Input(Int32Vector({2, 9}));
  ASSERT_TRUE(diff.Run().ok());
  ExpectEqual(diff.output(0), Int32Vector({1, 3, 6}));
  ExpectEqual(diff.output(1), Int32Vector({0, 2, 4}));

  OpTest invert("InvertPermutation");
  invert.Input(Int32Vector({2, 0, 1}));
  ASSERT_TRUE(invert.Run().ok());
  ExpectEqual(invert.output(0), Int32Vector({1, 2, 0}));
}

TEST(ArrayOps, GradientArgsReduceOnesOnBothSides) {
  OpTest op("BroadcastGradientArgs");
  op.Input(Int32Vector({4, 1, 1, 1, 3})).Input(Int32Vector({4, 1, 3}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Int32Vector({1, 2, 3}));
  ExpectEqual(op.output(1), Int32Vector({0, 1, 3}));
  OpTest same("BroadcastGradientArgs");
  same.Input(Int32Vector({1, 2})).Input(Int32Vector({1, 2}));
  ASSERT_TRUE(same.Run().ok());
  ExpectEqual(same.output(0), Int32Vector({}));
}

TEST(ArrayOps, ReshapeInfersFromEmptyTensors) {
  OpTest op("Reshape");
  op.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({0, 3}))).Input(Int32Vector({-1, 0}));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(op.output(0).shape().ToString(), "[3,0]");
}

TEST(ArrayOps, CheckNumericsSaysWhat) {
  OpTest op("CheckNumerics");
  op.Attr("message", "loss").Input(Floats(Shape({2}), {1, NAN}));
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("loss : Tensor had NaN"), std::string::npos) << status;
}

TEST(ArrayOps, AnUnfedPlaceholderNamesItself) {
  OpTest op("Placeholder");
  op.Attr("dtype", ElementType::kFloat).Attr("shape", Shape({2}));
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("You must feed a value for placeholder tensor 'test' with dtype "
                                  "float and shape [2]"),
            std::string::npos)
      << status;
}

TEST(ArrayOps, AssertShowsItsData) {
  OpTest op("Assert");
  op.Input(Tensor::Scalar(false)).Input(Int32Vector({4, 5, 6, 7}));
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("4"), std::string::npos) << status;
}

struct BadCase {
  const char* op;
  std::vector<Tensor> inputs;
  std::vector<std::pair<const char*, int64_t>> attrs;
};

TEST(ArrayOps, BadInputsAreErrors) {
  const Tensor matrix = Floats(Shape({2, 3}), {1, 2, 3, 4, 5, 6});
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const int64_t low = std::numeric_limits<int64_t>::min();
  const Tensor zero = Tensor::Scalar<int32_t>(0);
  const std::vector<BadCase> cases = {
      {"Reshape", {matrix, IntVector({-1, -1})}, {}},
      {"Reshape", {matrix, IntVector({huge, huge})}, {}},
      {"Reshape", {matrix, IntVector({low})}, {}},
      {"Reshape", {matrix, IntVector({4, -1})}, {}},
      {"ExpandDims", {matrix, IntVector({3})}, {}},
      {"ExpandDims", {matrix, IntVector({low})}, {}},
      {"Fill", {IntVector({huge, 2}), Tensor::Scalar(1.0f)}, {}},
      {"Fill", {IntVector({-1}), Tensor::Scalar(1.0f)}, {}},
      {"BroadcastTo", {matrix, IntVector({2, huge, 3})}, {}},
      {"BroadcastTo", {matrix, IntVector({3, 3})}, {}},
      {"Tile", {matrix, IntVector({huge, 2})}, {}},
      {"Tile", {matrix, IntVector({-1, 2})}, {}},
      {"Transpose", {matrix, IntVector({0, 0})}, {}},
      {"Transpose", {matrix, IntVector({0, huge})}, {}},
      {"ReverseV2", {matrix, IntVector({1, -1})}, {}},
      {"Slice", {matrix, IntVector({low, 0}), IntVector({1, 1})}, {}},
      {"Slice", {matrix, IntVector({1, 0}), IntVector({huge, 1})}, {}},
      {"Slice", {matrix, IntVector({0}), IntVector({1})}, {}},
      {"Pad", {matrix, Tensor::FromValues<int64_t>({huge, huge, 0, 0}, Shape({2, 2})).value()}, {}},
      {"Pad", {matrix, Tensor::FromValues<int64_t>({-1, 0, 0, 0}, Shape({2, 2})).value()}, {}},
      {"StridedSlice", {matrix, IntVector({0}), IntVector({1}), IntVector({0})}, {}},
      {"StridedSlice",
       {matrix, IntVector({low}), IntVector({huge}), IntVector({1})},
       {{"shrink_axis_mask", 1}}},
      {"StridedSlice",
       {matrix, IntVector({0, 0, 0}), IntVector({1, 1, 1}), IntVector({1, 1, 1})},
       {}},
      {"StridedSliceGrad",
       {IntVector({huge, 4}), IntVector({0}), IntVector({1}), IntVector({1}), matrix},
       {}},
      {"Gather", {matrix, IntVector({2})}, {}},
      {"Gather", {matrix, IntVector({low})}, {}},
      {"GatherV2", {matrix, IntVector({0}), Tensor::Scalar<int32_t>(-3)}, {}},
      {"GatherV2", {matrix, IntVector({0}), zero}, {{"batch_dims", 1}}},
      {"ScatterNd",
       {Tensor::FromValues<int64_t>({huge}, Shape({1, 1})).value(), Floats(Shape({1}), {1}),
        IntVector({3})},
       {}},
      {"ScatterNd",
       {Tensor::FromValues<int64_t>({0}, Shape({1, 1})).value(), Floats(Shape({1}), {1}),
        IntVector({-3})},
       {}},
      {"ScatterNd", {IntVector({0}), Floats(Shape({3}), {1, 2, 3}), IntVector({4, 3})}, {}},
      {"BroadcastTo", {matrix, Tensor::Scalar<int32_t>(3)}, {}},
      {"Where", {Tensor::Scalar(true)}, {}},
      {"Split", {Int32Vector({0}), matrix}, {{"num_split", 2}}},
      {"DynamicStitch", {Int32Vector({-1}), Floats(Shape({1}), {1})}, {}},
      {"OneHot",
       {IntVector({0}), Tensor::Scalar<int32_t>(-1), Tensor::Scalar(1.0f), Tensor::Scalar(0.0f)},
       {}},
      {"TopKV2", {matrix, Tensor::Scalar<int32_t>(4)}, {}},
      {"TopKV2", {matrix, Tensor::Scalar<int32_t>(-1)}, {}},
      {"InvertPermutation", {Int32Vector({0, 2})}, {}},
      {"InvertPermutation", {Int32Vector({1, 1})}, {}},
      {"Unpack", {matrix}, {{"num", 3}}},
      {"Split", {zero, matrix}, {{"num_split", 4}}},
      {"SplitV", {matrix, IntVector({low, 1}), zero}, {{"num_split", 2}}},
      {"SplitV", {matrix, IntVector({-1, -1}), zero}, {{"num_split", 2}}},
      {"ConcatV2", {matrix, matrix, Tensor::Scalar<int32_t>(2)}, {{"N", 2}}},
      {"ConcatOffset", {zero, Int32Vector({2, 3}), Int32Vector({2, 4})}, {{"N", 2}}},
      {"Squeeze", {matrix}, {}},
  };
  for (const BadCase& c : cases) {
    OpTest op(c.op);
    for (const Tensor& input : c.inputs) op.Input(input);
    for (const auto& [name, value] : c.attrs) op.Attr(name, value);
    if (std::string(c.op) == "Squeeze") op.Attr("squeeze_dims", {1});
    const absl::Status status = op.Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.op << ": " << status;
  }
}

TEST(ArrayOps, HugeOutputsAreRefused) {
  OpTest op("Fill");
  op.Input(IntVector({int64_t{1} << 50})).Input(Tensor::Scalar(1.0f));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ArrayOps, ElementwiseMakersWorkInPlace) {
  OpTest op("ZerosLike");
  op.Input(Floats(Shape({2}), {1, 2}), /*forwardable=*/true);
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats(Shape({2}), {0, 0}));
  OpTest ones("OnesLike");
  ones.Input(MakeTensor(ElementType::kBfloat16, Shape({3}), {1, 2, 3}));
  ASSERT_TRUE(ones.Run().ok());
  ExpectEqual(ones.output(0), MakeTensor(ElementType::kBfloat16, Shape({3}), {1, 1, 1}));
}

}  // namespace
}  // namespace troupe::testing
