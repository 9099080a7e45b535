// What goes between gradients and updates: clipping, accumulation; and after them: averages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/troupe.h"

namespace troupe {
namespace {

std::vector<Tensor> Evaluate(const Scope& s, const std::vector<Output>& outputs,
                             const FeedMap& feeds = {}) {
  EXPECT_TRUE(s.ok()) << s.status();
  if (!s.ok()) return {};
  auto values = (*Session::Create(s.graph()))->Run(feeds, outputs);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<Tensor>();
}

// --- clipping ---

std::vector<double> Doubles(const Tensor& t) {
  auto span = t.unchecked_values<double>();
  return std::vector<double>(span.begin(), span.end());
}

TEST(ClippingTest, ByValueAndNorms) {
  Scope s = Scope::NewRoot();
  const Output t = Const(s, *MakeTensor<double>(std::vector<double>{3, -4, 0, 12}, {2, 2}));
  const Output zeros = ops::ZerosLike(s, t);
  const auto values =
      Evaluate(s, {ClipByValue(s, t, -1.0f, 2.0f).values, ClipByNorm(s, t, 6.5f).values,
                   ClipByNorm(s, t, 100.0f).values, ClipByNorm(s, t, 6.0, {1}),
                   ClipByAverageNorm(s, t, 1.625f).values, ClipByNorm(s, zeros, 1.0f).values});
  ASSERT_EQ(values.size(), 6u);
  using testing::DoubleNear;
  using testing::Pointwise;
  const auto near = [](const std::vector<double>& expected) {
    return Pointwise(testing::DoubleNear(1e-12), expected);
  };
  EXPECT_THAT(Doubles(values[0]), near({2, -1, 0, 2}));
  EXPECT_THAT(Doubles(values[1]), near({1.5, -2, 0, 6}));  // The norm is 13.
  EXPECT_THAT(Doubles(values[2]), near({3, -4, 0, 12}));
  EXPECT_THAT(Doubles(values[3]), near({3, -4, 0, 6}));    // Row norms 5 and 12.
  EXPECT_THAT(Doubles(values[4]), near({1.5, -2, 0, 6}));  // The average norm is 13 / 4.
  EXPECT_THAT(Doubles(values[5]), near({0, 0, 0, 0}));
}

TEST(ClippingTest, ByGlobalNormDenseAndSparse) {
  Scope s = Scope::NewRoot();
  const Output rows = Const(s, *MakeTensor<double>(std::vector<double>{4, 0}, {2, 1}));
  const Output indices = Const(s, Tensor::Vector<int32_t>({5, 1}));
  const Output shape = Const(s, Tensor::Vector<int32_t>({9, 1}));
  const std::vector<Gradient> gradients = {Gradient(Const(s, 3.0)), Gradient(),
                                           Gradient(rows, indices, shape),
                                           Gradient(Const(s, 12.0))};
  const std::vector<Gradient> clipped = ClipByGlobalNorm(s, gradients, 6.5f);
  const std::vector<Gradient> same = ClipByGlobalNorm(s, gradients, 20.0f);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_FALSE(clipped[1].valid());
  ASSERT_TRUE(clipped[2].sparse());
  EXPECT_EQ(clipped[2].indices, indices);
  const auto values = Evaluate(s, {GlobalNorm(s, gradients), clipped[0].values, clipped[2].values,
                                   clipped[3].values, same[3].values});
  EXPECT_NEAR(values[0].unchecked_scalar<double>(), 13.0, 1e-12);
  EXPECT_NEAR(values[1].unchecked_scalar<double>(), 1.5, 1e-12);
  EXPECT_NEAR(Doubles(values[2])[0], 2.0, 1e-12);
  EXPECT_NEAR(values[3].unchecked_scalar<double>(), 6.0, 1e-12);
  EXPECT_NEAR(values[4].unchecked_scalar<double>(), 12.0, 1e-12);
}

TEST(ClippingTest, ANormThatIsNotFiniteGivesNaN) {
  Scope s = Scope::NewRoot();
  const std::vector<Gradient> gradients = {
      Gradient(Const(s, std::numeric_limits<float>::infinity())), Gradient(Const(s, 1.0f))};
  const auto values = Evaluate(s, {ClipByGlobalNorm(s, gradients, 1.0f)[1].values});
  EXPECT_TRUE(std::isnan(values[0].unchecked_scalar<float>()));
  GlobalNorm(s, {Gradient()});
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
}

// --- moving averages ---

TEST(MovingAverageTest, FollowsTheVariable) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 10.0), "w"), step = GlobalStep(s);
  GradientDescentOptimizer optimizer(1.0);
  Node* train = optimizer.Minimize(s, w.value(), step);
  ExponentialMovingAverage plain(0.9), eager(0.9, step.value(), false, "Eager");
  const Scope after = s.WithControlDependencies({train});
  Node* update = plain.Apply(after);
  Node* update_eager = eager.Apply(after, {w});
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(plain.AverageName(w), "w/ExponentialMovingAverage");
  EXPECT_EQ(plain.Average(w).name(), "w/ExponentialMovingAverage");
  EXPECT_EQ(eager.Average(w).name(), "w/Eager");
  EXPECT_FALSE(plain.Average(step).valid());
  EXPECT_EQ(s.graph()->Collection(collections::kMovingAverageVariables),
            std::vector<std::string>(2, w.handle().node->name()));  // One for each.
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  double value = 10, average = 10, eager_average = 10;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(session->RunTargets({update, update_eager}).ok());
    value -= 1;
    average -= 0.1 * (average - value);
    // The step's number is read before it is counted up.
    const double decay = std::min(0.9, (1.0 + i) / (10.0 + i));
    eager_average -= (1 - decay) * (eager_average - value);
    auto got = session->Run({plain.Average(w).value(), eager.Average(w).value()});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_NEAR((*got)[0].unchecked_scalar<double>(), average, 1e-12);
    EXPECT_NEAR((*got)[1].unchecked_scalar<double>(), eager_average, 1e-12);
  }
  const auto restore = plain.VariablesToRestore(*s.graph());
  ASSERT_EQ(restore.count("w/ExponentialMovingAverage"), 1u);
  EXPECT_EQ(restore.at("w/ExponentialMovingAverage").name(), "w");
  EXPECT_EQ(restore.count("w"), 0u);
  EXPECT_EQ(restore.count("global_step"), 1u);
}

TEST(MovingAverageTest, OfATensorWithoutTheBiasOfItsStart) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s, ElementType::kDouble, {.shape = PartialShape({2})});
  ExponentialMovingAverage biased(0.8), unbiased(0.8, {}, true, "Unbiased");
  Node* update = biased.Apply(s, std::vector<Output>{x});
  Node* update_unbiased = unbiased.Apply(s, std::vector<Output>{x});
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  double average = 0;
  for (int i = 1; i <= 4; ++i) {
    const FeedMap feeds = {{x, Tensor::Vector<double>({i * i * 1.0, 0})}};
    ASSERT_TRUE(session->RunTargets({update, update_unbiased}, feeds).ok());
    average = 0.8 * average + 0.2 * i * i;
    auto got = session->Run({biased.Average(x).value(), unbiased.Average(x).value()});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_NEAR(Doubles((*got)[0])[0], average, 1e-12);
    EXPECT_NEAR(Doubles((*got)[1])[0], average / (1 - std::pow(0.8, i)), 1e-12);
    EXPECT_EQ(Doubles((*got)[1])[1], 0);
  }
}

// --- accumulation ---

TEST(AccumulationTest, AppliesTheMeanOfSeveralSteps) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, Tensor::Vector<double>({1, 2})), "w"), step = GlobalStep(s);
  const Output g = ops::Placeholder(s, ElementType::kDouble, {.shape = PartialShape({2})});
  GradientAccumulation optimizer(std::make_unique<AdamOptimizer>(0.1, 0.9, 0.999, 1e-8), 3);
  Node* train = optimizer.ApplyGradients(s, {{Gradient(g), w}}, step);
  // The same without accumulation, on the mean.
  const ModelVariable v(s, Const(s, Tensor::Vector<double>({1, 2})), "v");
  AdamOptimizer plain(0.1, 0.9, 0.999, 1e-8, "Plain");
  Node* train_plain = plain.ApplyGradients(s, {{Gradient(g), v}});
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(optimizer.GetSlot(w, "sum").name(), "w/GradientAccumulation");
  EXPECT_EQ(optimizer.GetSlot(w, "m").name(), "w/Adam");
  EXPECT_THAT(optimizer.SlotNames(), testing::ElementsAre("sum", "m", "v"));
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  for (int round = 0; round < 3; ++round) {
    std::vector<double> mean(2, 0.0);
    for (int k = 0; k < 3; ++k) {
      const std::vector<double> now = {round + k + 1.0, k - 2.0 * round};
      mean[0] += now[0] / 3;
      mean[1] += now[1] / 3;
      auto before = session->Run({w.value()});
      const absl::Status status = session->RunTargets({train}, {{g, Tensor::Vector<double>(now)}});
      ASSERT_TRUE(status.ok()) << status;
      auto after = session->Run({w.value(), step.value()});
      ASSERT_TRUE(after.ok()) << after.status();
      if (k < 2) {
        EXPECT_EQ(Doubles((*before)[0]), Doubles((*after)[0]));
      }
      EXPECT_EQ((*after)[1].unchecked_scalar<int64_t>(), round + (k == 2));
    }
    ASSERT_TRUE(session->RunTargets({train_plain}, {{g, Tensor::Vector<double>(mean)}}).ok());
    auto both = session->Run({w.value(), v.value()});
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(Doubles((*both)[0])[i], Doubles((*both)[1])[i], 1e-12) << "round " << round;
    }
  }
}

TEST(AccumulationTest, TakesSparseGradients) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, {3, 1}, ZerosInitializer(), "w", true, ElementType::kDouble);
  const Output rows = Const(s, *MakeTensor<double>(std::vector<double>{1, 2, 4}, {3, 1}));
  const Gradient gradient(rows, Const(s, Tensor::Vector<int32_t>({2, 0, 2})),
                          Const(s, Tensor::Vector<int32_t>({3, 1})));
  GradientAccumulation optimizer(std::make_unique<GradientDescentOptimizer>(1.0), 2, false);
  Node* train = optimizer.ApplyGradients(s, {{gradient, w}});
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session->RunTargets({train}).ok());
  auto got = session->Run({w.value()});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Doubles((*got)[0]), (std::vector<double>{-8, 0, -20}));
}

TEST(AccumulationTest, AnOptimizerMayBeUsedInABranch) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0), "w");
  const Output go = ops::Placeholder(s, ElementType::kBool, {.shape = PartialShape(Shape({}))});
  AdamOptimizer optimizer(0.1, 0.9, 0.999, 0.0);
  const std::vector<Output> done = Cond(
      s, go,
      [&](const Scope& b) {
        return std::vector<Output>{
            Output(optimizer.ApplyGradients(b, {{Gradient(Const(b, 2.0)), w}}))};
      },
      [&](const Scope& b) { return std::vector<Output>{Output(ops::NoOp(b))}; });
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  // Adam's first steps with a constant gradient are as long as its rate.
  for (const auto& [run, expected] :
       {std::pair(false, 1.0), std::pair(true, 0.9), std::pair(false, 0.9), std::pair(true, 0.8)}) {
    auto result = session->Run({{go, Tensor::Scalar(run)}}, {done[0]});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR((*session->Run({w.value()}))[0].unchecked_scalar<double>(), expected, 1e-9);
  }
}

TEST(AccumulationTest, NoStepsAreAnError) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0f), "w");
  GradientAccumulation optimizer(std::make_unique<GradientDescentOptimizer>(1.0f), 0);
  EXPECT_EQ(optimizer.Minimize(s, w.value()), nullptr);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
