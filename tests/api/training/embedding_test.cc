// Look-ups in tables, sampled losses, and the sparse gradients of both.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "api/troupe.h"

namespace troupe {
namespace {

std::vector<double> Doubles(const Tensor& t) {
  auto span = t.unchecked_values<double>();
  return std::vector<double>(span.begin(), span.end());
}

/// A table whose row i is (10 i, 10 i + 1), spread over n variables.
std::vector<ModelVariable> Tables(const Scope& s, int rows, int n, PartitionStrategy strategy) {
  std::vector<std::vector<double>> values(n);
  for (int i = 0, first = 0, table = 0; i < rows; ++i) {
    if (strategy == PartitionStrategy::kMod) {
      table = i % n;
    } else if (i - first == rows / n + (table < rows % n)) {
      first = i;
      ++table;
    }
    values[table].push_back(10.0 * i);
    values[table].push_back(10.0 * i + 1);
  }
  std::vector<ModelVariable> tables;
  for (const auto& v : values) {
    tables.emplace_back(
        s, Const(s, *MakeTensor<double>(v, {static_cast<int64_t>(v.size()) / 2, 2})), "table");
  }
  return tables;
}

TEST(EmbeddingLookupTest, FindsRowsHoweverTheyAreSpread) {
  for (const auto strategy : {PartitionStrategy::kMod, PartitionStrategy::kDiv}) {
    for (const int n : {1, 2, 3}) {
      Scope s = Scope::NewRoot();
      const std::vector<ModelVariable> tables = Tables(s, 8, n, strategy);
      const std::vector<int64_t> ids = {7, 0, 3, 3, 5, 1};
      const Output found = EmbeddingLookup(s, tables, *MakeTensor<int64_t>(ids, {3, 2}), strategy);
      Node* init = GlobalVariablesInitializer(s);
      ASSERT_TRUE(s.ok()) << s.status();
      auto session = *Session::Create(s.graph());
      ASSERT_TRUE(session->RunTargets({init}).ok());
      auto values = session->Run({found});
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ((*values)[0].shape(), Shape({3, 2, 2}));
      const std::vector<double> got = Doubles((*values)[0]);
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(got[2 * i], 10.0 * ids[i]) << "tables " << n << " position " << i;
        EXPECT_EQ(got[2 * i + 1], 10.0 * ids[i] + 1);
      }
    }
  }
}

TEST(EmbeddingLookupTest, ShortensLongRows) {
  Scope s = Scope::NewRoot();
  const Output table = Const(s, *MakeTensor<double>(std::vector<double>{3, 4, 0.3, 0.4}, {2, 2}));
  const Output found = EmbeddingLookup(s, table, {1, 0}, 1.0);
  ASSERT_TRUE(s.ok()) << s.status();
  auto values = (*Session::Create(s.graph()))->Run({found});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(Doubles((*values)[0]),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.3, 0.4, 0.6, 0.8}));
}

TEST(EmbeddingLookupTest, ErrorsSayWhatIsWrong) {
  Scope s = Scope::NewRoot();
  EmbeddingLookup(s, std::vector<ModelVariable>(), {1});
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);

  Scope t = Scope::NewRoot();
  const Output found = EmbeddingLookup(t, Tables(t, 3, 1, PartitionStrategy::kMod), {1, 3});
  Node* init = GlobalVariablesInitializer(t);
  ASSERT_TRUE(t.ok()) << t.status();
  auto session = *Session::Create(t.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  EXPECT_EQ(session->Run({found}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EmbeddingLookupTest, AnOptimizerChangesTheRowsThatWereLookedUp) {
  // loss = sum of the rows found; row 2 is found twice.
  for (const int n : {1, 2}) {
    Scope s = Scope::NewRoot();
    const std::vector<ModelVariable> tables = Tables(s, 4, n, PartitionStrategy::kMod);
    const Output loss = ReduceSum(s, EmbeddingLookup(s, tables, {2, 0, 2}));
    AdagradOptimizer optimizer(1.0, 0.0);
    const auto gradients = optimizer.ComputeGradients(s, loss);
    ASSERT_TRUE(s.ok()) << s.status();
    for (const auto& [gradient, variable] : gradients) EXPECT_TRUE(gradient.sparse());
    Node* train = optimizer.ApplyGradients(s, gradients);
    const Output all = EmbeddingLookup(s, tables, {0, 1, 2, 3});
    Node* init = GlobalVariablesInitializer(s);
    ASSERT_TRUE(s.ok()) << s.status();
    auto session = *Session::Create(s.graph());
    ASSERT_TRUE(session->RunTargets({init}).ok());
    const absl::Status status = session->RunTargets({train});
    ASSERT_TRUE(status.ok()) << status;
    auto values = session->Run({all});
    ASSERT_TRUE(values.ok()) << values.status();
    // Adagrad from 0: g / sqrt(g^2) = 1, once, also where g is 2.
    EXPECT_THAT(Doubles((*values)[0]), testing::ElementsAre(-1, 0, 10, 11, 19, 20, 30, 31));
  }
}

// --- sampled losses ---

constexpr int kClasses = 6, kDim = 2, kBatch = 2;

struct LossModel {
  LossModel() {
    for (int i = 0; i < kClasses * kDim; ++i) w.push_back(0.1f * static_cast<float>(i % 5) - 0.2f);
    for (int i = 0; i < kClasses; ++i) b.push_back(0.05f * static_cast<float>(i));
    weights = ModelVariable(s, Const(s, *MakeTensor<float>(w, {kClasses, kDim})), "weights");
    biases = ModelVariable(s, Const(s, *MakeTensor<float>(b, {kClasses})), "biases");
    inputs = Const(s, *MakeTensor<float>(x, {kBatch, kDim}));
    labels = Const(s, *MakeTensor<int64_t>(right, {kBatch, 1}));
    sample.candidates = Const(s, Tensor::Vector<int64_t>(drawn));
    sample.true_expected = Const(s, *MakeTensor<float>(true_expected, {kBatch, 1}));
    sample.sampled_expected = Const(s, Tensor::Vector<float>(sampled_expected));
  }
  double Logit(int example, int64_t k) const {
    double logit = b[k];
    for (int j = 0; j < kDim; ++j) logit += x[example * kDim + j] * w[k * kDim + j];
    return logit;
  }
  std::vector<float> Run(const Output& loss) {
    Node* init = GlobalVariablesInitializer(s);
    EXPECT_TRUE(s.ok()) << s.status();
    if (!s.ok()) return std::vector<float>(kBatch);
    auto session = *Session::Create(s.graph());
    EXPECT_TRUE(session->RunTargets({init}).ok());
    auto values = session->Run({loss});
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return std::vector<float>(kBatch);
    auto span = (*values)[0].unchecked_values<float>();
    return std::vector<float>(span.begin(), span.end());
  }

  Scope s = Scope::NewRoot();
  std::vector<float> w, b, x = {1, 2, -1, 0.5};
  std::vector<int64_t> right = {4, 1}, drawn = {1, 0, 5};
  std::vector<float> true_expected = {0.25f, 0.5f}, sampled_expected = {0.5f, 0.75f, 0.125f};
  ModelVariable weights, biases;
  Output inputs, labels;
  CandidateSample sample;
};

TEST(SampledLossTest, SoftmaxIsCrossEntropyOverTheSample) {
  for (const bool remove : {true, false}) {
    LossModel m;
    const Output loss =
        SampledSoftmaxLoss(m.s, {m.weights}, m.biases, m.labels, m.inputs, 3, kClasses,
                           {.sample = m.sample, .remove_accidental_hits = remove});
    const std::vector<float> got = m.Run(loss);
    for (int e = 0; e < kBatch; ++e) {
      const double truth = m.Logit(e, m.right[e]) - std::log(m.true_expected[e]);
      double sum = std::exp(truth);
      for (int k = 0; k < 3; ++k) {
        if (remove && m.drawn[k] == m.right[e]) continue;
        sum += std::exp(m.Logit(e, m.drawn[k]) - std::log(m.sampled_expected[k]));
      }
      EXPECT_NEAR(got[e], std::log(sum) - truth, 1e-5) << "example " << e << " remove " << remove;
    }
  }
}

TEST(SampledLossTest, NceAsksYesOrNo) {
  for (const bool remove : {true, false}) {
    LossModel m;
    const Output loss = NceLoss(m.s, {m.weights}, m.biases, m.labels, m.inputs, 3, kClasses,
                                {.sample = m.sample, .remove_accidental_hits = remove});
    const std::vector<float> got = m.Run(loss);
    for (int e = 0; e < kBatch; ++e) {
      double sum = std::log1p(std::exp(-(m.Logit(e, m.right[e]) - std::log(m.true_expected[e]))));
      for (int k = 0; k < 3; ++k) {
        if (remove && m.drawn[k] == m.right[e]) continue;
        sum += std::log1p(std::exp(m.Logit(e, m.drawn[k]) - std::log(m.sampled_expected[k])));
      }
      EXPECT_NEAR(got[e], sum, 1e-5) << "example " << e << " remove " << remove;
    }
  }
}

TEST(SampledLossTest, NceHasItsGradientWhereLogitsAreZero) {
  LossModel m;
  const Output zeros = Const(m.s, *MakeTensor<float>(std::vector<float>(4), {kBatch, kDim}));
  m.biases = ModelVariable(m.s, Const(m.s, Tensor::Vector<float>(std::vector<float>(kClasses))),
                           "no_biases");
  m.sample.true_expected = Const(m.s, *MakeTensor<float>(std::vector<float>{1, 1}, {kBatch, 1}));
  m.sample.sampled_expected = Const(m.s, Tensor::Vector<float>({1, 1, 1}));
  const Output loss =
      NceLoss(m.s, {m.weights}, m.biases, m.labels, zeros, 3, kClasses, {.sample = m.sample});
  const Output gradient = Gradients(m.s, {loss}, {zeros})[0];
  Node* init = GlobalVariablesInitializer(m.s);
  ASSERT_TRUE(m.s.ok()) << m.s.status();
  auto session = *Session::Create(m.s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  const auto values = session->Run({gradient});
  ASSERT_TRUE(values.ok()) << values.status();
  for (int e = 0; e < kBatch; ++e) {
    for (int j = 0; j < kDim; ++j) {
      float expected = -0.5f * m.w[m.right[e] * kDim + j];
      for (const int64_t k : m.drawn) expected += 0.5f * m.w[k * kDim + j];
      EXPECT_NEAR((*values)[0].unchecked_values<float>()[e * kDim + j], expected, 1e-6);
    }
  }
}

TEST(SampledLossTest, ARightClassGivenTwiceIsHitOnce) {
  LossModel m;
  const Output labels = Const(m.s, *MakeTensor<int64_t>(std::vector<int64_t>{1, 1, 4, 5}, {2, 2}));
  m.sample.true_expected =
      Const(m.s, *MakeTensor<float>(std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f}, {2, 2}));
  const Output loss = NceLoss(m.s, {m.weights}, m.biases, labels, m.inputs, 3, kClasses,
                              {.num_true = 2, .sample = m.sample, .remove_accidental_hits = true});
  for (const float value : m.Run(loss)) EXPECT_TRUE(std::isfinite(value));
}

TEST(SampledLossTest, GradientsAreSparse) {
  LossModel m;
  const Output loss = ReduceMean(
      m.s, SampledSoftmaxLoss(m.s, {m.weights}, m.biases, m.labels, m.inputs, 3, kClasses));
  AdagradOptimizer optimizer(0.1f);
  const auto gradients = optimizer.ComputeGradients(m.s, loss);
  ASSERT_TRUE(m.s.ok()) << m.s.status();
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_TRUE(gradients[0].first.sparse());
  EXPECT_TRUE(gradients[1].first.sparse());
  EXPECT_NE(optimizer.ApplyGradients(m.s, gradients), nullptr) << m.s.status();
}

TEST(CandidatesTest, AreDrawnAsOftenAsTheyPromise) {
  Scope s = Scope::NewRoot();
  s.SetGraphSeed(3);
  const Output truth = Const(s, *MakeTensor<int64_t>(std::vector<int64_t>{0, 4}, {2, 1}));
  const CandidateSample any = LogUniformCandidates(s, truth, 1, 4, 10, {.unique = false});
  const CandidateSample different = LogUniformCandidates(s, truth, 1, 4, 10);
  const CandidateSample uniform = UniformCandidates(s, truth, 1, 4, 10, {.unique = false});
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  std::vector<double> counts(10, 0), uniform_counts(10, 0);
  const int n = 3000;
  for (int i = 0; i < n; ++i) {
    auto values = session->Run({any.candidates, any.true_expected, different.candidates,
                                uniform.candidates, uniform.true_expected});
    ASSERT_TRUE(values.ok()) << values.status();
    for (const int64_t k : (*values)[0].unchecked_values<int64_t>()) {
      ASSERT_GE(k, 0);
      ASSERT_LT(k, 10);
      counts[k] += 1.0 / n;
    }
    EXPECT_NEAR((*values)[1].unchecked_values<float>()[0], 4 * std::log(2.0) / std::log(11.0),
                1e-5);
    EXPECT_NEAR((*values)[1].unchecked_values<float>()[1], 4 * std::log(6.0 / 5) / std::log(11.0),
                1e-5);
    const auto set = (*values)[2].unchecked_values<int64_t>();
    EXPECT_EQ(std::set<int64_t>(set.begin(), set.end()).size(), 4u);
    for (const int64_t k : (*values)[3].unchecked_values<int64_t>()) uniform_counts[k] += 1.0 / n;
    EXPECT_NEAR((*values)[4].unchecked_values<float>()[0], 0.4, 1e-5);
  }
  for (int k = 0; k < 10; ++k) {
    EXPECT_NEAR(counts[k], 4 * std::log((k + 2.0) / (k + 1)) / std::log(11.0), 0.06);
    EXPECT_NEAR(uniform_counts[k], 0.4, 0.06);
  }
}

}  // namespace
}  // namespace troupe
