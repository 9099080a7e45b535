// Against numbers that TensorFlow 2.21's tf.compat.v1.losses gave for the same labels, predictions
// and weights.
#include "api/layers/losses.h"

#include <gmock/gmock.h>

#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/variable_scope.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::Pointwise;

MATCHER(Near, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-6; }

class LossesTest : public RunGraph {
 protected:
  const Output labels_ = Const(s_, Floats({1, 0, 1, 0, 1, 1}, {2, 3}));
  const Output predictions_ = Const(s_, Floats({.9f, .2f, .6f, .3f, .8f, .4f}, {2, 3}));
  const Tensor rows_ = Floats({1, .5f}, {2, 1});
};

TEST_F(LossesTest, ReductionsOfWeightedLosses) {
  using losses::Reduction;
  const Tensor weights = Floats({1, 0, 2, 0, 1, .5f}, {2, 3});
  std::vector<Output> reduced;
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMean, Reduction::kSumOverBatchSize,
                                    Reduction::kSumByNonzeroWeights}) {
    reduced.push_back(losses::AbsoluteDifference(s_, labels_, predictions_, {weights, reduction}));
  }
  const Output each =
      losses::AbsoluteDifference(s_, labels_, predictions_, {weights, Reduction::kNone, ""});
  const Output of_nothing =
      losses::AbsoluteDifference(s_, labels_, predictions_, {.weights = 0.0f, .collection = ""});
  const Output total = losses::TotalLoss(s_);
  Start();
  const float expected[] = {1.4f, .3111111f, .2333333f, .35f};
  float sum = 0;
  for (size_t i = 0; i < reduced.size(); ++i) {
    EXPECT_NEAR(Number(reduced[i]), expected[i], 1e-6) << i;
    sum += expected[i];
  }
  EXPECT_THAT(Numbers(each), Pointwise(Near(), {.1f, 0.f, .8f, 0.f, .2f, .3f}));
  EXPECT_EQ(Number(of_nothing), 0);
  EXPECT_NEAR(Number(total), sum, 1e-5);
}

TEST_F(LossesTest, EachOfThem) {
  struct Row {
    const char* name;
    Output plain, weighted;
    float expected[2];
  };
  const auto both = [&](const char* name, auto loss, float plain, float weighted) {
    return Row{name,
               loss(losses::LossOptions{}),
               loss(losses::LossOptions{.weights = rows_}),
               {plain, weighted}};
  };
  const Output large = ops::Mul(s_, predictions_, 3.0f);
  const auto per_row = [&](losses::LossOptions options) {
    if (options.weights.is_value() && options.weights.value().rank() == 2) {
      options.weights = Floats({1, .5f}, {2});
    }
    return options;
  };
  const Tensor classes = Tensor::Vector<int64_t>({0, 2});
  const Tensor one_hot = Floats({1, 0, 0, 0, 0, 1}, {2, 3});
  using losses::LossOptions;
  const std::vector<Row> rows = {
      both(
          "mean squared",
          [&](const LossOptions& o) {
            return losses::MeanSquaredError(s_, labels_, predictions_, o);
          },
          .1166667f, .0758333f),
      both(
          "hinge",
          [&](const LossOptions& o) { return losses::HingeLoss(s_, labels_, predictions_, o); },
          .6333334f, .4583333f),
      both(
          "huber",
          [&](const LossOptions& o) { return losses::HuberLoss(s_, labels_, large, .7, o); }, .43f,
          .335f),
      both(
          "log",
          [&](const LossOptions& o) { return losses::LogLoss(s_, labels_, predictions_, 1e-7, o); },
          .3892396f, .2645638f),
      both(
          "cosine",
          [&](const LossOptions& o) {
            return losses::CosineDistance(s_, labels_, predictions_, 1, o);
          },
          -.35f, -.3f),
      both(
          "pairwise",
          [&](const LossOptions& o) {
            return losses::MeanPairwiseSquaredError(s_, labels_, predictions_, o);
          },
          .5866667f, .3833333f),
      both(
          "sigmoid",
          [&](const LossOptions& o) {
            return losses::SigmoidCrossEntropy(s_, labels_, predictions_, 0, o);
          },
          .552542f, .4076693f),
      both(
          "smooth sigmoid",
          [&](const LossOptions& o) {
            return losses::SigmoidCrossEntropy(s_, labels_, predictions_, .1, o);
          },
          .5708753f, .4222527f),
      both(
          "softmax",
          [&](const LossOptions& o) {
            return losses::SoftmaxCrossEntropy(s_, one_hot, predictions_, 0, per_row(o));
          },
          1.0140547f, .7083564f),
      both(
          "smooth softmax",
          [&](const LossOptions& o) {
            return losses::SoftmaxCrossEntropy(s_, one_hot, predictions_, .2, per_row(o));
          },
          1.037388f, .7366897f),
      both(
          "sparse softmax",
          [&](const LossOptions& o) {
            return losses::SparseSoftmaxCrossEntropy(s_, Const(s_, classes), predictions_,
                                                     per_row(o));
          },
          1.0140547f, .7083564f),
  };
  Start();
  for (const Row& row : rows) {
    EXPECT_NEAR(Number(row.plain), row.expected[0], 1e-6) << row.name;
    EXPECT_NEAR(Number(row.weighted), row.expected[1], 1e-6) << row.name;
  }
  EXPECT_EQ(losses::Losses(s_).size(), 2 * rows.size());
}

/// Values and gradients by predictions, for shapes that the graph knows, for such of which it knows
/// the rank, and for such of which it knows nothing.
enum class Known { kAll, kRank, kNothing };

class RecordedLossesTest : public RecordedTest, public ::testing::WithParamInterface<Known> {
 protected:
  using Loss = std::function<Output(const Output& labels, const Output& predictions,
                                    const losses::LossOptions& options)>;

  Output Given(const Tensor& tensor) {
    PartialShape shape;
    if (GetParam() == Known::kAll) shape = PartialShape(tensor.shape());
    if (GetParam() == Known::kRank) {
      shape = PartialShape(
          std::vector<int64_t>(static_cast<size_t>(tensor.shape().rank()), int64_t{-1}));
    }
    const Output fed = Fed(shape, tensor.type());
    feeds_.emplace_back(fed, tensor);
    return fed;
  }

  void Add(const std::string& name, const Loss& loss, const Tensor& labels,
           const Tensor& predictions, const std::vector<std::pair<std::string, Tensor>>& weighted) {
    const Output x = Given(predictions);
    const auto add = [&](const std::string& kind, const losses::LossOptions& options) {
      const Output y = loss(Given(labels), x, options);
      const OutputList gradients = Gradients(s_, {y}, {x});
      ASSERT_TRUE(s_.ok()) << name << kind << ": " << s_.status();
      results_.push_back({"losses/" + name + kind, y});
      results_.push_back({"losses/" + name + kind + "/gradient", gradients[0]});
    };
    add("", {});
    for (const auto& [kind, weights] : weighted) add(kind, {.weights = Given(weights)});
  }

  void Check() {
    Start();
    for (const auto& [name, output] : results_) ExpectRecorded(name, Value(output, feeds_));
  }

  FeedMap feeds_;
  std::vector<std::pair<std::string, Output>> results_;
};

TEST_P(RecordedLossesTest, OfElements) {
  const Tensor truth = Floats({1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0}, {3, 4});
  const Tensor guess =
      Floats({.9f, .2f, .6f, .3f, .8f, .4f, .5f, .7f, .1f, .55f, .25f, .35f}, {3, 4});
  const Tensor logits = Floats({0, 1e-3f, -1e-3f, 2, 0, -3, 30, -30, .5f, -0.0f, 0, -90}, {3, 4});
  const Tensor edges = Floats({1, .75f, .25f, -.75f, 0, 1.75f, -1, 2, .5f, 3, 1, -1}, {3, 4});
  const Tensor weights = Floats({1, 0, 2, .5f, .5f, 1, 0, 1, 1, 3, 1, 0}, {3, 4});
  const std::pair<std::string, Tensor> rows = {"/rows", Floats({1, .5f, 2}, {3, 1})};
  const std::vector<std::pair<std::string, Tensor>> both = {{"/weighted", weights}, rows};
  namespace l = losses;
  using Options = const l::LossOptions&;
  using X = const Output&;
  Add(
      "absolute", [&](X y, X x, Options o) { return l::AbsoluteDifference(s_, y, x, o); }, truth,
      edges, both);
  Add(
      "squared", [&](X y, X x, Options o) { return l::MeanSquaredError(s_, y, x, o); }, truth,
      guess, both);
  Add(
      "huber", [&](X y, X x, Options o) { return l::HuberLoss(s_, y, x, .75, o); }, truth, edges,
      both);
  Add(
      "log", [&](X y, X x, Options o) { return l::LogLoss(s_, y, x, 1e-6, o); }, truth, guess,
      both);
  Add("cosine", [&](X y, X x, Options o) { return l::CosineDistance(s_, y, x, 1, o); }, truth,
      guess, {rows});
  Add(
      "hinge", [&](X y, X x, Options o) { return l::HingeLoss(s_, y, x, o); }, truth, edges, both);
  Add(
      "pairwise", [&](X y, X x, Options o) { return l::MeanPairwiseSquaredError(s_, y, x, o); },
      truth, guess, both);
  Add(
      "sigmoid", [&](X y, X x, Options o) { return l::SigmoidCrossEntropy(s_, y, x, 0, o); }, truth,
      logits, both);
  Add(
      "sigmoid/smooth",
      [&](X y, X x, Options o) { return l::SigmoidCrossEntropy(s_, y, x, .1, o); }, truth, logits,
      both);
  Check();
}

TEST_P(RecordedLossesTest, OfClasses) {
  std::vector<float> waves;
  const Tensor wave = WaveOf({2, 3, 4});
  for (const float x : wave.unchecked_values<float>()) waves.push_back(3 * x);
  std::vector<float> shares;  // The softmax of cosines.
  const Tensor cosines = CosineOf({2, 3, 4});
  for (size_t row = 0; row < 6; ++row) {
    double sum = 0;
    const auto power = [&](size_t i) {
      return std::exp(double{cosines.unchecked_values<float>()[4 * row + i]});
    };
    for (size_t i = 0; i < 4; ++i) sum += power(i);
    for (size_t i = 0; i < 4; ++i) shares.push_back(static_cast<float>(power(i) / sum));
  }
  const auto first = [](const std::vector<float>& of, const Shape& shape) {
    const auto n = static_cast<std::ptrdiff_t>(shape.num_elements());
    return Floats({of.begin(), of.begin() + n}, shape);
  };
  const Tensor classes = Tensor::FromValues<int64_t>({2, 0, 1, 1, 1, 3}, {2, 3}).value();
  const Tensor column = Tensor::FromValues<int64_t>({2, 0, 1}, {3, 1}).value();
  const std::pair<std::string, Tensor> all = {"/weighted", Floats({1, 0, 2, .5f, 1, 3}, {2, 3})};
  const std::pair<std::string, Tensor> some = {"/weighted", Floats({1, 0, 2}, {3})};
  const std::pair<std::string, Tensor> column_weights = {"/weighted", Floats({1, 0, 2}, {3, 1})};
  using Options = const losses::LossOptions&;
  using X = const Output&;
  const auto soft = [&](double smoothing) {
    return [this, smoothing](X y, X x, Options o) {
      return losses::SoftmaxCrossEntropy(s_, y, x, smoothing, o);
    };
  };
  const auto sparse = [this](X y, X x, Options o) {
    return losses::SparseSoftmaxCrossEntropy(s_, y, x, o);
  };
  Add("softmax", soft(0), first(shares, {2, 3, 4}), first(waves, {2, 3, 4}), {all});
  Add("softmax/smooth", soft(.2), first(shares, {2, 3, 4}), first(waves, {2, 3, 4}), {all});
  Add("softmax/vector", soft(0), first(shares, {4}), first(waves, {4}), {});
  Add("softmax/matrix", soft(.2), first(shares, {3, 4}), first(waves, {3, 4}), {some});
  Add("sparse", sparse, classes, first(waves, {2, 3, 4}), {all});
  Add("sparse/column", sparse, column, first(waves, {3, 4}), {column_weights});
  Add("sparse/vector", sparse, Tensor::Scalar<int64_t>(2), first(waves, {4}), {});
  Check();
}

INSTANTIATE_TEST_SUITE_P(Shapes, RecordedLossesTest,
                         ::testing::Values(Known::kAll, Known::kRank, Known::kNothing));

TEST_F(LossesTest, AStepRefusesSizesThatDoNotFit) {
  for (const bool rank_known : {true, false}) {
    const auto fed = [&](int rank, ElementType type = ElementType::kFloat) {
      const std::vector<int64_t> sizes(static_cast<size_t>(rank), -1);
      return Fed(rank_known ? PartialShape(sizes) : PartialShape(), type);
    };
    const Output x = fed(2), y = fed(2), w = fed(2), logits = fed(3);
    const Output classes = fed(2, ElementType::kInt64);
    const std::vector<Output> of_elements = {losses::AbsoluteDifference(s_, y, x),
                                             losses::MeanSquaredError(s_, y, x),
                                             losses::HuberLoss(s_, y, x),
                                             losses::LogLoss(s_, y, x),
                                             losses::CosineDistance(s_, y, x, 1),
                                             losses::HingeLoss(s_, y, x),
                                             losses::SigmoidCrossEntropy(s_, y, x),
                                             losses::SoftmaxCrossEntropy(s_, y, x),
                                             losses::MeanPairwiseSquaredError(s_, y, x)};
    const std::vector<Output> weighted = {
        losses::MeanSquaredError(s_, y, x, {.weights = w}),
        losses::MeanPairwiseSquaredError(s_, y, x, {.weights = w})};
    const Output sparse = losses::SparseSoftmaxCrossEntropy(s_, classes, logits);
    Start();
    const auto code = [&](const Output& loss, const FeedMap& feeds) {
      return session_->Run(feeds, {loss}).status().code();
    };
    const auto zeros = [](const Shape& shape) {
      return Floats(std::vector<float>(static_cast<size_t>(shape.num_elements())), shape);
    };
    constexpr auto kBad = absl::StatusCode::kInvalidArgument;
    // What would be broadcast.
    std::vector<Shape> others = {{1, 3}, {2, 1}, {1, 1}};
    if (!rank_known) others.insert(others.end(), {{3}, {}, {1, 2, 3}});
    for (const Shape& shape : others) {
      for (const Output& loss : of_elements) {
        EXPECT_EQ(code(loss, {{x, zeros({2, 3})}, {y, zeros(shape)}}), kBad) << loss.name();
        EXPECT_EQ(code(loss, {{x, zeros(shape)}, {y, zeros({2, 3})}}), kBad) << loss.name();
      }
    }
    for (const Output& loss : weighted) {
      const auto with = [&](const Shape& shape) {
        return code(loss, {{x, zeros({2, 3})}, {y, zeros({2, 3})}, {w, zeros(shape)}});
      };
      for (const Shape& shape : {Shape{2, 3}, Shape{1, 3}, Shape{2, 1}, Shape{1, 1}}) {
        EXPECT_EQ(with(shape), absl::StatusCode::kOk) << loss.name();
      }
      EXPECT_EQ(with({3, 3}), kBad) << loss.name();
      EXPECT_EQ(with({2, 2}), kBad) << loss.name();
      if (rank_known) continue;
      EXPECT_EQ(with({}), absl::StatusCode::kOk) << loss.name();
      for (const Shape& shape : {Shape{3}, Shape{1}, Shape{1, 2, 3}}) {
        EXPECT_EQ(with(shape), kBad) << loss.name();
      }
    }
    for (const Shape& shape : {Shape{3, 2}, Shape{1, 6}, Shape{2, 1}}) {
      const auto labels = Tensor::FromValues<int64_t>(
          std::vector<int64_t>(static_cast<size_t>(shape.num_elements())), shape);
      EXPECT_EQ(code(sparse, {{logits, zeros({2, 3, 4})}, {classes, *labels}}), kBad);
    }
  }
}

TEST_F(LossesTest, BranchesCheckSizesToo) {
  const Output x = Fed({-1, -1}), y = Fed(PartialShape()), taken = Fed({}, ElementType::kBool);
  const Output loss = Cond(
      s_, taken,
      [&](const Scope& s) { return losses::MeanSquaredError(s, y, x, {.collection = ""}); },
      [&](const Scope& s) { return Const(s, 7.0f); });
  const OutputList gradient = Gradients(s_, {loss}, {x});
  Start();
  FeedMap feeds = {
      {x, Floats({1, 3}, {1, 2})}, {y, Floats({0, 1}, {1, 2})}, {taken, Tensor::Scalar(true)}};
  EXPECT_EQ(Number(loss, feeds), 2.5f);
  EXPECT_EQ(Numbers(gradient[0], feeds), std::vector<float>({1, 2}));
  feeds[1].second = Floats({0, 1}, {2});
  EXPECT_EQ(session_->Run(feeds, {loss}).status().code(), absl::StatusCode::kInvalidArgument);
  feeds[2].second = Tensor::Scalar(false);
  EXPECT_EQ(Number(loss, feeds), 7);
}

TEST_F(LossesTest, TheGraphRefusesShapesThatDoNotFit) {
  const auto refused = [](const auto& loss) {
    const Scope s = Scope::NewRoot();
    loss(s);
    return s.status().code() == absl::StatusCode::kInvalidArgument;
  };
  const auto fed = [](const Scope& s, const PartialShape& shape,
                      ElementType type = ElementType::kFloat) {
    return ops::Placeholder(s, type, {.shape = shape});
  };
  const auto elements = [&](const PartialShape& labels, const PartialShape& predictions) {
    return refused(
        [&](const Scope& s) { losses::MeanSquaredError(s, fed(s, labels), fed(s, predictions)); });
  };
  const PartialShape scalar{Shape()};
  EXPECT_TRUE(elements({2, 3}, {1, 3}));
  EXPECT_TRUE(elements({1}, scalar));
  EXPECT_TRUE(elements({3, 1}, {3}));  // tf.losses does not squeeze these.
  EXPECT_TRUE(elements({-1, 1}, {-1}));
  EXPECT_TRUE(elements({-1, 3}, {-1, 4}));
  EXPECT_FALSE(elements({-1, 3}, {5, -1}));
  const auto soft = [&](const PartialShape& labels, const PartialShape& logits) {
    return refused([&](const Scope& s) {
      losses::SoftmaxCrossEntropy(s, fed(s, labels), fed(s, logits), .1);
    });
  };
  EXPECT_TRUE(soft({1, 3}, {2, 3}));
  EXPECT_TRUE(soft(scalar, scalar));
  EXPECT_FALSE(soft({-1, 3}, {2, -1}));
  const auto sparse = [&](const PartialShape& labels, const PartialShape& logits,
                          const PartialShape& weights) {
    return refused([&](const Scope& s) {
      losses::SparseSoftmaxCrossEntropy(s, fed(s, labels, ElementType::kInt32), fed(s, logits),
                                        {.weights = fed(s, weights)});
    });
  };
  EXPECT_TRUE(sparse({2}, {3, 4}, {}));
  EXPECT_TRUE(sparse({3, 2}, {3, 4}, {}));
  EXPECT_TRUE(sparse({2, 3}, {3, 2, 4}, {}));
  EXPECT_TRUE(sparse(scalar, scalar, {}));
  EXPECT_TRUE(sparse({2, 3}, {2, 3, 4}, {3}));
  EXPECT_FALSE(sparse({-1, 1}, {-1, 4}, {-1, 1}));
  EXPECT_FALSE(sparse({2, 3, 1}, {2, 3, 4}, {2, 1}));
}

TEST_F(LossesTest, OfAnyOriginAndByName) {
  losses::AddLoss(s_, Const(s_.NewSubScope("head"), 3.0f));
  losses::AddLoss(s_, Const(s_.NewSubScope("tail"), 4.0f));
  losses::AddLoss(s_, Const(s_, 5.0f), "others");
  const std::vector<Output> of_head = losses::Losses(s_, "head/");
  const std::vector<Output> others = losses::Losses(s_, "", "others");
  ASSERT_EQ(of_head.size(), 1u);
  ASSERT_EQ(others.size(), 1u);
  const Output total = losses::TotalLoss(s_);
  Start();
  EXPECT_EQ(Number(of_head[0]), 3);
  EXPECT_EQ(Number(others[0]), 5);
  EXPECT_EQ(Number(total), 7);
}

TEST_F(LossesTest, WhatDoesNotFitIsRefused) {
  losses::MeanSquaredError(s_, labels_, predictions_, {.weights = Floats({1, 2}, {2})});
  EXPECT_EQ(s_.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s_.status().message()), ::testing::HasSubstr("weights of shape [2]"));
  const Scope other = Scope::NewRoot();
  EXPECT_FALSE(losses::TotalLoss(other).valid());
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe
