// Against numbers that TensorFlow 2.21's tf.compat.v1.losses gave for the same labels, predictions
// and weights.
#include "api/layers/losses.h"

#include <gmock/gmock.h>

#include "api/variable_scope.h"
#include "tests/api/layers/run_graph.h"

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
