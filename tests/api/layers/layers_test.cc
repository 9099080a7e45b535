// Against TensorFlow 2.21 (tf.nn, tf.keras): for the same inputs and weights, the sum of the
// result, its sum weighted by a wave, its first and its last element.
#include "api/layers/layers.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/layers/losses.h"
#include "api/training/optimizers.h"
#include "devices/status_macros.h"
#include "tests/api/layers/run_graph.h"

namespace troupe {
namespace {

using layers::ConvOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Wave(int64_t n, double frequency) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i) * frequency + 0.5)));
  }
  return values;
}
Tensor WaveOf(const Shape& shape, double frequency) {
  return Floats(Wave(shape.num_elements(), frequency), shape);
}

/// cos(0.7 i) / 2, plus `offset`.
Initializer Cosine(float offset = 0) {
  return [offset](const Scope& scope, const Shape& shape, ElementType) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      values.push_back(static_cast<float>(std::cos(static_cast<double>(i) * 0.7)) * 0.5f + offset);
    }
    return Const(scope, Floats(values, shape));
  };
}

layers::WeightOptions WithBias() {
  return {.kernel_initializer = Cosine(), .bias_initializer = ConstantInitializer(0.1)};
}
template <size_t N>
ConvOptions<N> Conv(std::array<int64_t, N> strides, const std::string& padding, bool bias) {
  ConvOptions<N> options;
  options.use_bias = bias;
  options.kernel_initializer = Cosine();
  options.bias_initializer = ConstantInitializer(0.1);
  options.strides = strides;
  options.padding = padding;
  return options;
}

class LayersTest : public RunGraph {
 protected:
  const Shape shape_ = {2, 5, 6, 3};
  const Output x_ = Const(s_, WaveOf(shape_, .37));
  /// The same, of which nothing but the number of channels is known.
  const Output fed_ = Fed({-1, -1, -1, 3});
  Output Line() {
    return ops::Reshape(s_, ops::Slice(s_, x_, {0, 0, 0, 0}, {2, 1, 6, 3}), {2, 6, 3});
  }

  void Expect(const Output& y, const Shape& shape, std::array<double, 4> expected) {
    const Tensor value = Value(y, {{fed_, WaveOf(shape_, .37)}});
    ASSERT_EQ(value.shape(), shape) << y.name();
    const std::vector<float> wave = Wave(shape.num_elements(), .3);
    const auto got = value.unchecked_values<float>();
    double sum = 0, weighted = 0;
    for (size_t i = 0; i < wave.size(); ++i) {
      sum += got[i];
      weighted += static_cast<double>(got[i]) * wave[i];
    }
    EXPECT_NEAR(sum, expected[0], 3e-4) << y.name();
    EXPECT_NEAR(weighted, expected[1], 3e-4) << y.name();
    EXPECT_NEAR(got.front(), expected[2], 2e-5) << y.name();
    EXPECT_NEAR(got.back(), expected[3], 2e-5) << y.name();
  }
};

TEST_F(LayersTest, EqualTensorFlows) {
  layers::WeightOptions dense = WithBias();
  dense.activation = layers::Relu;
  ConvOptions<2> dilated = Conv<2>({1, 1}, "VALID", false);
  dilated.dilations = {2, 1};
  struct Row {
    Output y;
    Shape shape;
    std::array<double, 4> expected;
  };
  std::vector<Row> rows;
  for (const Output& x : {x_, fed_}) {
    rows.push_back(
        {layers::Dense(s_, x, 4, dense), {2, 5, 6, 4}, {34.677632, -1.135971, 0.346388, 0.016382}});
    rows.push_back({layers::Conv2D(s_, x, 4, {3, 2}, Conv<2>({2, 1}, "SAME", true)),
                    {2, 3, 6, 4},
                    {14.484059, -2.588878, 0.002948, -0.122786}});
    rows.push_back({layers::Conv2D(s_, x, 4, {2, 2}, dilated),
                    {2, 3, 5, 4},
                    {-0.451525, 0.449357, 0.031315, 0.086855}});
    rows.push_back({layers::Conv2DTranspose(s_, x, 4, {3, 3}, Conv<2>({2, 3}, "SAME", false)),
                    {2, 10, 18, 4},
                    {0.189344, 0.334478, 0.612384, -0.343261}});
    rows.push_back({layers::Conv2DTranspose(s_, x, 4, {3, 2}, Conv<2>({2, 2}, "VALID", false)),
                    {2, 11, 12, 4},
                    {0.126487, 0.508989, 0.612384, -0.343261}});
    rows.push_back({layers::Gelu(s_, x), {2, 5, 6, 3}, {33.938521, 1.234644, 0.328014, -0.169013}});
  }
  rows.push_back({layers::Conv1D(s_, Line(), 2, 3, Conv<1>({2}, "SAME", false)),
                  {2, 3, 2},
                  {1.168827, 0.704867, 0.076097, 0.144201}});
  rows.push_back(
      {layers::MaxPooling1D(s_, Line(), 2, 2), {2, 3, 3}, {6.772267, 0.129536, 0.999232, 0.95827}});
  rows.push_back({layers::AveragePooling1D(s_, Line(), 3, 2, "SAME"),
                  {2, 3, 3},
                  {-0.034495, -2.183093, 0.62929, 0.820212}});
  Start();
  for (const Row& row : rows) Expect(row.y, row.shape, row.expected);
}

TEST_F(LayersTest, Normalizations) {
  const auto wave = [](const Scope& scope, const Shape& shape, ElementType) {
    return Const(scope, WaveOf(shape, 1.0));
  };
  // Whatever gives weights gives these.
  const Scope given = VariableScope(
      s_, "given", {.getter = [&](const Scope& scope, VariableRequest request, const auto& next) {
        if (request.name == "gamma") request.options.initializer = Cosine();
        if (request.name == "beta") request.options.initializer = wave;
        return next(scope, request);
      }});
  const Output layer = layers::LayerNormalization(given, fed_);
  const Output groups = layers::GroupNormalization(given, Const(s_, WaveOf({2, 4, 5, 6}, .37)), 3);
  Start();
  Expect(layer, shape_, {125.443488, 3.159077, -0.164222, 0.497799});
  Expect(groups, {2, 4, 5, 6}, {1.618018, 0.704673, 0.823539, -1.235982});
}

TEST_F(LayersTest, BatchNormalizationEqualsTensorFlows) {
  const Scope given = VariableScope(
      s_, "given", {.getter = [&](const Scope& scope, VariableRequest request, const auto& next) {
        if (request.name == "gamma") request.options.initializer = Cosine(1);
        if (request.name == "beta") {
          request.options.initializer = [](const Scope& at, const Shape& shape, ElementType) {
            return Const(at, WaveOf(shape, 1.0));
          };
        }
        return next(scope, request);
      }});
  const Output trained = layers::BatchNormalization(given, fed_, true, {.momentum = .9});
  const std::vector<Node*> updates = UpdateOps(*s_.graph());
  ASSERT_EQ(updates.size(), 2u);
  const Scope again =
      VariableScope(VariableScope(s_, "given", {.reuse = Reuse::kYes}), "batch_normalization");
  const Output tested =
      layers::BatchNormalization(VariableScope(s_, "given", {.reuse = Reuse::kYes}), fed_, false,
                                 {.name = "batch_normalization"});
  const Output means = GetVariable(again, "moving_mean", {3}).value();
  const Output variances = GetVariable(again, "moving_variance", {3}).value();
  Start();
  Expect(trained, shape_, {124.523557, 3.118491, 1.439143, -0.476575});
  ASSERT_TRUE(session_->Run({{fed_, WaveOf(shape_, .37)}}, {trained}, updates).ok());
  const std::vector<float> m = Numbers(means), v = Numbers(variances);
  const float expected_means[] = {.00290915f, .00243437f, .00163010f};
  const float biased[] = {.4944102f, .4977211f, .5019874f};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(m[i], expected_means[i], 1e-6);
    EXPECT_NEAR(v[i], .9f + .1f * biased[i] * 60 / 59, 1e-6);  // By n - 1, as in TensorFlow 1.x.
  }
  const std::vector<float> y = Numbers(tested, {{fed_, WaveOf(shape_, .37)}});
  EXPECT_NEAR(y.front(), 1.212599, 1e-3);  // There with the variance by n.
  EXPECT_NEAR(y.back(), -.166961, 1e-3);
}

TEST_F(LayersTest, BatchNormalizationTrainsAndTests) {
  // With gamma 1 and beta 0: zero mean, unit variance; later by what it has seen.
  const Output training = Fed({}, ElementType::kBool);
  const Output y = layers::BatchNormalization(s_, fed_, training, {.momentum = 0.0});
  const Output constant = layers::BatchNormalization(s_, fed_, false, {.name = "other"});
  const std::vector<Node*> updates = UpdateOps(*s_.graph());
  ASSERT_EQ(updates.size(), 2u);  // None of the one that never trains.
  Start();
  FeedMap feeds = {{fed_, WaveOf(shape_, .37)}, {training, Tensor::Scalar(false)}};
  const std::vector<float> x = Wave(180, .37);
  std::vector<float> before = Numbers(y, feeds);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(before[i], x[i] / std::sqrt(1.001f), 1e-6);
  EXPECT_EQ(Numbers(constant, feeds), before);
  feeds[1].second = Tensor::Scalar(true);
  auto trained = session_->Run(feeds, {y}, updates);
  ASSERT_TRUE(trained.ok()) << trained.status();
  feeds[1].second = Tensor::Scalar(false);
  const std::vector<float> after = Numbers(y, feeds);
  for (size_t i = 0; i < x.size(); ++i) {
    const float batch = (*trained)[0].unchecked_data<float>()[i];
    EXPECT_NEAR(after[i], batch, 2e-2);  // The variance by n - 1 instead of n.
  }
}

TEST_F(LayersTest, Attention) {
  // The biases of all projections are .1.
  const Scope given = VariableScope(
      s_, "given", {.getter = [&](const Scope& scope, VariableRequest request, const auto& next) {
        request.options.initializer = request.name == "bias" ? ConstantInitializer(.1) : Cosine();
        return next(scope, request);
      }});
  const Output q = Const(s_, WaveOf({2, 4, 6}, .37)), memory = Const(s_, WaveOf({2, 5, 3}, .21));
  const Output y = layers::MultiHeadAttention(given, q, memory, 2);
  const Output causal = layers::MultiHeadAttention(given, q, q, 2, {.causal = true});
  std::vector<bool> look(16, false);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j <= i; ++j) look[4 * i + j] = true;
  }
  Tensor mask = Tensor::Uninitialized(ElementType::kBool, {4, 4});
  std::copy(look.begin(), look.end(), mask.mutable_data<bool>());
  const Output masked = layers::MultiHeadAttention(given, q, q, 2, {.mask = mask});
  Start();
  Expect(y, {2, 4, 6}, {4.843299, 0.497796, 0.115723, 0.120951});
  Expect(causal, {2, 4, 6}, {5.060925, 1.054286, 0.05088, 0.054302});
  EXPECT_EQ(Numbers(masked), Numbers(causal));
}

TEST_F(LayersTest, DropoutOnlyWhenTraining) {
  s_.SetGraphSeed(7);
  const Output training = Fed({}, ElementType::kBool);
  const Output ones = Const(s_, Floats(std::vector<float>(10000, 1.0f), {10000}));
  const Output y = layers::DropoutLayer(s_, ones, .25, training);
  EXPECT_EQ(layers::DropoutLayer(s_, ones, 0, training), ones);
  Start();
  EXPECT_THAT(Numbers(y, {{training, Tensor::Scalar(false)}}), ::testing::Each(1.0f));
  double kept = 0;
  for (const float value : Numbers(y, {{training, Tensor::Scalar(true)}})) {
    if (value == 0) continue;
    EXPECT_FLOAT_EQ(value, 4.0f / 3);
    ++kept;
  }
  EXPECT_NEAR(kept / 10000, .75, .02);
}

TEST_F(LayersTest, DropoutOfWholeChannels) {
  s_.SetGraphSeed(7);
  const Output ones = ops::Fill(s_, {20, 3, 2, 50}, Const(s_, 1.0f));
  const Output y = layers::DropoutLayer(s_, ones, .25, true, std::nullopt, Input({20, 1, 1, 50}));
  const Output plain = layers::DropoutLayer(s_, ones, .25, true);
  EXPECT_EQ(y.shape(), PartialShape({20, 3, 2, 50}));
  Start();
  const auto together = [](const std::vector<float>& values) {
    bool all = true;
    for (size_t i = 0; i < values.size(); ++i) {
      all = all && values[i] == values[i / 300 * 300 + i % 50];
    }
    return all;
  };
  const std::vector<float> values = Numbers(y);
  EXPECT_TRUE(together(values));
  EXPECT_NEAR(std::count(values.begin(), values.end(), 0.0f) / 6000.0, .25, .05);
  EXPECT_FALSE(together(Numbers(plain)));
}

TEST_F(LayersTest, NamesAreTensorFlows) {
  Output h = layers::Conv2D(s_, fed_, 4, {3, 3});
  h = layers::BatchNormalization(s_, h, true);
  h = layers::GlobalAveragePooling(s_, h);
  h = layers::Dense(s_, h, 5);
  h = layers::Dense(s_, h, 5, {.name = "last", .use_bias = false});
  layers::Dense(s_, h, 2);
  layers::Embedding(s_, {0, 1}, 7, 3);
  std::vector<std::string> names;
  for (const std::string& handle : s_.graph()->Collection(collections::kVariables)) {
    names.push_back(ModelVariable::FromHandle(*s_.graph(), handle).name());
  }
  EXPECT_THAT(names,
              ElementsAre("conv2d/kernel", "conv2d/bias", "batch_normalization/gamma",
                          "batch_normalization/beta", "batch_normalization/moving_mean",
                          "batch_normalization/moving_variance", "dense/kernel", "dense/bias",
                          "last/kernel", "dense_1/kernel", "dense_1/bias", "embedding/embeddings"));
  const std::string summary = layers::Summary(*s_.graph());
  EXPECT_THAT(summary, HasSubstr("conv2d/kernel"));
  EXPECT_THAT(summary, HasSubstr("203 parameters are trained, 8 are not"));
  Start();
}

TEST_F(LayersTest, SharedLayersHaveOneSetOfWeights) {
  const auto net = [&](const Output& x, Reuse reuse) {
    const Scope scope = VariableScope(s_, "net", {.reuse = reuse});
    return layers::Dense(scope, x, 2, {.name = "hidden"});
  };
  const Output a = net(x_, Reuse::kNo), b = net(fed_, Reuse::kYes);
  EXPECT_EQ(s_.graph()->Collection(collections::kVariables).size(), 2u);
  Start();
  EXPECT_EQ(Numbers(a), Numbers(b, {{fed_, WaveOf(shape_, .37)}}));
}

// As the discriminator of a GAN, which sees real and made images.
TEST_F(LayersTest, UnnamedLayersAreSharedByEnteringAgain) {
  for (const Reuse reuse : {Reuse::kYes, Reuse::kAuto}) {
    const Scope s = Scope::NewRoot();
    const auto net = [&](Reuse how) {
      const Scope d = VariableScope(s, "D", {.reuse = how});
      const Output h =
          layers::Flatten(d, layers::Conv2D(d, Const(s, WaveOf(shape_, .37)), 2, {5, 6}));
      return layers::Dense(d, layers::Dense(d, h, 3), 1);
    };
    net(reuse == Reuse::kYes ? Reuse::kNo : reuse);
    net(reuse);
    ASSERT_TRUE(s.ok()) << s.status();
    std::vector<std::string> names;
    for (const ModelVariable& variable : ModelVariable::Trainable(*s.graph())) {
      names.push_back(variable.name());
    }
    EXPECT_THAT(names, ElementsAre("D/conv2d/kernel", "D/conv2d/bias", "D/dense/kernel",
                                   "D/dense/bias", "D/dense_1/kernel", "D/dense_1/bias"));
  }
}

TEST_F(LayersTest, UnnamedLayersAreNotSharedUnasked) {
  layers::Dense(VariableScope(s_, "D"), x_, 3);
  EXPECT_FALSE(layers::Dense(VariableScope(s_, "D"), x_, 3).valid());
  EXPECT_EQ(s_.status().code(), absl::StatusCode::kAlreadyExists) << s_.status();
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("'D/dense/kernel'"));
}

// Deviations whose squares half does not have: tf.keras gives the same with float inside.
TEST_F(LayersTest, NormalizationsOfHalfDoNotOverflow) {
  const Shape shape = {2, 4, 5, 6};
  std::vector<float> values = Wave(shape.num_elements(), .37);
  for (float& value : values) value = std::round(value * 2000);  // Half has these numbers.
  const Output x = Const(s_, Floats(values, shape));
  const Output narrow = ops::Cast(s_, x, ElementType::kHalf);
  const Scope f = VariableScope(s_, "float"), h = VariableScope(s_, "half");
  const auto gradient = [&](const Output& y, const Output& of) {
    const Output wave = ops::Cast(s_, Const(s_, WaveOf(shape, .3)), y.type());
    const Output loss[] = {ops::Mul(s_, y, wave)}, by[] = {of};
    // So that half can hold them.
    return ops::Mul(s_, ops::Cast(s_, Gradients(s_, loss, by)[0], ElementType::kFloat), 1000.0f);
  };
  const Output rows = layers::LayerNormalization(f, x),
               rows16 = layers::LayerNormalization(h, narrow);
  const Output groups = layers::GroupNormalization(f, x, 3),
               groups16 = layers::GroupNormalization(h, narrow, 3);
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_EQ(rows16.type(), ElementType::kHalf);
  std::vector<std::pair<Output, Output>> pairs = {
      {rows, ops::Cast(s_, rows16, ElementType::kFloat)},
      {groups, ops::Cast(s_, groups16, ElementType::kFloat)},
      {gradient(rows, x), gradient(rows16, narrow)},
      {gradient(groups, x), gradient(groups16, narrow)}};
  Start();
  for (const auto& [wide, half] : pairs) {
    const std::vector<float> expected = Numbers(wide), got = Numbers(half);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 2e-3 * (1 + std::abs(expected[i])));
    }
  }
}

// TensorFlow 1.x: fused, and the variance by n - 1, where there are 4 axes; else by n.
TEST_F(LayersTest, BatchNormalizationOfOtherRanksMovesTheBiasedVariance) {
  const std::vector<double> x = {1, 10, 3, 30, 8, 20};  // Means 4 and 20.
  const double biased[] = {26 / 3.0, 200 / 3.0};
  struct Row {
    PartialShape shape;
    ElementType type;
    double factor;
  };
  const Row rows[] = {{PartialShape({3, 2}), ElementType::kFloat, 1},
                      {PartialShape({-1, 3, 2}), ElementType::kFloat, 1},
                      {PartialShape({-1, 1, 3, 2}), ElementType::kFloat, 1.5},
                      {PartialShape({3, 2}), ElementType::kHalf, 1},
                      {PartialShape({-1, 1, 3, 2}), ElementType::kHalf, 1.5},
                      {PartialShape({3, 2}), ElementType::kDouble, 1},
                      {PartialShape({1, 1, 3, 2}), ElementType::kDouble, 1}};
  struct Made {
    Output y, tested, mean, variance;
  };
  std::vector<Made> made;
  std::vector<Node*> updates;
  const Output training = Fed({}, ElementType::kBool);
  const Output fed = Fed({3, 2}, ElementType::kDouble);
  for (const Row& row : rows) {
    std::vector<int32_t> sizes;
    for (int i = 0; i + 2 < row.shape.rank(); ++i) sizes.push_back(1);
    sizes.insert(sizes.end(), {3, 2});
    Output in = ops::Reshape(s_, ops::Cast(s_, fed, row.type), Tensor::Vector<int32_t>(sizes));
    in = ops::PlaceholderWithDefault(s_, in, row.shape);
    const std::string name = "n" + std::to_string(made.size());
    const Output y =
        layers::BatchNormalization(s_, in, training,
                                   {.name = name,
                                    .momentum = .75,
                                    .epsilon = 0.5,
                                    .gamma_initializer = ConstantInitializer(2),
                                    .moving_variance_initializer = ConstantInitializer(4),
                                    .beta_initializer = ConstantInitializer(-1),
                                    .moving_mean_initializer = ConstantInitializer(8)});
    ASSERT_TRUE(y.valid()) << s_.status();
    EXPECT_EQ(y.type(), row.type);
    const auto average = [&](const std::string& of) {
      const auto variable =
          ModelVariable::FromHandle(*s_.graph(), StrCat(name, "/", of, "/handle"));
      return ops::Cast(s_, variable.value(), ElementType::kFloat);
    };
    made.push_back({ops::Cast(s_, y, ElementType::kFloat),
                    {},
                    average("moving_mean"),
                    average("moving_variance")});
  }
  updates = UpdateOps(*s_.graph());
  EXPECT_EQ(updates.size(), 14u);
  Start();
  const Tensor in = Tensor::FromValues<double>(x, {3, 2}).value();
  const FeedMap tests = {{fed, in}, {training, Tensor::Scalar(false)}};
  const FeedMap trains = {{fed, in}, {training, Tensor::Scalar(true)}};
  const double mean[] = {4, 20};
  for (size_t r = 0; r < made.size(); ++r) {
    const std::vector<float> tested = Numbers(made[r].y, tests),
                             trained = Numbers(made[r].y, trains);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(tested[i], 2 * (x[i] - 8) / std::sqrt(4.5) - 1, 2e-2) << r;
      EXPECT_NEAR(trained[i], 2 * (x[i] - mean[i % 2]) / std::sqrt(biased[i % 2] + .5) - 1, 4e-3)
          << r;
    }
  }
  ASSERT_EQ(session_->RunTargets(updates, trains), absl::OkStatus());
  for (size_t r = 0; r < made.size(); ++r) {
    const std::vector<float> m = Numbers(made[r].mean), v = Numbers(made[r].variance);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(m[i], .75 * 8 + .25 * mean[i], 1e-5) << r;
      EXPECT_NEAR(v[i], .75 * 4 + .25 * biased[i] * rows[r].factor, 1e-4) << r;
    }
  }
}

TEST_F(LayersTest, BatchNormalizationOfDoubleHasTheGradientsOfFloat) {
  const Output wide = ops::Cast(s_, x_, ElementType::kDouble);
  const auto gradients = [&](const Output& x, const std::string& name) {
    const Output y = layers::BatchNormalization(s_, x, true, {.name = name});
    const auto variable = [&](const std::string& of) {
      return ModelVariable::FromHandle(*s_.graph(), name + "/" + of + "/handle").value();
    };
    const Output wave = ops::Cast(s_, Const(s_, WaveOf(shape_, .3)), x.type());
    const Output loss[] = {ops::Mul(s_, y, wave)};
    const Output by[] = {x, variable("gamma"), variable("beta")};
    std::vector<Output> result;
    for (const Output& g : Gradients(s_, loss, by)) {
      result.push_back(ops::Cast(s_, g, ElementType::kFloat));
    }
    return result;
  };
  const std::vector<Output> expected = gradients(x_, "float"), got = gradients(wide, "double");
  Start();
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> a = Numbers(expected[i]), b = Numbers(got[i]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], 2e-5);
  }
}

TEST_F(LayersTest, BatchNormalizationTakesTheScopesRegularizerAndConstraints) {
  const Scope net = VariableScope(s_, "net", {.regularizer = L2Regularizer(1)});
  layers::BatchNormalizationOptions options = {.gamma_constraint = NonNegative(),
                                               .gamma_initializer = ConstantInitializer(2),
                                               .beta_initializer = ConstantInitializer(1)};
  const Output y = layers::BatchNormalization(net, x_, true, options);
  EXPECT_EQ(RegularizationLosses(s_).size(), 2u);  // None of the averages.
  const Output loss = RegularizationLoss(s_);
  options.gamma_regularizer = L2Regularizer(0);
  layers::BatchNormalization(net, y, true, options);
  EXPECT_EQ(RegularizationLosses(s_).size(), 3u);
  Node* train = GradientDescentOptimizer(3.0f).Minimize(s_, loss);
  const Output gamma = ModelVariable::Trainable(*s_.graph())[0].value();
  Start();
  EXPECT_EQ(Number(loss), 3 * (4 + 1) / 2.0);
  ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  EXPECT_THAT(Numbers(gamma), ElementsAre(0, 0, 0));  // Not 2 - 3 * 2.
}

TEST_F(LayersTest, LearnsWithRegularizersAndConstraints) {
  const Scope net = VariableScope(s_, "net", {.regularizer = L2Regularizer(.5)});
  layers::WeightOptions options = {.use_bias = false,
                                   .kernel_initializer = ConstantInitializer(1.0),
                                   .activity_regularizer = L1Regularizer(.25),
                                   .kernel_constraint = NonNegative()};
  const Output x = Const(s_, Floats({1, 2, 3}, {1, 3}));
  const Output y = layers::Dense(net, x, 1, options);
  losses::MeanSquaredError(s_, Floats({-100}, {1, 1}), y);
  const Output loss = losses::TotalLoss(s_);
  GradientDescentOptimizer optimizer(0.1f);
  Node* train = optimizer.Minimize(s_, loss);
  const Output kernel = ModelVariable::Trainable(*s_.graph())[0].value();
  Start();
  // 106^2, 3/2 * .5, .25 * 6.
  EXPECT_NEAR(Number(loss), 11236 + .75 + 1.5, 1e-2);
  ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  EXPECT_THAT(Numbers(kernel), ElementsAre(0, 0, 0));
}

TEST_F(LayersTest, WhatCannotBeIsRefusedByName) {
  const auto refused = [](const std::function<void(const Scope&, const Output&)>& add,
                          const PartialShape& shape, const std::string& says) {
    const Scope s = Scope::NewRoot();
    const Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = shape});
    add(s, x);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  refused([](const auto& s, const auto& x) { layers::Dense(s, x, 3); }, {-1, -1}, "dense: ");
  refused([](const auto& s, const auto& x) { layers::Dense(s, x, 3); }, {7}, "dense: ");
  refused([](const auto& s, const auto& x) { layers::Dense(s, x, -3); }, {2, 7}, "-3");
  refused([](const auto& s, const auto& x) { layers::Dense(s, x, 3); }, PartialShape(), "dense: ");
  refused(
      [](const auto& s, const auto& x) {
        layers::Conv2D(s, x, 3, {3, 3});
      },
      {1, 2, 3}, "conv2d: ");
  refused(
      [](const auto& s, const auto& x) {
        layers::Conv2D(s, x, 3, {3, int64_t{1} << 62});
      },
      {1, 2, 3, 4}, "");
  refused([](const auto& s, const auto& x) { layers::BatchNormalization(s, x, true); }, {-1, -1},
          "batch_normalization: ");
  refused([](const auto& s, const auto& x) { layers::GroupNormalization(s, x, 3); }, {1, 2, 4},
          "4 channels");
  refused([](const auto& s, const auto& x) { layers::MultiHeadAttention(s, x, x, 9); }, {1, 2, 4},
          "9 heads");
  refused([](const auto& s, const auto& x) { layers::DropoutLayer(s, x, 1.0, true); }, {1},
          "[0, 1)");
  refused([](const auto& s, const auto& x) { layers::Dense(s, x, 3, {.name = "a//b"}); }, {2, 7},
          "a//b");
}

}  // namespace
}  // namespace troupe
