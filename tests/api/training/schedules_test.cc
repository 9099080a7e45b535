// Learning-rate schedules against their formulas and TensorFlow.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "api/troupe.h"

namespace troupe {
namespace {

/// The schedules of the recorded rows, in their order, of the step's number.
std::vector<Output> Schedules(const Scope& s, const Output& g, const Input& rate) {
  return {
      ExponentialDecay(s, rate, g, 10, 0.5f),
      ExponentialDecay(s, rate, g, 10, 0.5f, true),
      NaturalExpDecay(s, rate, g, 10, 0.5f),
      NaturalExpDecay(s, rate, g, 10, 0.5f, true),
      InverseTimeDecay(s, rate, g, 10, 0.5f),
      InverseTimeDecay(s, rate, g, 10, 0.5f, true),
      PolynomialDecay(s, rate, g, 20, 0.01f, 2.0f),
      PolynomialDecay(s, rate, g, 20, 0.01f, 0.5f, true),
      PiecewiseConstant(s, g, {7, 25}, {0.1f, 0.2f, 0.3f}),
      CosineDecay(s, rate, g, 100, 0.1f),
      CosineDecayRestarts(s, rate, g, 10, 2.0, 0.9, 0.1f),
      CosineDecayRestarts(s, rate, g, 10, 1.0, 0.9, 0.1f),
      LinearCosineDecay(s, rate, g, 100),
  };
}

TEST(SchedulesTest, GiveTensorFlowsNumbers) {
  // tf.compat.v1.train's schedules of TensorFlow 2.21 at a rate of 0.1, at steps of int64.
  const std::vector<std::pair<int64_t, std::vector<double>>> recorded = {
      {0,
       {0.100000001, 0.100000001, 0.100000001, 0.100000001, 0.100000001, 0.100000001, 0.100000001,
        0.100000001, 0.100000001, 0.100000001, 0.100000001, 0.100000001, 0.100100003}},
      {1,
       {0.0933033004, 0.100000001, 0.0951229483, 0.100000001, 0.0952381045, 0.100000001,
        0.0912249982, 0.097721152, 0.100000001, 0.0999777913, 0.0977975428, 0.0977975428,
        0.0990755707}},
      {7,
       {0.0615572222, 0.100000001, 0.0704688057, 0.100000001, 0.0740740746, 0.100000001,
        0.0480249971, 0.0825603232, 0.100000001, 0.0989162549, 0.0285496656, 0.0285496656,
        0.0919801295}},
      {10,
       {0.0500000007, 0.0500000007, 0.0606530681, 0.0606530681, 0.0666666701, 0.0666666701,
        0.0324999988, 0.0736396089, 0.200000003, 0.0977975428, 0.0909999982, 0.0909999982,
        0.0878975391}},
      {25,
       {0.0176776703, 0.0250000004, 0.0286504813, 0.0367879458, 0.0444444455, 0.0500000007,
        0.00999999978, 0.0651135221, 0.200000003, 0.0868198127, 0.0218621772, 0.0464499928,
        0.0641165078}},
      {100,
       {9.76562515e-05, 9.76562515e-05, 0.000673794828, 0.000673794828, 0.0166666675, 0.0166666675,
        0.00999999978, 0.00999999978, 0.300000012, 0.0100000007, 0.055358924, 0.0413810499,
        0.000100000005}},
      {137,
       {7.51431025e-06, 1.22070314e-05, 0.00010594559, 0.000150343942, 0.0127388537, 0.0133333337,
        0.00999999978, 0.0231746547, 0.300000012, 0.0100000007, 0.0141827706, 0.0147150783,
        0.000100000005}},
  };
  Scope s = Scope::NewRoot();
  const Output g = ops::Placeholder(s, ElementType::kInt64, {.shape = PartialShape(Shape({}))});
  const std::vector<Output> schedules = Schedules(s, g, 0.1f);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  for (const auto& [step, expected] : recorded) {
    auto values = session->Run({{g, Tensor::Scalar<int64_t>(step)}}, schedules);
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_EQ(values->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR((*values)[i].unchecked_scalar<float>(), expected[i], 2e-7)
          << "schedule " << i << " step " << step;
    }
  }
}

TEST(SchedulesTest, FollowTheirFormulasInDouble) {
  Scope s = Scope::NewRoot();
  const Output g = ops::Placeholder(s, ElementType::kInt32, {.shape = PartialShape(Shape({}))});
  const std::vector<Output> schedules = {
      ExponentialDecay(s, 0.3, g, 7, 0.8), NaturalExpDecay(s, 0.3, g, 7, 0.8),
      InverseTimeDecay(s, 0.3, g, 7, 0.8), PolynomialDecay(s, 0.3, g, 50, 0.02, 1.5),
      CosineDecay(s, 0.3, g, 50, 0.2)};
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  for (const int step : {0, 3, 7, 20, 49, 50, 80}) {
    auto values = session->Run({{g, Tensor::Scalar<int32_t>(step)}}, schedules);
    ASSERT_TRUE(values.ok()) << values.status();
    const double part = step / 7.0, done = std::min(step, 50) / 50.0;
    const double expected[] = {0.3 * std::pow(0.8, part), 0.3 * std::exp(-0.8 * part),
                               0.3 / (1 + 0.8 * part), 0.28 * std::pow(1 - done, 1.5) + 0.02,
                               0.3 * (0.8 * 0.5 * (1 + std::cos(M_PI * done)) + 0.2)};
    for (size_t i = 0; i < std::size(expected); ++i) {
      EXPECT_NEAR((*values)[i].unchecked_scalar<double>(), expected[i], 1e-12)
          << i << " at " << step;
    }
  }
}

TEST(SchedulesTest, NoiseHasTheVarianceThatItPromises) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(5);
  // At step 0 the linear part is 1 and the cosine 1: rate * (1 + noise + beta).
  const Output rate = NoisyLinearCosineDecay(s, 1.0, 0, 100, 0.04, 0.55);
  const Output late = NoisyLinearCosineDecay(s, 1.0, 50, 100, 0.04, 0.55);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  double sum[2] = {}, squares[2] = {};
  const int n = 2000;
  for (int i = 0; i < n; ++i) {
    auto values = session->Run({rate, late});
    ASSERT_TRUE(values.ok()) << values.status();
    for (int k = 0; k < 2; ++k) {
      const double x = (*values)[k].unchecked_scalar<double>();
      sum[k] += x;
      squares[k] += x * x;
    }
  }
  // Half way the cosine is 1/2, which also scales the noise.
  const double deviation[2] = {0.2, 0.5 * 0.2 / std::sqrt(std::pow(51, 0.55))};
  const double mean[2] = {1.001, 0.5 * 0.5 + 0.001};
  for (int k = 0; k < 2; ++k) {
    EXPECT_NEAR(sum[k] / n, mean[k], 0.1 * deviation[k]);
    EXPECT_NEAR(std::sqrt(squares[k] / n - std::pow(sum[k] / n, 2)), deviation[k],
                0.1 * deviation[k]);
  }
}

TEST(SchedulesTest, BadOptionsAreErrors) {
  auto code = [](const std::function<void(const Scope&)>& add) {
    Scope s = Scope::NewRoot();
    add(s);
    return s.status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](const Scope& s) { PiecewiseConstant(s, 1, {1, 2}, {0.1f}); }), invalid);
  EXPECT_EQ(code([](const Scope& s) {
              PiecewiseConstant(s, 1, {2, 2}, {0.1f, 1.f, 2.f});
            }),
            invalid);
  EXPECT_EQ(code([](const Scope& s) { ExponentialDecay(s, 1, 1, 10, 0.5f); }), invalid);
  EXPECT_EQ(code([](const Scope& s) { CosineDecayRestarts(s, 0.1f, 1, 10, 0.5); }), invalid);
}

TEST(SchedulesTest, AnOptimizerFollowsOne) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 0.0), "w"), step = GlobalStep(s);
  GradientDescentOptimizer optimizer(
      PiecewiseConstant(s, step.value(), {0, 1}, {1.0f, 0.5f, 0.25f}));
  Node* train = optimizer.Minimize(s, w.value(), step);
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  for (const double expected : {-1.0, -1.5, -1.75, -2.0}) {
    ASSERT_TRUE(session->RunTargets({train}).ok());
    EXPECT_EQ((*session->Run({w.value()}))[0].unchecked_scalar<double>(), expected);
  }
}

}  // namespace
}  // namespace troupe
