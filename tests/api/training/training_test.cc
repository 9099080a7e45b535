#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/troupe.h"

namespace troupe {
namespace {

/// A quadratic bowl: loss = sum((w - target)^2) / 2, whose gradient is w - target.
class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest()
      : w_(s_, Const(s_, Tensor::Vector<double>({1.0, -2.0, 0.5})), "w"),
        target_(Const(s_, Tensor::Vector<double>({0.0, 1.0, 2.0}))) {
    const Output difference = ops::Sub(s_, w_.value(), target_);
    loss_ = ops::Mul(s_, ReduceSum(s_, ops::Square(s_, difference)), 0.5);
  }

  /// Values of w after each of `steps` steps.
  std::vector<std::vector<double>> Train(Optimizer* optimizer, int steps) {
    const ModelVariable step = GlobalStep(s_);
    Node* train = optimizer->Minimize(s_, loss_, step);
    Node* init = GlobalVariablesInitializer(s_);
    EXPECT_TRUE(s_.ok()) << s_.status();
    auto session = *Session::Create(s_.graph());
    EXPECT_TRUE(session->RunTargets({init}).ok());
    std::vector<std::vector<double>> values;
    for (int i = 0; i < steps; ++i) {
      EXPECT_TRUE(session->RunTargets({train}).ok());
      auto value = session->Run({w_.value(), step.value()});
      EXPECT_TRUE(value.ok());
      EXPECT_EQ((*value)[1].unchecked_scalar<int64_t>(), i + 1);
      auto span = (*value)[0].unchecked_values<double>();
      values.emplace_back(span.begin(), span.end());
    }
    return values;
  }

  Scope s_ = Scope::NewRoot();
  ModelVariable w_;
  Output target_, loss_;
  const std::vector<double> start_ = {1.0, -2.0, 0.5}, goal_ = {0.0, 1.0, 2.0};
};

TEST_F(OptimizerTest, GradientDescent) {
  GradientDescentOptimizer optimizer(0.1);
  const auto values = Train(&optimizer, 10);
  std::vector<double> w = start_;
  for (const auto& got : values) {
    for (int i = 0; i < 3; ++i) {
      w[i] -= static_cast<double>(0.1) * (w[i] - goal_[i]);
      EXPECT_NEAR(got[i], w[i], 1e-12);
    }
  }
}

TEST_F(OptimizerTest, MomentumAndNesterov) {
  for (const bool nesterov : {false, true}) {
    MomentumOptimizer optimizer(0.1, 0.9, nesterov, nesterov ? "Nesterov" : "Momentum");
    const auto values = Train(&optimizer, 5);
    std::vector<double> w = start_, a(3, 0.0);
    for (int k = 0; k < 5; ++k) {
      for (int i = 0; i < 3; ++i) {
        const double g = w[i] - goal_[i];
        a[i] = 0.9 * a[i] + g;
        w[i] -= nesterov ? 0.1 * (g + 0.9 * a[i]) : 0.1 * a[i];
        EXPECT_NEAR(values[k][i], w[i], 1e-12) << "step " << k << " nesterov " << nesterov;
      }
    }
    EXPECT_TRUE(optimizer.GetSlot(w_, "momentum").valid());
    EXPECT_FALSE(optimizer.GetSlot(w_, "v").valid());
  }
}

TEST_F(OptimizerTest, Adam) {
  AdamOptimizer optimizer(0.05, 0.9, 0.999, 1e-8);
  const auto values = Train(&optimizer, 6);
  std::vector<double> w = start_, m(3, 0.0), v(3, 0.0);
  double p1 = 0.9, p2 = 0.999;
  for (int k = 0; k < 6; ++k) {
    const double rate = 0.05 * std::sqrt(1 - p2) / (1 - p1);
    for (int i = 0; i < 3; ++i) {
      const double g = w[i] - goal_[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      w[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-8);
      EXPECT_NEAR(values[k][i], w[i], 1e-9) << "step " << k;
    }
    p1 *= 0.9;
    p2 *= 0.999;
  }
}

TEST(OptimizerErrors, ALossWithoutVariables) {
  Scope s = Scope::NewRoot();
  GradientDescentOptimizer optimizer(0.1f);
  EXPECT_EQ(optimizer.Minimize(s, Const(s, 1.0f)), nullptr);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
}

/// Mean and standard deviation of what an initializer gives.
std::pair<double, double> Moments(const Initializer& initializer, const Shape& shape) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(7);
  const Output value = initializer(s, shape, ElementType::kFloat);
  EXPECT_TRUE(s.ok()) << s.status();
  auto values = (*Session::Create(s.graph()))->Run({value});
  EXPECT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].shape(), shape);
  double sum = 0, squares = 0;
  for (float x : (*values)[0].unchecked_values<float>()) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const double n = static_cast<double>((*values)[0].num_elements());
  return {sum / n, std::sqrt(squares / n - (sum / n) * (sum / n))};
}

TEST(InitializersTest, HaveTheMomentsThatTheyPromise) {
  const Shape shape = {200, 300};
  struct Case {
    Initializer initializer;
    double mean, deviation;
  };
  const Case cases[] = {
      {ZerosInitializer(), 0, 0},
      {OnesInitializer(), 1, 0},
      {ConstantInitializer(0.1), 0.1, 0},
      {RandomUniformInitializer(-1, 3), 1, 4 / std::sqrt(12.0)},
      {RandomUniformInitializer(), .5, 1 / std::sqrt(12.0)},
      {RandomNormalInitializer(), 0, 1},
      {TruncatedNormalInitializer(), 0, 0.87962566},
      {RandomNormalInitializer(2, 0.5), 2, 0.5},
      {TruncatedNormalInitializer(0, 0.1), 0, 0.087962566},
      {VarianceScalingInitializer({.scale = 2.0}), 0, std::sqrt(2.0 / 200)},
      {VarianceScalingInitializer(
           {.mode = VarianceScaling::kFanOut, .distribution = VarianceScaling::kUntruncatedNormal}),
       0, std::sqrt(1.0 / 300)},
      {GlorotUniformInitializer(), 0, std::sqrt(2.0 / 500)},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto [mean, deviation] = Moments(cases[i].initializer, shape);
    EXPECT_NEAR(mean, cases[i].mean, 0.02 + 0.01 * cases[i].deviation) << "case " << i;
    EXPECT_NEAR(deviation, cases[i].deviation, 0.02 * cases[i].deviation + 1e-3) << "case " << i;
  }
}

TEST(SeedsTest, TheGraphsSeedRepeatsARun) {
  auto draw = [](int64_t seed, int threads) {
    Scope s = Scope::NewRoot();
    s.SetGraphSeed(seed);
    const Output value = RandomNormalInitializer(0, 1)(s, {100000}, ElementType::kFloat);
    SessionOptions options;
    options.threads = threads;
    auto values = (*Session::Create(s.graph(), options))->Run({value});
    EXPECT_TRUE(values.ok()) << values.status();
    auto span = (*values)[0].unchecked_values<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(draw(3, 1), draw(3, 2));
  EXPECT_NE(draw(3, 1), draw(4, 1));
}

TEST(NnTest, DropoutKeepsAndScales) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(1);
  const Output x =
      Const(s, Tensor::FromValues<float>(std::vector<float>(10000, 1.0f), {10000}).value());
  const Output kept = Dropout(s, x, 0.75f), all = Dropout(s, x, 1.0f);
  auto values = (*Session::Create(s.graph()))->Run({kept, all});
  ASSERT_TRUE(values.ok()) << values.status();
  int zeros = 0;
  for (float v : (*values)[0].unchecked_values<float>()) {
    if (v == 0) {
      ++zeros;
    } else {
      EXPECT_FLOAT_EQ(v, 1 / 0.75f);
    }
  }
  EXPECT_NEAR(zeros, 2500, 200);
  for (float v : (*values)[1].unchecked_values<float>()) EXPECT_EQ(v, 1.0f);
}

TEST(TensorAccessTest, IsChecked) {
  const Tensor t = Tensor::Vector<float>({1, 2});
  EXPECT_TRUE(Values<float>(t).ok());
  EXPECT_EQ(Values<double>(t).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ScalarValue<float>(t).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*ScalarValue<float>(Tensor::Scalar(3.0f)), 3.0f);
  const std::vector<float> six(6);
  EXPECT_TRUE(MakeTensor<float>(six, {2, 3}).ok());
  EXPECT_FALSE(MakeTensor<float>(six, {2, 4}).ok());
  EXPECT_FALSE(MakeTensor<float>(six, {-1, 6}).ok());
}

}  // namespace
}  // namespace troupe
