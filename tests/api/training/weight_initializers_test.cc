// Against the numbers that TensorFlow 2.21's tf.compat.v1.initializers draw from the same seeds.
#include "api/training/weight_initializers.h"

#include <gmock/gmock.h>

#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class WeightInitializersTest : public RecordedTest {};

TEST_F(WeightInitializersTest, EqualTensorFlows) {
  const std::vector<float> numbers = {0, 1, 2, 3, 4, 5};
  struct Row {
    std::string name;
    Initializer initializer;
    Shape shape;
  };
  const std::vector<Row> rows = {
      {"glorot_normal", GlorotNormalInitializer(7), {3, 2, 4}},
      {"he_normal", HeNormalInitializer(7), {3, 2, 4}},
      {"he_uniform", HeUniformInitializer(7), {3, 2, 4}},
      {"lecun_normal", LecunNormalInitializer(7), {3, 2, 4}},
      {"lecun_uniform", LecunUniformInitializer(7), {3, 2, 4}},
      {"uniform_unit_scaling", UniformUnitScalingInitializer(1.5, 7), {3, 2, 4}},
      {"identity", IdentityInitializer(2.0), {3, 4}},
      {"orthogonal", OrthogonalInitializer(1.5, 7), {4, 3}},
      {"orthogonal/wide", OrthogonalInitializer(1.5, 7), {2, 2, 6}},
      {"delta_orthogonal", ConvolutionDeltaOrthogonalInitializer(2.0, 7), {3, 2, 2, 4}},
      {"constant", ConstantInitializer(Tensor::Vector<float>(numbers)), {2, 3}},
  };
  std::vector<Output> values;
  for (const Row& row : rows) {
    values.push_back(row.initializer(s_, row.shape, ElementType::kFloat));
    ASSERT_TRUE(s_.ok()) << row.name << ": " << s_.status();
    EXPECT_EQ(values.back().shape(), PartialShape(row.shape)) << row.name;
  }
  Start();
  for (size_t i = 0; i < rows.size(); ++i) {
    ExpectRecorded("initializers/" + rows[i].name, Value(values[i]));
  }
}

TEST_F(WeightInitializersTest, OtherTypesAndSizes) {
  const Output wide = OrthogonalInitializer()(s_, {3, 5}, ElementType::kDouble);
  const Output products = ops::MatMul(s_, wide, wide, {.transpose_b = true});
  const Output filled =
      ConstantInitializer(Tensor::Vector<int32_t>({7}))(s_, {2, 2}, ElementType::kFloat);
  const Output none = OrthogonalInitializer()(s_, {0, 5}, ElementType::kFloat);
  Start();
  const Tensor gram = Value(products);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(gram.unchecked_values<double>()[i], i % 4 == 0 ? 1 : 0, 1e-12);
  }
  EXPECT_THAT(Numbers(filled), Each(7.0f));
  EXPECT_EQ(Value(none).shape(), Shape({0, 5}));
}

TEST_F(WeightInitializersTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Initializer& initializer, const Shape& shape,
                          const std::string& says) {
    const Scope s = Scope::NewRoot();
    EXPECT_FALSE(initializer(s, shape, ElementType::kFloat).valid());
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  refused(IdentityInitializer(), {2, 2, 2}, "has 3 axes");
  refused(OrthogonalInitializer(), {2}, "has 1 axes");
  refused(ConvolutionDeltaOrthogonalInitializer(), {2, 2}, "has 2 axes");
  refused(ConvolutionDeltaOrthogonalInitializer(), {3, 4, 2}, "more inputs than outputs");
  refused(ConstantInitializer(Tensor::Vector<float>({1, 2})), {3}, "2 values");
}

}  // namespace
}  // namespace troupe
