// Workers and parameter servers as processes, which are killed and started again while they train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/training/replicas.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

/// `troupe worker`, serving. Killed at the end.
class TaskProcess : public TroupeProcess {
 public:
  TaskProcess(const std::string& file, const std::string& job, int task)
      : TroupeProcess({"worker", "--cluster", file, "--job", job, "--task", std::to_string(task),
                       "--threads", "1", "--heartbeat-timeout", "3"}) {
    EXPECT_THAT(Line(), testing::StartsWith("ready troupe://"));
  }
};

/// A parameter server and two workers, each with a client that trains.
class TrainingProcesses : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    cluster_ = *ClusterSpec::Create(
        {{"ps", {host + std::to_string(FreePort())}},
         {"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
    file_ = testing::TempDir() + "/training_" + std::to_string(getpid()) + ".json";
    std::ofstream(file_) << cluster_.ToJson();
    ps_ = Start("ps", 0);
    for (int i = 0; i < 2; ++i) workers_[i] = Start("worker", i);
  }
  void TearDown() override {
    until_ = 0;
    for (std::thread& client : clients_) client.join();
    std::filesystem::remove(file_);
  }
  std::unique_ptr<TaskProcess> Start(const std::string& job, int task) {
    return std::make_unique<TaskProcess>(file_, job, task);
  }
  void StartClients(int replicas_to_aggregate) {
    for (int i = 0; i < 2; ++i) {
      clients_.emplace_back([this, i, replicas_to_aggregate] { Train(i, replicas_to_aggregate); });
    }
  }

  /// What a worker's program does.
  void Train(int task, int replicas_to_aggregate) {
    const Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(cluster_, task));
    const LinearModel model(s);
    auto descent = std::make_unique<GradientDescentOptimizer>(0.1);
    std::unique_ptr<SyncReplicasOptimizer> sync;
    Node* train = nullptr;
    if (GetParam()) {
      sync = std::make_unique<SyncReplicasOptimizer>(
          std::move(descent), SyncReplicasOptions{.replicas_to_aggregate = replicas_to_aggregate,
                                                  .total_num_replicas = 2});
      train = sync->Minimize(s, model.loss, model.step);
    } else {
      train = descent->Minimize(s, model.loss, model.step);
    }
    const Output step = model.step.Read(s.WithControlDependencies({Output(train)}));
    RecoverableSessionOptions options;
    options.session.target = "troupe://" + *cluster_.Address({"worker", task});
    options.session.device_filters = {"/job:ps", "/job:worker/task:" + std::to_string(task)};
    options.init = task == 0 ? GlobalVariablesInitializer(s) : nullptr;
    options.uninitialized = ReportUninitializedVariables(s);
    options.local_init = sync != nullptr ? sync->local_init() : nullptr;
    ASSERT_TRUE(s.ok()) << s.status();
    auto session = RecoverableSession::Create(s.graph(), options);
    ASSERT_TRUE(session.ok()) << task << ": " << session.status();
    std::unique_ptr<BackgroundSteps> updates;
    if (sync != nullptr && task == 0) {
      options.init = nullptr;
      options.local_init = sync->chief_init();
      auto started = BackgroundSteps::Start(s.graph(), options, sync->sync());
      ASSERT_TRUE(started.ok()) << started.status();
      updates = *std::move(started);
    }
    RunOptions run;
    run.timeout = kPatience;
    for (int64_t now = 0; now < until_; ++steps_[task]) {
      const int number = steps_[task];
      const absl::Status status = (*session)->Run([&](Session& current) {
        auto values = current.Run(Batch(model, number, task * 6, task * 6 + 6),
                                  {step, model.loss, model.w.value()}, {train}, run);
        if (!values.ok()) return values.status();
        now = (*values)[0].unchecked_scalar<int64_t>();
        loss_[task] = (*values)[1].unchecked_scalar<double>();
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << task << ": " << status
                               << (updates == nullptr ? absl::OkStatus() : updates->status());
      global_step_ = now;
      sessions_[task] = (*session)->num_sessions();
    }
  }

  /// Until a client has made `more` steps than now.
  void WaitForSteps(int task, int more) {
    const int enough = steps_[task] + more;
    const absl::Time end = absl::Now() + kPatience;
    while (steps_[task] < enough && absl::Now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // Clients train on their own.
    }
    EXPECT_GE(steps_[task], enough) << "worker " << task << " makes no progress";
  }
  /// Clients end after some more updates, and have learned.
  void Finish() {
    until_ = global_step_ + 150;
    for (std::thread& client : clients_) client.join();
    clients_.clear();
    EXPECT_LT(loss_[0], 1e-2);
    EXPECT_LT(loss_[1], 1e-2);
  }

  ClusterSpec cluster_;
  std::string file_;
  std::unique_ptr<TaskProcess> ps_, workers_[2];
  std::vector<std::thread> clients_;
  std::atomic<int64_t> until_ = INT64_MAX, global_step_ = 0;
  std::atomic<int> steps_[2] = {0, 0}, sessions_[2] = {0, 0};
  std::atomic<double> loss_[2] = {1, 1};
};

TEST_P(TrainingProcesses, TwoWorkersTrain) {
  StartClients(2);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  Finish();
  EXPECT_EQ(sessions_[0], 1);
  EXPECT_EQ(sessions_[1], 1);
}

TEST_P(TrainingProcesses, AWorkerIsKilledAndStartedAgain) {
  StartClients(2);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  workers_[1].reset();
  if (!GetParam()) WaitForSteps(0, 20);  // Who does not wait for others goes on.
  workers_[1] = Start("worker", 1);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  Finish();
  EXPECT_EQ(sessions_[0], 1);
  EXPECT_GE(sessions_[1], 2);
}

TEST_P(TrainingProcesses, TheChiefsTaskIsKilledAndStartedAgain) {
  StartClients(2);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  workers_[0].reset();
  workers_[0] = Start("worker", 0);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  Finish();
}

TEST_P(TrainingProcesses, TheParameterServerIsKilledAndStartedAgain) {
  StartClients(2);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  ps_.reset();
  ps_ = Start("ps", 0);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  Finish();
  EXPECT_GE(sessions_[0], 2);
}

INSTANTIATE_TEST_SUITE_P(Modes, TrainingProcesses, testing::Bool(),
                         [](const auto& info) { return info.param ? "Sync" : "Async"; });

class BackupWorkers : public TrainingProcesses {};

TEST_P(BackupWorkers, ADeadWorkerIsNotMissed) {
  StartClients(1);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 10);
  workers_[1].reset();
  WaitForSteps(0, 50);
  workers_[1] = Start("worker", 1);
  for (int i = 0; i < 2; ++i) WaitForSteps(i, 20);
  Finish();
}

INSTANTIATE_TEST_SUITE_P(Modes, BackupWorkers, testing::Values(true));

}  // namespace
}  // namespace troupe
