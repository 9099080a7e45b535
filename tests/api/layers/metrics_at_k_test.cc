// Against what TensorFlow 2.21's tf.compat.v1.metrics, and NumPy for covariance, give for the same
// two batches.
#include "api/layers/metrics_at_k.h"

#include <gmock/gmock.h>

#include "api/collections.h"
#include "api/layers/correlation.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

namespace m = metrics;

class KBestTest : public RecordedTest {
 protected:
  const Output labels_ = Fed({-1, 2}, ElementType::kInt64), scores_ = Fed({-1, 5});
  const Output weights_ = Fed({-1}), truth_ = Fed({-1}), guess_ = Fed({-1}), rows_ = Fed({-1, 3});

  FeedMap Batch(int i) const {
    const std::vector<int64_t> labels[] = {{1, 2, 0, -1, 4, 1, 2, 2}, {3, -1, 1, 0, 2, 4, -1, 2}};
    const std::vector<float> weights[] = {{1, .5f, 2, 0}, {0, 1, 1, .25f}};
    const std::vector<float> truth[] = {{1, 0, 1, 1}, {0, 0, 1, 0}};
    const std::vector<float> guess[] = {{.9f, .8f, .3f, .6f}, {.1f, .4f, .55f, .7f}};
    const double frequency = i == 0 ? .37 : 1.3;
    return {{labels_, Tensor::FromValues<int64_t>(labels[i], {4, 2}).value()},
            {scores_, WaveOf({4, 5}, frequency)},
            {weights_, Tensor::Vector<float>(weights[i])},
            {truth_, Tensor::Vector<float>(truth[i])},
            {guess_, Tensor::Vector<float>(guess[i])},
            {rows_, WaveOf({4, 3}, frequency)}};
  }
  /// The labels that are not negative.
  m::ClassLabels Sparse() {
    const Output there = ops::Where(s_, ops::GreaterEqual(s_, labels_, 0));
    return {there, ops::GatherNd(s_, labels_, there), Const(s_, Tensor::Vector<int64_t>({4, 2}))};
  }
  Output Unit(const Output& x) {
    const Output squares = ReduceSum(s_, ops::Square(s_, x), {.axes = {{1}}, .keep_dims = true});
    return ops::Mul(s_, x, ops::Rsqrt(s_, squares));
  }
};

TEST_F(KBestTest, OverTwoBatches) {
  const Input w{weights_};
  const Output best = ops::TopKV2(s_, scores_, 3).indices;
  const Output one = ops::GatherV2(s_, labels_, 0, 1);
  const Output positive = ops::Abs(s_, labels_);
  const std::vector<float> limits = {.2f, .5f, .65f};
  const Output unit = Unit(rows_);
  const Output other = Unit(ops::Roll(s_, rows_, 1, 1));
  const std::vector<std::pair<std::string, m::Metric>> metrics = {
      {"recall_at_2", m::RecallAtK(s_, labels_, scores_, 2)},
      {"recall_at_2/weighted", m::RecallAtK(s_, labels_, scores_, 2, {.weights = w})},
      {"recall_at_3/class", m::RecallAtK(s_, labels_, scores_, 3, {.class_id = 2})},
      {"recall_at_1/one", m::RecallAtK(s_, one, scores_, 1)},
      {"recall_at_2/sparse", m::RecallAtK(s_, Sparse(), scores_, 2, {.weights = w})},
      {"recall_at_2/sparse_class", m::RecallAtK(s_, Sparse(), scores_, 2, {.class_id = 1})},
      {"recall_at_top_k", m::RecallAtTopK(s_, labels_, best)},
      {"precision_at_2", m::PrecisionAtK(s_, labels_, scores_, 2)},
      {"precision_at_2/weighted", m::PrecisionAtK(s_, labels_, scores_, 2, {.weights = w})},
      {"precision_at_3/class",
       m::PrecisionAtK(s_, labels_, scores_, 3, {.class_id = 2, .weights = w})},
      {"precision_at_3/sparse", m::PrecisionAtK(s_, Sparse(), scores_, 3)},
      {"precision_at_top_k", m::PrecisionAtTopK(s_, labels_, best)},
      {"average_precision_at_3", m::AveragePrecisionAtK(s_, positive, scores_, 3)},
      {"average_precision_at_3/weighted", m::AveragePrecisionAtK(s_, positive, scores_, 3, w)},
      {"average_precision_at_4/sparse", m::AveragePrecisionAtK(s_, Sparse(), scores_, 4)},
      {"true_positives_at_thresholds", m::TruePositivesAtThresholds(s_, truth_, guess_, limits, w)},
      {"true_negatives_at_thresholds", m::TrueNegativesAtThresholds(s_, truth_, guess_, limits, w)},
      {"false_positives_at_thresholds",
       m::FalsePositivesAtThresholds(s_, truth_, guess_, limits, w)},
      {"false_negatives_at_thresholds", m::FalseNegativesAtThresholds(s_, truth_, guess_, limits)},
      {"mean_cosine_distance", m::MeanCosineDistance(s_, unit, other, 1)},
      {"mean_cosine_distance/weighted",
       m::MeanCosineDistance(s_, unit, other, 1, ops::ExpandDims(s_, weights_, 1))},
  };
  Start();
  for (const auto& [name, metric] : metrics) {
    const Tensor expected = RecordedTensor("metrics/" + name);
    const auto values = expected.unchecked_values<float>();
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> got = Numbers(metric.update, Batch(i));
      ASSERT_EQ(2 * got.size(), values.size()) << name;
      for (size_t j = 0; j < got.size(); ++j) {
        EXPECT_NEAR(got[j], values[static_cast<size_t>(i) * got.size() + j], 2e-6) << name;
      }
    }
    const std::vector<float> last = Numbers(metric.value);
    for (size_t j = 0; j < last.size(); ++j) {
      EXPECT_NEAR(last[j], values[values.size() - last.size() + j], 2e-6) << name;
    }
  }
}

TEST_F(KBestTest, Covariance) {
  const Output x = Fed({-1}), y = Fed({-1}), w = Fed({-1});
  const std::vector<std::pair<std::string, m::Metric>> metrics = {
      {"covariance/plain", m::Covariance(s_, x, y)},
      {"covariance/weighted", m::Covariance(s_, x, y, w)},
      {"pearson/plain", m::PearsonCorrelation(s_, x, y)},
      {"pearson/weighted", m::PearsonCorrelation(s_, x, y, w)},
  };
  Start();
  const FeedMap batches[] = {
      {{x, WaveOf({6})}, {y, WaveOf({6}, .8)}, {w, Tensor::Vector<float>({1, 2, 0, 1, 3, 1})}},
      {{x, WaveOf({5}, 1.3)}, {y, WaveOf({5}, .2)}, {w, Tensor::Vector<float>({2, 0, 1, 1, 2})}}};
  const FeedMap single = {{x, WaveOf({1})}, {y, WaveOf({1})}, {w, WaveOf({1})}};
  for (const auto& [name, metric] : metrics) {
    const Tensor expected = RecordedTensor("metrics/" + name);
    EXPECT_EQ(Number(metric.value), 0) << name;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(Number(metric.update, batches[i]), expected.unchecked_values<float>()[i], 2e-6)
          << name;
    }
    EXPECT_NEAR(Number(metric.value), expected.unchecked_values<float>()[1], 2e-6) << name;
  }
  const m::Metric again = m::PearsonCorrelation(s_, x, y);
  Start();
  EXPECT_EQ(Number(again.update, single), 0);
}

TEST_F(KBestTest, OfNothingIsZero) {
  const m::Metric missing = m::RecallAtK(s_, labels_, scores_, 2, {.class_id = 17});
  const m::Metric none = m::AveragePrecisionAtK(s_, ops::Sub(s_, labels_, int64_t{9}), scores_, 2);
  Start();
  EXPECT_EQ(Number(missing.update, Batch(0)), 0);
  EXPECT_EQ(Number(none.update, Batch(0)), 0);
}

TEST_F(KBestTest, VariablesAreTheMetrics) {
  m::Covariance(s_, truth_, guess_);
  const std::vector<std::string> of_metrics = s_.graph()->Collection(collections::kMetricVariables);
  EXPECT_EQ(of_metrics, s_.graph()->Collection(collections::kLocalVariables));
  EXPECT_EQ(of_metrics.size(), 4u);
}

TEST_F(KBestTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const std::string& says, const std::function<void(const Scope&)>& add) {
    const Scope s = Scope::NewRoot();
    add(s);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(says));
  };
  const auto labels = [](const Scope& s, const PartialShape& shape) {
    return ops::Placeholder(s, ElementType::kInt64, {.shape = shape});
  };
  refused("k must be positive", [&](const Scope& s) {
    m::RecallAtK(s, labels(s, {-1}), Const(s, WaveOf({4, 5})), 0);
  });
  refused("labels of rank 3", [&](const Scope& s) {
    m::PrecisionAtK(s, labels(s, {-1, 1, 1}), Const(s, WaveOf({4, 5})), 2);
  });
  refused("labels of rank 1", [&](const Scope& s) {
    m::AveragePrecisionAtK(s, labels(s, {-1}), Const(s, WaveOf({5})), 2);
  });
}

}  // namespace
}  // namespace troupe
