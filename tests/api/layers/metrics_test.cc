// Against numbers that TensorFlow 2.21's tf.compat.v1.metrics gave for the same two batches.
#include "api/layers/metrics.h"

#include <gmock/gmock.h>

#include "api/collections.h"
#include "api/layers/correlation.h"
#include "api/variable_scope.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class MetricsTest : public RecordedTest {
 protected:
  const Output classes_ = Fed({-1}, ElementType::kInt64);
  const Output guesses_ = Fed({-1}, ElementType::kInt64);
  const Output truth_ = Fed({-1}, ElementType::kInt64);
  const Output scores_ = Fed({-1});
  const Output weights_ = Fed({-1});

  FeedMap Batch(int i) const {
    const std::vector<int64_t> classes[] = {{1, 0, 2, 1}, {2, 2, 0, 1}};
    const std::vector<int64_t> guesses[] = {{1, 1, 2, 0}, {2, 1, 0, 1}};
    const std::vector<int64_t> truth[] = {{1, 0, 1, 1}, {0, 0, 1, 0}};
    const std::vector<float> scores[] = {{.9f, .8f, .3f, .6f}, {.1f, .4f, .55f, .7f}};
    const std::vector<float> weights[] = {{1, .5f, 2, 1}, {0, 1, 1, .25f}};
    return {{classes_, Tensor::Vector<int64_t>(classes[i])},
            {guesses_, Tensor::Vector<int64_t>(guesses[i])},
            {truth_, Tensor::Vector<int64_t>(truth[i])},
            {scores_, Tensor::Vector<float>(scores[i])},
            {weights_, Tensor::Vector<float>(weights[i])}};
  }
};

TEST_F(MetricsTest, OverTwoBatches) {
  struct Row {
    const char* name;
    metrics::Metric metric;
    std::vector<float> after_one, after_two;
  };
  const Output positive = ops::Greater(s_, scores_, 0.5f);
  const Output normalizer = ops::Add(s_, scores_, 1.0f);
  const Input w{weights_};
  namespace m = metrics;
  const std::vector<Row> rows = {
      {"accuracy", m::Accuracy(s_, classes_, guesses_), {.5f}, {.625f}},
      {"weighted accuracy", m::Accuracy(s_, classes_, guesses_, w), {.6666667f}, {.6296296f}},
      {"mean", m::Mean(s_, scores_), {.65f}, {.54375f}},
      {"weighted mean", m::Mean(s_, scores_, w), {.5555556f}, {.537037f}},
      {"precision", m::Precision(s_, truth_, positive, w), {.8f}, {.8f}},
      {"recall", m::Recall(s_, truth_, positive, w), {.5f}, {.6f}},
      {"true positives", m::TruePositives(s_, truth_, positive, w), {2}, {3}},
      {"false positives", m::FalsePositives(s_, truth_, positive, w), {.5f}, {.75f}},
      {"true negatives", m::TrueNegatives(s_, truth_, positive, w), {0}, {1}},
      {"false negatives", m::FalseNegatives(s_, truth_, positive, w), {2}, {2}},
      {"squared error", m::MeanSquaredError(s_, truth_, scores_, w), {.3266667f}, {.2896296f}},
      {"root", m::RootMeanSquaredError(s_, truth_, scores_, w), {.5715475f}, {.5381725f}},
      {"absolute error", m::MeanAbsoluteError(s_, truth_, scores_, w), {.5111111f}, {.4925926f}},
      {"relative error",
       m::MeanRelativeError(s_, scores_, truth_, normalizer, w),
       {.3559504f},
       {.3378896f}},
      {"area, ROC", m::Auc(s_, truth_, scores_, m::Curve::kRoc, 200, w), {.2499997f}, {.4285713f}},
      {"area, PR",
       m::Auc(s_, truth_, scores_, m::Curve::kPrecisionRecall, 200, w,
              m::Summation::kCarefulInterpolation),
       {.8626735f},
       {.7626898f}},
      {"below", m::PercentageBelow(s_, scores_, .5, w), {.4444444f}, {.4444444f}},
      {"precisions",
       m::PrecisionAtThresholds(s_, truth_, scores_, {.2f, .5f, .65f}, w),
       {.8888889f, .8f, .6666666f},
       {.7407407f, .8f, .5714285f}},
      {"recalls",
       m::RecallAtThresholds(s_, truth_, scores_, {.2f, .5f, .65f}, w),
       {1, .5f, .25f},
       {1, .6f, .2f}},
      {"sensitivity", m::SensitivityAtSpecificity(s_, truth_, scores_, .6, 200, w), {.25f}, {.6f}},
      {"specificity",
       m::SpecificityAtSensitivity(s_, truth_, scores_, .6, 200, w),
       {0},
       {.5714285f}},
      {"accuracies of classes",
       m::MeanPerClassAccuracy(s_, classes_, guesses_, 3, w),
       {0, .5f, 1},
       {.6666667f, .5555556f, .6666667f}},
  };
  const metrics::Metric iou = metrics::MeanIou(s_, classes_, guesses_, 3, w);
  Start();
  const auto check = [&](const Row& row, const Output& output, const std::vector<float>& expected,
                         const FeedMap& feeds) {
    const std::vector<float> got = Numbers(output, feeds);
    ASSERT_EQ(got.size(), expected.size()) << row.name;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6) << row.name;
  };
  for (const Row& row : rows) {
    check(row, row.metric.update, row.after_one, Batch(0));
    check(row, row.metric.update, row.after_two, Batch(1));
    if (row.name != std::string("accuracies of classes")) {
      check(row, row.metric.value, row.after_two, {});
    }
  }
  EXPECT_NEAR(Number(rows.back().metric.value), .6296296f, 2e-6);
  Value(iou.update, Batch(0));
  const Tensor matrix = Value(iou.update, Batch(1));
  const auto cells = matrix.unchecked_values<double>();
  const std::vector<double> expected = {1, .5, 0, 1, 1.25, 0, 0, 1, 2};
  EXPECT_EQ(std::vector<double>(cells.begin(), cells.end()), expected);
  EXPECT_NEAR(Number(iou.value), .4666667f, 2e-6);
}

TEST_F(MetricsTest, AreasAreAddedUpInEachWay) {
  namespace m = metrics;
  const std::pair<const char*, m::Curve> curves[] = {{"ROC", m::Curve::kRoc},
                                                     {"PR", m::Curve::kPrecisionRecall}};
  const std::pair<const char*, m::Summation> ways[] = {
      {"trapezoidal", m::Summation::kTrapezoidal},
      {"careful_interpolation", m::Summation::kCarefulInterpolation},
      {"minoring", m::Summation::kMinoring},
      {"majoring", m::Summation::kMajoring}};
  std::vector<std::pair<std::string, m::Metric>> areas;
  for (const auto& [curve_name, curve] : curves) {
    for (const auto& [way_name, way] : ways) {
      const std::string name = StrCat("metrics/auc_", curve_name, "/", way_name);
      areas.emplace_back(name, m::Auc(s_, truth_, scores_, curve, 5, std::nullopt, way));
      areas.emplace_back(name + "/weighted",
                         m::Auc(s_, truth_, scores_, curve, 5, Input(weights_), way));
    }
  }
  areas.emplace_back("metrics/auc_PR/default",
                     m::Auc(s_, truth_, scores_, m::Curve::kPrecisionRecall));
  Start();
  FeedMap first_batch = Batch(0);
  ASSERT_EQ(first_batch.back().first, weights_);
  first_batch.back().second = Tensor::Vector<float>({1, .5f, 2, 0});
  for (const auto& [name, area] : areas) {
    const float first = Number(area.update, first_batch), second = Number(area.update, Batch(1));
    ExpectRecorded(name, Tensor::Vector<float>({first, second}), 2e-6);
    EXPECT_EQ(Number(area.value), second) << name;
  }
}

/// Labels, predictions and weights of 3 examples as vectors and as columns, in graphs that know
/// their shapes, their ranks, and nothing of them. What tf.metrics gives for each is the same.
TEST_F(MetricsTest, ColumnsAreVectors) {
  namespace m = metrics;
  const std::vector<float> truth = {1, 0, 1}, guess = {.75f, .5f, 0}, weight = {1, 2, .5f};
  struct Row {
    m::Metric metric;
    float expected;
  };
  for (const char* known : {"all", "rank", "nothing"}) {
    for (int columns = 0; columns < 8; ++columns) {
      SCOPED_TRACE(StrCat(known, " known, columns ", columns));
      FeedMap feeds;
      const auto given = [&](const std::vector<float>& values, int bit) {
        const Shape shape = columns & bit ? Shape{3, 1} : Shape{3};
        PartialShape of = shape;
        if (known == std::string("rank"))
          of = columns & bit ? PartialShape{-1, -1} : PartialShape{-1};
        if (known == std::string("nothing")) of = PartialShape();
        const Output fed = Fed(of);
        feeds.emplace_back(fed, Floats(values, shape));
        return fed;
      };
      const Output y = given(truth, 1), p = given(guess, 2);
      const Input w{given(weight, 4)};
      const Output by = ops::Add(s_, p, 1.0f);
      const Row rows[] = {
          {m::Mean(s_, p, w), 1.75f / 3.5f},
          {m::Accuracy(s_, y, ops::Round(s_, p), w), 3 / 3.5f},
          {m::MeanSquaredError(s_, y, p, w), 1.0625f / 3.5f},
          {m::RootMeanSquaredError(s_, y, p, w), std::sqrt(1.0625f / 3.5f)},
          {m::MeanAbsoluteError(s_, y, p, w), 1.75f / 3.5f},
          {m::MeanRelativeError(s_, y, p, by, w), (.25f / 1.75f + 2 / 3.0f + .5f) / 3.5f},
          {m::PercentageBelow(s_, p, .6, w), 2.5f / 3.5f},
          {m::TruePositives(s_, y, p, w), 1},
          {m::FalsePositives(s_, y, p, w), 2},
          {m::FalseNegatives(s_, y, p, w), .5f},
          {m::Precision(s_, y, p, w), 1 / 3.0f},
          {m::Recall(s_, y, p, w), 1 / 1.5f},
          {m::FalsePositivesAtThresholds(s_, y, p, {.25f}, w), 2},
          {m::PrecisionAtThresholds(s_, y, p, {.25f}, w), 1 / 3.0f},
          {m::Auc(s_, y, p, m::Curve::kRoc, 5, w), 2 / 3.0f},
          {m::Covariance(s_, y, p, w), (1 * .75f + 2 * 0 + 0 - 1.5f * 1.75f / 3.5f) / 2.5f},
      };
      Start();
      for (size_t i = 0; i < std::size(rows); ++i) {
        const std::vector<float> got = Numbers(rows[i].metric.update, feeds);
        ASSERT_EQ(got.size(), 1u) << i;
        EXPECT_NEAR(got[0], rows[i].expected, 3e-6) << i;
      }
    }
  }
}

TEST_F(MetricsTest, ShapesThatDoNotFitAreRefused) {
  namespace m = metrics;
  using Add = std::function<void(const Scope&, const Output&, const Output&, const Input&)>;
  const std::vector<Add> all = {[](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::Accuracy(s, y, p, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::MeanSquaredError(s, y, p, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::MeanCosineDistance(s, y, p, 0, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::Recall(s, y, p, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::TrueNegatives(s, y, p, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::Auc(s, y, p, m::Curve::kRoc, 5, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::MeanIou(s, y, p, 2, w); },
                                [](const Scope& s, const Output& y, const Output& p,
                                   const Input& w) { m::Covariance(s, y, p, w); }};
  const auto refused = [](const Add& add, const PartialShape& labels,
                          const PartialShape& predictions, const PartialShape& weights) {
    const Scope s = Scope::NewRoot();
    const auto fed = [&](const PartialShape& shape) {
      return ops::Placeholder(s, ElementType::kFloat, {.shape = shape});
    };
    add(s, fed(labels), fed(predictions), fed(weights));
    return s.status().code() == absl::StatusCode::kInvalidArgument;
  };
  const PartialShape scalar{Shape()};
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(refused(all[i], {2, 3}, {1, 3}, scalar));
    EXPECT_TRUE(refused(all[i], {3}, {2, 3}, scalar));
    EXPECT_TRUE(refused(all[i], {1}, {3}, scalar));
    EXPECT_TRUE(refused(all[i], {-1, 2}, {-1}, scalar));
    EXPECT_TRUE(refused(all[i], {3, 2}, {3, 2}, {2, 2}));
    EXPECT_TRUE(refused(all[i], {3, 2}, {3, 2}, {2}));
    EXPECT_FALSE(refused(all[i], {3, -1}, {-1, 2}, scalar));
  }
  const Output y = Fed(PartialShape()), p = Fed({-1, -1}), w = Fed(PartialShape());
  const m::Metric accuracy = m::Accuracy(s_, y, p, Input(w));
  Start();
  const auto code = [&](const Shape& labels, const Shape& weights) {
    const auto ones = [](const Shape& shape) {
      return Floats(std::vector<float>(static_cast<size_t>(shape.num_elements()), 1), shape);
    };
    return session_
        ->Run({{y, ones(labels)}, {p, ones({2, 3})}, {w, ones(weights)}}, {accuracy.update})
        .status()
        .code();
  };
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 1}}) {
    for (const Shape& weights : {Shape{}, Shape{2}, Shape{1}, Shape{1, 3}, Shape{2, 3, 1}}) {
      EXPECT_EQ(code(shape, weights), absl::StatusCode::kOk) << weights.ToString();
    }
    for (const Shape& weights : {Shape{3}, Shape{3, 3}, Shape{2, 3, 2}, Shape{1, 1, 2, 3}}) {
      EXPECT_EQ(code(shape, weights), absl::StatusCode::kInvalidArgument) << weights.ToString();
    }
  }
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{1, 3}, Shape{2, 3, 2}, Shape{3, 2}}) {
    EXPECT_EQ(code(shape, {}), absl::StatusCode::kInvalidArgument) << shape.ToString();
  }
}

TEST_F(MetricsTest, VariablesAreNoneOfTheScope) {
  int asked = 0;
  const VariableScopeOptions options = {
      .initializer = ConstantInitializer(7),
      .regularizer = L2Regularizer(1),
      .constraint = NonNegative(),
      .partitioner = FixedSizePartitioner(2),
      .type = ElementType::kDouble,
      .getter = [&](const Scope& scope, const VariableRequest& request, const auto& next) {
        ++asked;
        return next(scope, request);
      }};
  const Scope net = VariableScope(s_, "net", options);
  const metrics::Metric first = metrics::Mean(net, scores_);
  const Scope again = VariableScope(s_, "net", {.reuse = Reuse::kYes});
  const metrics::Metric second = metrics::Mean(again, scores_);
  const metrics::Metric recall = metrics::RecallAtThresholds(again, truth_, scores_, {.1f, .5f});
  Start();
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(RegularizationLosses(s_).empty());
  EXPECT_TRUE(s_.variable_store().constraints.empty());
  EXPECT_TRUE(s_.graph()->Collection(collections::kVariables).empty());
  const std::vector<std::string> names = s_.graph()->Collection(collections::kMetricVariables);
  EXPECT_EQ(names, s_.graph()->Collection(collections::kLocalVariables));
  ASSERT_EQ(names.size(), 8u);
  EXPECT_EQ(names[0], "net/mean/total/handle");
  EXPECT_EQ(names[2], "net/mean_1/total/handle");
  EXPECT_NEAR(Number(first.update, Batch(0)), .65f, 1e-6);
  EXPECT_EQ(Number(second.value), 0);
  EXPECT_NEAR(Number(second.update, Batch(1)), .4375f, 1e-6);
  EXPECT_EQ(Numbers(recall.value).size(), 2u);
}

TEST_F(MetricsTest, OfElementsAndOfNothing) {
  const Output pairs = Fed({2});
  const metrics::Metric mean = metrics::MeanTensor(s_, pairs);
  const metrics::Metric nothing = metrics::Mean(s_, scores_);
  const metrics::Metric area = metrics::Auc(s_, truth_, scores_);
  Start();
  Value(mean.update, {{pairs, Tensor::Vector<float>({1, 10})}});
  EXPECT_EQ(Numbers(mean.update, {{pairs, Tensor::Vector<float>({3, 40})}}),
            std::vector<float>({2, 25}));
  EXPECT_EQ(Number(nothing.value), 0);
  EXPECT_EQ(Number(area.value), 0);
}

TEST_F(MetricsTest, LabelsOutsideOfTheClassesAreErrors) {
  const metrics::Metric iou = metrics::MeanIou(s_, classes_, guesses_, 2);
  Start();
  const auto run = session_->Run(Batch(0), {iou.update});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument) << run.status();
  metrics::Auc(s_, truth_, scores_, metrics::Curve::kRoc, 1);
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("1 thresholds"));
}

}  // namespace
}  // namespace troupe
