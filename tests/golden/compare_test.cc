#include "tests/golden/compare.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::golden {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

bool Equal(const Tensor& got, const Tensor& want, double relative = 0, double absolute = 0,
           bool any_order = false) {
  return CompareTensors(got, want, {relative, absolute, any_order}).empty();
}

TEST(CompareTensors, ExactMeansBitForBit) {
  EXPECT_TRUE(Equal(Tensor::Scalar(1.0f), Tensor::Scalar(1.0f)));
  EXPECT_FALSE(Equal(Tensor::Scalar(1.0f), Tensor::Scalar(std::nextafter(1.0f, 2.0f))));
  EXPECT_FALSE(Equal(Tensor::Scalar(0.0f), Tensor::Scalar(-0.0f)));
  EXPECT_TRUE(Equal(Tensor::Scalar(kNan), Tensor::Scalar(-kNan)));
  EXPECT_FALSE(Equal(Tensor::Scalar(kNan), Tensor::Scalar(1.0f)));
  EXPECT_TRUE(Equal(Tensor::Scalar<int64_t>(INT64_MAX), Tensor::Scalar<int64_t>(INT64_MAX)));
  EXPECT_FALSE(Equal(Tensor::Scalar<int64_t>(INT64_MAX), Tensor::Scalar<int64_t>(INT64_MAX - 1)));
  EXPECT_FALSE(Equal(Tensor::Scalar<uint64_t>(UINT64_MAX), Tensor::Scalar<uint64_t>(0)));
  EXPECT_FALSE(Equal(Tensor::Scalar(true), Tensor::Scalar(false)));
  EXPECT_FALSE(Equal(Tensor::Scalar(half(1.0f)), Tensor::Scalar(half(1.001f))));
  EXPECT_TRUE(Equal(Tensor::Scalar(complex64(1, kNan)), Tensor::Scalar(complex64(1, kNan))));
  EXPECT_FALSE(Equal(Tensor::Scalar(complex64(1, 0.0f)), Tensor::Scalar(complex64(1, -0.0f))));
  EXPECT_FALSE(Equal(Tensor::Scalar(complex64(2, kNan)), Tensor::Scalar(complex64(1, kNan))));
}

TEST(CompareTensors, TypeAndShapeMustBeEqual) {
  EXPECT_FALSE(Equal(Tensor::Scalar(1.0f), Tensor::Scalar(1.0), 1, 1));
  EXPECT_FALSE(Equal(Tensor::Scalar(1.0f), Tensor::Vector<float>({1}), 1, 1));
  EXPECT_FALSE(Equal(Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2})),
                     Tensor::Uninitialized(ElementType::kFloat, Shape({2, 0})), 1, 1));
  EXPECT_TRUE(Equal(Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2})),
                    Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2}))));
}

TEST(CompareTensors, Tolerance) {
  EXPECT_TRUE(Equal(Tensor::Scalar(1.0f), Tensor::Scalar(1.09f), 0.1));
  EXPECT_FALSE(Equal(Tensor::Scalar(1.0f), Tensor::Scalar(1.2f), 0.1));
  EXPECT_TRUE(Equal(Tensor::Scalar(0.0f), Tensor::Scalar(-0.0f), 0.1));
  EXPECT_TRUE(Equal(Tensor::Scalar(0.0f), Tensor::Scalar(0.01f), 0, 0.01));
  EXPECT_FALSE(Equal(Tensor::Scalar(0.0f), Tensor::Scalar(0.02f), 0, 0.01));
  EXPECT_TRUE(Equal(Tensor::Scalar(kInf), Tensor::Scalar(kInf), 0.1, 0.1));
  EXPECT_FALSE(Equal(Tensor::Scalar(-kInf), Tensor::Scalar(kInf), 0.1, 0.1));
  EXPECT_FALSE(Equal(Tensor::Scalar(3e38f), Tensor::Scalar(kInf), 0.1, 0.1));
  EXPECT_FALSE(Equal(Tensor::Scalar(kInf), Tensor::Scalar(3e38f), 0.1, 0.1));
  EXPECT_TRUE(Equal(Tensor::Scalar(kNan), Tensor::Scalar(kNan), 0.1, 0.1));
  EXPECT_FALSE(Equal(Tensor::Scalar(kNan), Tensor::Scalar(kInf), 0.1, 0.1));
  EXPECT_TRUE(Equal(Tensor::Scalar<int32_t>(10), Tensor::Scalar<int32_t>(11), 0, 1));
  EXPECT_FALSE(Equal(Tensor::Scalar<uint8_t>(0), Tensor::Scalar<uint8_t>(255), 0, 1));
  EXPECT_TRUE(Equal(Tensor::Scalar(complex64(3, 4)), Tensor::Scalar(complex64(3.2f, 4)), 0.05));
  EXPECT_FALSE(Equal(Tensor::Scalar(complex64(3, 4)), Tensor::Scalar(complex64(3.6f, 4)), 0.05));
  EXPECT_FALSE(Equal(Tensor::Scalar(complex64(kInf, 4)), Tensor::Scalar(complex64(kInf, 5)), 0.1));
}

TEST(CompareTensors, OneElementOfManyIsFoundAndTold) {
  std::vector<float> values(100, 1.0f);
  const Tensor want = Tensor::Vector<float>(absl::MakeConstSpan(values));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.5f;
    const std::string text =
        CompareTensors(Tensor::Vector<float>(absl::MakeConstSpan(values)), want, {0.1, 0.1, false});
    EXPECT_NE(text.find("max error 0.5"), std::string::npos) << text;
    EXPECT_NE(text.find("first element " + std::to_string(i) + ": 1.5 against 1"),
              std::string::npos)
        << text;
    values[i] = 1.0f;
  }
}

TEST(CompareTensors, Strings) {
  const Tensor want = Tensor::Vector<std::string>({"a", std::string("b\0c", 3)});
  EXPECT_TRUE(Equal(*want.Clone(), want));
  EXPECT_FALSE(Equal(Tensor::Vector<std::string>({"a", "b"}), want, 1, 1));
  EXPECT_FALSE(Equal(Tensor::Vector<std::string>({std::string("b\0c", 3), "a"}), want));
}

TEST(CompareTensors, AnyOrderIsAMultiset) {
  const Tensor want = Tensor::Vector<int32_t>({3, 1, 2, 1});
  EXPECT_FALSE(Equal(Tensor::Vector<int32_t>({1, 1, 2, 3}), want));
  EXPECT_TRUE(Equal(Tensor::Vector<int32_t>({1, 1, 2, 3}), want, 0, 0, true));
  EXPECT_FALSE(Equal(Tensor::Vector<int32_t>({1, 2, 2, 3}), want, 0, 0, true));
  EXPECT_TRUE(Equal(Tensor::Vector<std::string>({"b", "a"}),
                    Tensor::Vector<std::string>({"a", "b"}), 0, 0, true));
  EXPECT_TRUE(Equal(Tensor::Vector<float>({kNan, 1, kInf}), Tensor::Vector<float>({kInf, kNan, 1}),
                    0, 0, true));
  EXPECT_TRUE(
      Equal(Tensor::Vector<float>({2.01f, 1}), Tensor::Vector<float>({1, 2}), 0.1, 0, true));
}

TEST(CodeMatches, Alternatives) {
  using absl::StatusCode;
  EXPECT_TRUE(CodeMatches(StatusCode::kInvalidArgument, "INVALID_ARGUMENT"));
  EXPECT_TRUE(CodeMatches(StatusCode::kNotFound, "FAILED_PRECONDITION|INTERNAL|NOT_FOUND"));
  EXPECT_TRUE(CodeMatches(StatusCode::kInternal, "FAILED_PRECONDITION|INTERNAL|NOT_FOUND"));
  EXPECT_FALSE(CodeMatches(StatusCode::kOk, "INVALID_ARGUMENT"));
  EXPECT_FALSE(CodeMatches(StatusCode::kNotFound, "INVALID_ARGUMENT"));
  EXPECT_FALSE(CodeMatches(StatusCode::kNotFound, "NOT_FOUN"));
  EXPECT_FALSE(CodeMatches(StatusCode::kOk, ""));
}

}  // namespace
}  // namespace troupe::golden
