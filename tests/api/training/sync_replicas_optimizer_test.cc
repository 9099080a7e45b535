#include "api/training/sync_replicas_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/troupe.h"
#include "tests/api/training/replicas.h"

namespace troupe {
namespace {

std::unique_ptr<Optimizer> Descent() { return std::make_unique<GradientDescentOptimizer>(0.1); }

std::vector<double> Values(const Tensor& tensor) {
  const auto values = tensor.unchecked_values<double>();
  return {values.begin(), values.end()};
}

/// w and b after `steps` steps of one process with batches of `rows` rows.
std::vector<double> TrainAlone(const OptimizerMaker& make, int steps, int rows) {
  const Scope s = Scope::NewRoot();
  const LinearModel model(s);
  auto optimizer = make();
  Node* train = optimizer->Minimize(s, model.loss, model.step);
  Node* init = GlobalVariablesInitializer(s);
  EXPECT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  EXPECT_TRUE(session->RunTargets({init}).ok());
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(session->RunTargets({train}, Batch(model, i, 0, rows)).ok());
  }
  auto values = session->Run({model.w.value(), model.b.value()});
  EXPECT_TRUE(values.ok());
  std::vector<double> all = Values((*values)[0]);
  all.push_back((*values)[1].unchecked_values<double>()[0]);
  return all;
}

TEST(SyncReplicasOptimizer, PartsOfABatchAreTheWhole) {
  const std::vector<OptimizerMaker> makers = {
      Descent, [] { return std::make_unique<MomentumOptimizer>(0.05, 0.9); },
      [] { return std::make_unique<AdamOptimizer>(0.1, 0.9, 0.999, 1e-8); }};
  constexpr int kSteps = 25, kRows = 12;
  for (const auto& make : makers) {
    for (const int n : {1, 2, 3}) {
      const std::vector<double> expected = TrainAlone(make, kSteps, kRows);
      auto replicas = MakeReplicas(n, make, {.replicas_to_aggregate = n});
      auto updates = replicas[0]->StartUpdates();
      ASSERT_NE(updates, nullptr);
      std::vector<std::thread> threads;
      for (int r = 0; r < n; ++r) {
        threads.emplace_back([&, r] {
          for (int i = 0; i < kSteps; ++i) {
            const absl::Status status = replicas[r]->Train(i, r * kRows / n, (r + 1) * kRows / n);
            ASSERT_TRUE(status.ok()) << status;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_TRUE(updates->Stop().ok());
      std::vector<double> got = Values(replicas[0]->Value("w"));
      got.push_back(replicas[n - 1]->Value("b").unchecked_values<double>()[0]);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
      EXPECT_EQ(replicas[0]->GlobalStepNow(), kSteps);
    }
  }
}

TEST(SyncReplicasOptimizer, OneReplicaMayGiveSeveralGradients) {
  auto replicas = MakeReplicas(1, Descent, {.replicas_to_aggregate = 3, .total_num_replicas = 1});
  auto updates = replicas[0]->StartUpdates();
  // Three runs of four rows are a step: the batch of twelve.
  for (int i = 0; i < 5; ++i) {
    for (int part = 0; part < 3; ++part) {
      ASSERT_TRUE(replicas[0]->Train(i, part * 4, part * 4 + 4).ok());
    }
  }
  EXPECT_TRUE(updates->Stop().ok());
  const std::vector<double> expected = TrainAlone(Descent, 5, 12);
  EXPECT_EQ(replicas[0]->GlobalStepNow(), 5);
  EXPECT_NEAR(replicas[0]->Value("b").unchecked_values<double>()[0], expected[2], 1e-12);
}

TEST(SyncReplicasOptimizer, StaleGradientsAreDropped) {
  auto replicas = MakeReplicas(2, Descent, {.replicas_to_aggregate = 1, .total_num_replicas = 2});
  auto updates = replicas[0]->StartUpdates();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(replicas[0]->Train(i, 0, 6).ok());
  ASSERT_EQ(replicas[1]->LocalStepNow(), 0);
  const std::vector<double> before = Values(replicas[0]->Value("w"));
  // Its gradient, of step 0, comes too late; tokens of steps 1 to 3 have been left over.
  ASSERT_TRUE(replicas[1]->Train(100, 0, 6).ok());
  EXPECT_EQ(replicas[1]->LocalStepNow(), 4);
  EXPECT_EQ(replicas[1]->GlobalStepNow(), 4);
  EXPECT_EQ(Values(replicas[0]->Value("w")), before);
  // Now it has caught up.
  ASSERT_TRUE(replicas[1]->Train(4, 0, 6).ok());
  EXPECT_EQ(replicas[1]->GlobalStepNow(), 5);
  EXPECT_NE(Values(replicas[0]->Value("w")), before);
  EXPECT_NEAR(Values(replicas[0]->Value("w"))[0], TrainAlone(Descent, 5, 6)[0], 1e-12);
}

TEST(SyncReplicasOptimizer, NobodyWaitsForBackupWorkers) {
  auto replicas = MakeReplicas(3, Descent, {.replicas_to_aggregate = 2, .total_num_replicas = 3});
  auto updates = replicas[0]->StartUpdates();
  constexpr int kSteps = 20;
  const auto train = [&](int r, int64_t until) {
    while (replicas[r]->LocalStepNow() < until) {
      const absl::Status status = replicas[r]->Train(0, r * 4, r * 4 + 4);
      ASSERT_TRUE(status.ok()) << status;
    }
  };
  {
    std::thread other([&] { train(1, kSteps); });
    train(0, kSteps);
    other.join();
  }
  EXPECT_GE(replicas[0]->GlobalStepNow(), kSteps);
  // The third comes late, works with one of the others, and does not work on old steps.
  {
    std::thread other([&] { train(1, 2 * kSteps); });
    train(2, 2 * kSteps);
    other.join();
  }
  EXPECT_GE(replicas[0]->GlobalStepNow(), 2 * kSteps);
  EXPECT_TRUE(updates->Stop().ok());
}

TEST(SyncReplicasOptimizer, AChiefMayBeReplaced) {
  auto replicas = MakeReplicas(2, Descent, {.replicas_to_aggregate = 2});
  constexpr int kLives = 4, kSteps = 5;
  for (int life = 0; life < kLives; ++life) {
    auto updates = replicas[life % 2]->StartUpdates();
    std::vector<std::thread> threads;
    const int64_t until = replicas[0]->GlobalStepNow() + kSteps;
    for (auto& replica : replicas) {
      threads.emplace_back([&replica, until] {
        while (replica->LocalStepNow() < until) {
          const absl::Status status = replica->Train(0, 0, 6);
          ASSERT_TRUE(status.ok()) << status;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(updates->Stop().ok());
  }
  EXPECT_GE(replicas[0]->GlobalStepNow(), kLives * kSteps);
}

TEST(SyncReplicasOptimizer, RowsAreTheMeanOfThoseThatHaveThem) {
  SessionOptions session_options;
  session_options.num_cpu_devices = 3;
  auto owner = *Session::Create(std::make_shared<Graph>(), session_options);
  session_options.runtime = owner->runtime();
  struct Half {
    Scope s = Scope::NewRoot();
    Output ids;
    Node *train = nullptr, *init = nullptr;
    std::unique_ptr<SyncReplicasOptimizer> sync;
    std::unique_ptr<Session> session;
  };
  std::vector<Half> halves(2);
  ModelVariable table;
  for (int r = 0; r < 2; ++r) {
    Half& half = halves[r];
    half.s = ReplicaScope(r + 1);
    table = ModelVariable(half.s, {6, 2}, ZerosInitializer(), "table", true, ElementType::kDouble);
    half.ids = ops::Placeholder(half.s, ElementType::kInt32, {.shape = PartialShape({-1})});
    // The gradient of a row is how often it is looked up, times r + 1.
    const Output rows = EmbeddingLookup(half.s, table, half.ids);
    const Output loss = ops::Mul(half.s, ReduceSum(half.s, rows), 1.0 + r);
    half.sync = std::make_unique<SyncReplicasOptimizer>(
        std::make_unique<GradientDescentOptimizer>(1.0),
        SyncReplicasOptions{.replicas_to_aggregate = 2, .replica = r});
    half.train = half.sync->Minimize(half.s, loss, GlobalStep(half.s));
    half.init = GlobalVariablesInitializer(half.s);
    ASSERT_TRUE(half.s.ok()) << half.s.status();
    half.session = *Session::Create(half.s.graph(), session_options);
  }
  Session& first = *halves[0].session;
  ASSERT_TRUE(first.RunTargets({halves[0].init}).ok());
  ASSERT_TRUE(first.RunTargets({halves[0].sync->chief_init()}).ok());
  std::vector<std::thread> threads;
  const std::vector<std::vector<int32_t>> ids = {{5, 1, 5, 3}, {3, 0, 1, 1}};
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Half& half = halves[r];
      ASSERT_TRUE(half.session->RunTargets({half.sync->local_init()}).ok());
      const absl::Status status = half.session->RunTargets(
          {half.train}, {{half.ids, Tensor::Vector<int32_t>(absl::MakeConstSpan(ids[r]))}});
      ASSERT_TRUE(status.ok()) << status;
    });
  }
  const absl::Status status = first.RunTargets({halves[0].sync->sync()});
  EXPECT_TRUE(status.ok()) << status;
  for (std::thread& thread : threads) thread.join();
  std::vector<Tensor> values;
  ASSERT_TRUE(first.Run({}, {"table/read:0"}, {}, &values).ok());
  // Row 0: only the second, 2. Row 1: (1 + 4) / 2. Row 3: (1 + 2) / 2. Row 5: only the first, 2.
  EXPECT_EQ(Values(values[0]),
            std::vector<double>({-2, -2, -2.5, -2.5, 0, 0, -1.5, -1.5, 0, 0, -2, -2}));
}

TEST(SyncReplicasOptimizer, RefusesWhatCannotBe) {
  const auto error = [](std::unique_ptr<Optimizer> wrapped, SyncReplicasOptions options,
                        bool with_step) {
    const Scope s = Scope::NewRoot();
    const LinearModel model(s);
    SyncReplicasOptimizer optimizer(std::move(wrapped), options);
    EXPECT_EQ(optimizer.Minimize(s, model.loss, with_step ? model.step : ModelVariable()), nullptr);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << s.status();
    return std::string(s.status().message());
  };
  EXPECT_THAT(error(Descent(), {.replicas_to_aggregate = 2}, false),
              testing::HasSubstr("global step"));
  EXPECT_THAT(error(Descent(), {.replicas_to_aggregate = 0}, true),
              testing::HasSubstr("at least 1"));
  EXPECT_THAT(error(Descent(), {.replicas_to_aggregate = 1, .total_num_replicas = -1}, true),
              testing::HasSubstr("at least 1"));
  EXPECT_THAT(error(nullptr, {.replicas_to_aggregate = 1}, true),
              testing::HasSubstr("no optimizer"));
  EXPECT_THAT(error(Descent(), {.replicas_to_aggregate = 2, .replica = 2}, true),
              testing::HasSubstr("replica 2 (from 0) of 2"));
  // A loss that depends on no variable.
  const Scope s = Scope::NewRoot();
  SyncReplicasOptimizer optimizer(Descent(), {});
  EXPECT_EQ(optimizer.Minimize(s, Const(s, 1.0), GlobalStep(s)), nullptr);
  EXPECT_FALSE(s.ok());
}

TEST(SyncReplicasOptimizer, KnowsTheSlotsOfTheOther) {
  const Scope s = Scope::NewRoot();
  const LinearModel model(s);
  SyncReplicasOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.1, 0.9), {});
  optimizer.Minimize(s, model.loss, model.step);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(optimizer.GetSlot(model.w, "momentum").name(), "w/Momentum");
  EXPECT_THAT(optimizer.SlotNames(), testing::ElementsAre("momentum"));
  // Its own state is no model's: it is in no checkpoint.
  for (const std::string& name : s.graph()->Collection(collections::kVariables)) {
    EXPECT_THAT(name, testing::Not(testing::HasSubstr("sync_replicas")));
  }
}

}  // namespace
}  // namespace troupe
