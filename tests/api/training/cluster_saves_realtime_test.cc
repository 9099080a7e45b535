// Checkpoints of a parameter server and a worker, which are tasks of this process: asynchronous
// saves by way of a master, and trainings that survive a task that is lost and back unnoticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/devices/storage/scheme_disk.h"

namespace troupe {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class ClusterSaves : public testing::Test {
 protected:
  ClusterSaves() {
    const std::string host = "127.0.0.1:";
    options_.cluster = *ClusterSpec::Create(
        {{"ps", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}},
         {"worker", {host + std::to_string(FreePort())}}});
    options_.threads = 1;
    options_.heartbeat_timeout = absl::Seconds(2);
    options_.wait_for_workers = absl::Seconds(3);
    step_ = GlobalStep(s_);
    for (const char* name : {"v", "w"}) {
      variables_.emplace_back(s_, ops::Const(s_, Tensor::Vector<float>({0, 0, 0})), name);
    }
    std::vector<Node*> added;
    for (const ModelVariable& variable : variables_) {
      added.push_back(variable.AssignAdd(s_, Tensor::Vector<float>({1, 1, 1})));
    }
    train_ = step_.AssignAdd(s_.WithControlDependencies(added), int64_t{1});
    EXPECT_TRUE(s_.ok()) << s_.status();
    for (int i = 0; i < 3; ++i) Start(i);
  }
  ~ClusterSaves() override { std::filesystem::remove_all(folder_); }

  /// Parameter servers 0 and 1, and 2, the worker.
  void Start(int number) {
    options_.job = number < 2 ? "ps" : "worker";
    options_.task = number % 2;
    auto server = Server::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[number] = *std::move(server);
  }
  SessionOptions Target() const {
    return {.target = servers_[2]->target(), .heartbeat_timeout = options_.heartbeat_timeout};
  }
  /// Waits until the master knows the present life of a task.
  void WaitForLife(const Session& session, int number) {
    const std::string task = servers_[number]->task();
    const auto lives = [&]() -> std::vector<uint64_t> {
      std::vector<uint64_t> all;
      const auto devices = session.ListDevices();
      EXPECT_TRUE(devices.ok()) << devices.status();
      for (const DeviceAttributes& device : *devices) {
        if (device.name.starts_with(task)) all.push_back(device.incarnation);
      }
      return all;
    };
    const std::vector<uint64_t> before = lives();
    servers_[number].reset();
    Start(number);
    const absl::Time end = absl::Now() + kPatience;
    while (lives() == before && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
    ASSERT_NE(lives(), before) << "the master does not know of " << task;
  }
  std::vector<float> Values(Session& session) {
    std::vector<float> all;
    for (const ModelVariable& variable : variables_) {
      const auto values = session.Run({variable.value()});
      if (!values.ok()) {
        ADD_FAILURE() << values.status();
        return {};
      }
      all.push_back((*values)[0].unchecked_values<float>()[2]);
    }
    return all;
  }

  const std::string folder_ =
      testing::TempDir() + "troupe_cluster_saves_" + std::to_string(getpid());
  ServerOptions options_;
  std::unique_ptr<Server> servers_[3];
  const Scope s_ =
      Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(ReplicaDeviceOptions{.ps_tasks = 2}));
  ModelVariable step_;
  std::vector<ModelVariable> variables_;
  Node* train_ = nullptr;
};

TEST_F(ClusterSaves, AsynchronousSavesHoldTheValuesOfTheCall) {
  SchemeDisk* const disk = SchemeDisk::Register("held");
  const auto saver = std::make_shared<Saver>(s_, SaveableList(),
                                             SaverOptions{.sharded = true, .asynchronous = true});
  Node* const init = GlobalVariablesInitializer(s_);
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = Session::Create(s_.graph(), Target());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({init}).ok());
  AsyncCheckpointer checkpointer(saver);
  for (int save = 1; save <= 3; ++save) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*session)->RunTargets({train_}).ok());
    disk->Hold();
    const auto begun = checkpointer.Save(**session, "held://run/model", 3 * save);
    ASSERT_TRUE(begun.ok()) << begun.status();
    // Nothing has been written yet, and the training goes on.
    for (int i = 0; i < 5; ++i) ASSERT_TRUE((*session)->RunTargets({train_}).ok());
    const std::string prefix = StrCat("held://run/model-", 3 * save);
    EXPECT_NE(checkpointer.last_saved(), prefix);
    disk->LetGo();
    const absl::Status written = checkpointer.Wait();
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_EQ(checkpointer.last_saved(), prefix);
    const float expected = static_cast<float>(8 * save - 5);
    for (const char* name : {"v", "w"}) {
      const auto value = LoadVariable(prefix, name);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ(value->unchecked_values<float>()[0], expected) << name;
    }
    EXPECT_EQ(LoadVariable(prefix, "global_step")->unchecked_scalar<int64_t>(), 8 * save - 5);
  }
  // A task that is lost meanwhile ends the save; what was there stays.
  disk->Hold();
  ASSERT_TRUE(checkpointer.Save(**session, "held://run/model", 100).ok());
  servers_[1].reset();
  const absl::Status lost = checkpointer.Wait();
  disk->LetGo();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_EQ(*LatestCheckpoint("held://run"), "held://run/model-9");
  EXPECT_TRUE((*session)->Close().ok());
}

/// Nothing runs while a task is away: the session is still good, and its variables are gone.
class UnnoticedLoss : public ClusterSaves, public testing::WithParamInterface<bool> {};

TEST_P(UnnoticedLoss, IsMended) {
  auto session = MonitoredTrainingSession(s_.graph(), {.session = Target(),
                                                       .checkpoint_dir = folder_,
                                                       .save_checkpoints = {.steps = 4},
                                                       .asynchronous_checkpoints = GetParam(),
                                                       .save_summaries = {}});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int number : {0, 1}) {
    const int sessions = (*session)->num_sessions();
    for (int i = 0; i < 6; ++i) ASSERT_TRUE((*session)->Run({}, {}, {train_}).ok());
    WaitForLife(*(*session)->session(), number);
    const absl::Status status = (*session)->Run({}, {}, {train_}).status();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ((*session)->num_sessions(), sessions + 1);
    // All of it is of one step: that of a checkpoint, and one more.
    Session& now = *(*session)->session();
    const auto step = now.Run({step_.value()});
    ASSERT_TRUE(step.ok()) << step.status();
    const int64_t at = (*step)[0].unchecked_scalar<int64_t>();
    const auto expected = static_cast<float>(at);
    EXPECT_THAT(Values(now), testing::ElementsAre(expected, expected));
    if (GetParam()) continue;  // Which saves were complete is a matter of time.
    EXPECT_GE(at, 5);
    EXPECT_TRUE(*CheckpointExists(StrCat(folder_, "/model.ckpt-", at - 1)));
  }
  EXPECT_TRUE((*session)->Close().ok());
}

INSTANTIATE_TEST_SUITE_P(Saves, UnnoticedLoss, testing::Bool(), [](const auto& info) {
  return info.param ? "Asynchronously" : "WhileItWaits";
});

/// Random numbers are drawn on the worker and on a parameter server, in a function as well.
class ClusterNoise : public ClusterSaves {
 protected:
  /// Trains with a session of its own, and gives what the variable has come to.
  std::vector<float> Train(const std::string& folder, int64_t last_step,
                           const std::function<void(MonitoredSession&)>& at_step_9 = nullptr) {
    const Scope s = Scope::NewRoot().WithDeviceFunction(
        ReplicaDeviceSetter(ReplicaDeviceOptions{.ps_tasks = 2}));
    s.SetGraphSeed(7);
    const ModelVariable step = GlobalStep(s);
    const ModelVariable sum(s, Shape({3}), ZerosInitializer(), "sum");
    const Output shape = ops::Const(s, Tensor::Vector<int32_t>({3}));
    const Function noise = DefineFunction(
        s, "Noise", {ElementType::kInt32}, [](const Scope& body, absl::Span<const Output> args) {
          return std::vector<Output>{
              ops::RandomUniform(body, args[0], ElementType::kFloat, {.seed = 5, .seed2 = 6})};
        });
    const Scope ps = s.WithDevice("/job:ps/task:1");
    const Output plain = ops::Add(
        s, ops::RandomUniform(s, shape, ElementType::kFloat, {.seed = 1, .seed2 = 2}),
        ops::RandomStandardNormal(ps, shape, ElementType::kFloat, {.seed = 3, .seed2 = 4}));
    // The function is further on the worker than on the parameter server.
    const Output called =
        ops::Add(s, ops::Add(s, Call(s, noise, {shape})[0], Call(s, noise, {shape})[0]),
                 Call(ps, noise, {shape})[0]);
    const Output drawn = ops::Add(s, plain, called);
    Node* const train =
        step.AssignAdd(s.WithControlDependencies({Output(sum.AssignAdd(s, drawn))}), int64_t{1});
    EXPECT_TRUE(s.ok()) << s.status();
    auto session = MonitoredTrainingSession(
        s.graph(),
        {.session = Target(),
         .checkpoint_dir = folder,
         .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(last_step))},
         .save_checkpoints = {.steps = 3},
         .save_summaries = {}});
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    absl::Status status;
    for (int i = 0; status.ok() && !(*session)->should_stop(); ++i) {
      if (i == 9 && at_step_9 != nullptr) at_step_9(**session);
      status = (*session)->Run({}, {}, {train}).status();
    }
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return {};
    const auto values = (*session)->session()->Run({sum.value()});
    EXPECT_TRUE(values.ok()) << values.status();
    EXPECT_TRUE((*session)->Close().ok());
    const auto all = (*values)[0].unchecked_values<float>();
    return {all.begin(), all.end()};
  }
};

TEST_F(ClusterNoise, GoesOnWithTheSameBits) {
  const std::vector<float> wanted = Train("", 20);
  ASSERT_EQ(wanted.size(), 3u);
  EXPECT_EQ(Train(folder_, 20), wanted) << "saving changes nothing";
  std::filesystem::remove_all(folder_);
  for (const int64_t steps : {4, 11, 20}) {
    const std::vector<float> got = Train(folder_, steps);
    if (steps == 20) {
      EXPECT_EQ(got, wanted);
    }
  }
  // The file matters.
  Train(folder_ + "/b", 4);
  std::filesystem::remove(folder_ + "/b/model.ckpt-4.troupe-state");
  EXPECT_NE(Train(folder_ + "/b", 20), wanted);
  // A task that is lost.
  for (const int number : {0, 1}) {
    const std::string folder = folder_ + "/" + std::to_string(number);
    const auto lose = [&](MonitoredSession& session) { WaitForLife(*session.session(), number); };
    EXPECT_EQ(Train(folder, 20, lose), wanted) << number;
  }
}

/// An error of the step's own is the caller's, once it is clear that no task's life is behind it.
TEST_F(ClusterSaves, ErrorsOfTheStepStayErrors) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  Node* const check = ops::Assert(s_, ops::Less(s_, x, 1.0f), {x});
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = MonitoredTrainingSession(
      s_.graph(), {.session = Target(), .checkpoint_dir = folder_, .save_summaries = {}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->Run({{x, Tensor::Scalar(0.0f)}}, {}, {check}).ok());
  const absl::Status failed = (*session)->Run({{x, Tensor::Scalar(2.0f)}}, {}, {check}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(failed)) << failed;
  EXPECT_EQ((*session)->num_sessions(), 1);
}

}  // namespace
}  // namespace troupe
