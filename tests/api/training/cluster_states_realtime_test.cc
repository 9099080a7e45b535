// What trainings on a cluster keep beside their checkpoints: queues, readers' counters, staging
// areas and barriers on tasks of this process. They are cut, tasks are lost, and go on with the
// same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/input.h"
#include "api/internal/held_queues.h"
#include "api/internal/training_state.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"
#include "tests/api/training/cut_hook.h"

namespace troupe {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

/// A runner counts, draws and fills a shuffling queue on a parameter server; what it draws comes
/// from a worker that has nothing else. What a step takes from the queue goes through a staging
/// area of the other worker and a barrier of the other parameter server.
struct Model {
  static constexpr int kAhead = 2;

  explicit Model(ElementType type = ElementType::kDouble) {
    const Scope input = s.WithDevice("/job:ps/task:0");
    const std::vector<ElementType> types = {type};
    step = GlobalStep(s.WithDevice("/job:ps/task:1"));
    w = ModelVariable(s.WithDevice("/job:ps/task:1"), ops::Const(s, Tensor::Scalar(0.0)), "w");
    const Output queue = ops::RandomShuffleQueueV2(
        input.WithOpName("queue"), types,
        {.shapes = {PartialShape({})}, .capacity = 10, .min_after_dequeue = 9, .seed = 3});
    const Output counter =
        ops::VariableV2(input.WithOpName("counter"), PartialShape({}), ElementType::kInt64);
    const Output zero = ops::Assign(input.WithOpName("zero"), counter, Tensor::Scalar<int64_t>(0));
    s.graph()->AddToCollection(collections::kLocalVariableInitializers, zero.node->name());
    const Output number = ops::Cast(input, ops::CountUpTo(input, counter, INT64_MAX), type);
    const Output drawn =
        ops::RandomUniform(s.WithDevice("/job:worker/task:1"), Tensor::Vector<int32_t>({1}),
                           ElementType::kDouble, {.seed = 1, .seed2 = 2});
    const Output noise = ops::Cast(input, ops::Sum(input, drawn, 0), type);
    const QueueRunner runner(input, queue,
                             {ops::QueueEnqueueV2(input, queue, {ops::Add(input, number, noise)})});

    const Scope worker = s.WithDevice("/job:worker/task:0");
    const Output x =
        ops::Cast(worker, ops::QueueDequeueV2(worker, queue, types)[0], ElementType::kDouble);
    const std::vector<ElementType> doubles = {ElementType::kDouble};
    Node* const stage = ops::Stage(worker, {x}, {.shared_name = "area"});
    size = ops::StageSize(worker, doubles, {.shared_name = "area"});
    const Output staged = ops::Unstage(worker, doubles, {.shared_name = "area"})[0];
    const Scope other = s.WithDevice("/job:ps/task:1");
    barrier = ops::Barrier(other.WithOpName("barrier"), doubles, {.shapes = {PartialShape({})}});
    key = ops::PlaceholderWithDefault(s, step.value(), PartialShape({}));
    Node* const insert =
        ops::BarrierInsertMany(other, barrier, ops::ExpandDims(other, ops::AsString(other, key), 0),
                               ops::ExpandDims(other, x, 0), 0);
    put = {stage, insert};
    const auto complete = ops::BarrierTakeMany(other, barrier, 1, doubles);
    Output next = ops::Mul(s, w.value(), Tensor::Scalar(0.9));
    next = ops::Add(s, next, staged);
    next = ops::Add(s, next, ops::Mul(s, ops::Sum(s, complete.values[0], 0), Tensor::Scalar(2.0)));
    train = step.AssignAdd(
        s.WithControlDependencies({Output(w.Assign(s, next)), Output(stage), Output(insert)}),
        int64_t{1});
  }

  Scope s = Scope::NewRoot();
  ModelVariable step, w;
  Output key, barrier, size;
  std::vector<Node*> put;
  Node* train = nullptr;
};

/// Puts in what the first steps take, unless it is there.
class PrimeHook final : public SessionRunHook {
 public:
  explicit PrimeHook(const Model& model) : model_(model) {}
  absl::Status AfterCreateSession(Session& session, Coordinator&) override {
    TROUPE_ASSIGN_OR_RETURN(const auto sizes, session.Run({model_.size}));
    if (sizes[0].unchecked_scalar<int32_t>() > 0) return absl::OkStatus();
    for (int64_t i = 0; i < Model::kAhead; ++i) {
      TROUPE_RETURN_IF_ERROR(session.RunTargets(
          model_.put, {{model_.key, Tensor::Scalar<int64_t>(i - Model::kAhead)}}));
    }
    return absl::OkStatus();
  }

 private:
  const Model& model_;
};

class ClusterStates : public testing::Test {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    options_.cluster = *ClusterSpec::Create(
        {{"ps", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}},
         {"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
    options_.threads = 1;
    options_.heartbeat_timeout = absl::Seconds(2);
    options_.wait_for_workers = absl::Seconds(3);
    std::filesystem::remove_all(folder_);
    for (int i = 0; i < kTasks; ++i) Start(i);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static constexpr int kTasks = 4;

  /// Parameter servers 0 and 1, workers 2, which is the master, and 3.
  void Start(int number) {
    servers_[number].reset();
    options_.job = number < 2 ? "ps" : "worker";
    options_.task = number % 2;
    auto server = Server::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[number] = *std::move(server);
  }
  /// Ends a task and starts it again, and waits until the master knows.
  void Restart(Session& session, int number) {
    const auto lives = [&] {
      std::vector<uint64_t> all;
      const auto devices = session.ListDevices();
      EXPECT_TRUE(devices.ok()) << devices.status();
      for (const DeviceAttributes& device : *devices) {
        if (device.name.starts_with(servers_[number]->task())) all.push_back(device.incarnation);
      }
      return all;
    };
    const auto before = lives();
    Start(number);
    const absl::Time end = absl::Now() + kPatience;
    while (lives() == before && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
    ASSERT_NE(lives(), before);
  }
  SessionOptions Target() const {
    return {.target = servers_[2]->target(), .heartbeat_timeout = options_.heartbeat_timeout};
  }
  /// Every training begins with empty containers, as new processes would.
  absl::Status Train(const Model& model, int64_t last_step, int64_t steps = 0,
                     const std::function<void(Session&, int64_t)>& before_step = nullptr) {
    TROUPE_RETURN_IF_ERROR(model.s.status());
    for (int i = 0; i < kTasks; ++i) Start(i);
    MonitoredTrainingOptions options = {
        .session = Target(),
        .checkpoint_dir = folder_,
        .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(last_step)),
                  std::make_shared<PrimeHook>(model)},
        .save_checkpoints = {.steps = 3},
        .save_summaries = {}};
    if (steps > 0) options.hooks.push_back(std::make_shared<CutHook>(steps));
    TROUPE_ASSIGN_OR_RETURN(const auto session, MonitoredTrainingSession(model.s.graph(), options));
    absl::Status status;
    for (int64_t i = 0; status.ok() && !session->should_stop(); ++i) {
      if (before_step != nullptr) before_step(*session->session(), i);
      status = session->Run({}, {}, {model.train}).status();
    }
    status.Update(session->Close());
    return status;
  }
  double Result() {
    const auto value = LoadVariable(*LatestCheckpoint(folder_), "w");
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? value->unchecked_scalar<double>() : 0;
  }

  const std::string folder_ =
      testing::TempDir() + "troupe_cluster_states_" + std::to_string(getpid());
  ServerOptions options_;
  std::unique_ptr<Server> servers_[kTasks];
};

TEST_F(ClusterStates, GoOnWithTheSameBits) {
  constexpr int kSteps = 30;
  absl::Status status = Train(Model(), kSteps);
  ASSERT_TRUE(status.ok()) << status;
  const double wanted = Result();

  // Cut.
  std::filesystem::remove_all(folder_);
  int cuts = 0;
  for (int steps : {7, 2, 11, 5, 100}) {
    status = Train(Model(), kSteps, steps);
    if (status.ok()) break;
    ASSERT_TRUE(absl::IsInternal(status)) << status;
    ++cuts;
  }
  EXPECT_EQ(cuts, 4);
  EXPECT_EQ(Result(), wanted);

  // What the test depends on.
  const auto state = ReadTrainingState(*LatestCheckpoint(folder_));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->queues.count("queue"), 1u);
  EXPECT_THAT(state->queues.at("queue").elements.size(), testing::AnyOf(9u, 10u));
  EXPECT_EQ(state->variables.count("counter"), 1u);
  ASSERT_EQ(state->resources.size(), 2u);
  for (const KeptResource& one : state->resources) {
    const bool barrier = std::holds_alternative<BarrierState>(one.state);
    EXPECT_THAT(one.place.device, testing::HasSubstr(barrier ? "/job:ps/replica:0/task:1/"
                                                             : "/job:worker/replica:0/task:0/"));
  }

  // Lost: the one with the queue, the one with the barrier, the one that draws.
  for (const int number : {0, 1, 3}) {
    std::filesystem::remove_all(folder_);
    status = Train(Model(), kSteps, 0, [&](Session& session, int64_t step) {
      if (step == 10) Restart(session, number);
    });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Result(), wanted) << "task " << number;
  }
}

/// A worker that only draws random numbers, in a step without queues, is lost between two steps: no
/// variable is missed, and nothing would fail.
TEST_F(ClusterStates, AWorkerWithoutVariablesIsMissed) {
  struct Drawn {
    Drawn() {
      const Scope ps = s.WithDevice("/job:ps/task:0"), worker = s.WithDevice("/job:worker/task:1");
      step = GlobalStep(ps);
      w = ModelVariable(ps, ops::Const(ps, Tensor::Scalar(0.0)), "w");
      const Output shape = ops::Const(worker, Tensor::Vector<int32_t>({1}));
      const Output drawn =
          ops::RandomUniform(worker, shape, ElementType::kDouble, {.seed = 1, .seed2 = 2});
      const Output next =
          ops::Add(ps, ops::Mul(ps, w.value(), Tensor::Scalar(0.9)), ops::Sum(ps, drawn, 0));
      train = step.AssignAdd(ps.WithControlDependencies({Output(w.Assign(ps, next))}), int64_t{1});
    }
    Scope s = Scope::NewRoot();
    ModelVariable step, w;
    Node* train = nullptr;
  };
  const auto train = [&](int lost_before) {
    std::filesystem::remove_all(folder_);
    const Drawn model;
    EXPECT_TRUE(model.s.ok()) << model.s.status();
    auto session = MonitoredTrainingSession(
        model.s.graph(), {.session = Target(),
                          .checkpoint_dir = folder_,
                          .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(20))},
                          .save_checkpoints = {.steps = 3},
                          .save_summaries = {}});
    EXPECT_TRUE(session.ok()) << session.status();
    absl::Status status;
    for (int i = 0; status.ok() && !(*session)->should_stop(); ++i) {
      if (i == lost_before) Restart(*(*session)->session(), 3);
      status = (*session)->Run({}, {}, {model.train}).status();
    }
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ((*session)->num_sessions(), lost_before < 0 ? 1 : 2);
    EXPECT_TRUE((*session)->Close().ok());
    return Result();
  };
  const double wanted = train(-1);
  // Before anything but the first state has been saved; between two saves.
  for (const int lost_before : {2, 11}) EXPECT_EQ(train(lost_before), wanted) << lost_before;

  // Who does not keep states goes on.
  const Drawn model;
  Node* const init = GlobalVariablesInitializer(model.s);
  auto session = Session::Create(model.s.graph(), Target());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({init}).ok());
  ASSERT_TRUE((*session)->RunTargets({model.train}).ok());
  Restart(**session, 3);
  const absl::Status status = (*session)->RunTargets({model.train});
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClusterStates, WhatDoesNotFitBeginsAnew) {
  absl::Status status = Train(Model(), 12);
  ASSERT_TRUE(status.ok()) << status;
  // A queue of another type.
  status = Train(Model(ElementType::kFloat), 15);
  ASSERT_TRUE(status.ok()) << status;
  const std::string prefix = *LatestCheckpoint(folder_);
  auto state = ReadTrainingState(prefix);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->queues.at("queue").elements[0][0].type(), ElementType::kFloat);
  // Tasks and nodes that are not there.
  for (KeptResource& one : state->resources) {
    if (!std::holds_alternative<BarrierState>(one.state)) {
      one.place.device = "/job:worker/replica:0/task:9/device:CPU:0";
    } else {
      std::get<BarrierState>(one.state) = {};
    }
  }
  state->queues["nobody"] = state->queues["queue"];
  state->variables["nobody"] = Tensor::Scalar(1.0f);
  ASSERT_TRUE(WriteTrainingState(prefix, *state).ok());
  status = Train(Model(ElementType::kFloat), 18);
  EXPECT_TRUE(status.ok()) << status;
}

// More than a message has.
TEST_F(ClusterStates, ALargeQueueGoesInParts) {
  constexpr int kCapacity = 40, kElements = 1 << 18;  // Of a mebibyte.
  const Scope s = Scope::NewRoot(), ps = s.WithDevice("/job:ps/task:0");
  const std::vector<ElementType> types = {ElementType::kFloat};
  const Output counter =
      ops::VariableV2(ps.WithOpName("counter"), PartialShape({}), ElementType::kInt64);
  Node* const zero = ops::Assign(ps, counter, Tensor::Scalar<int64_t>(0)).node;
  const Output number = ops::Cast(ps, ops::CountUpTo(ps, counter, INT64_MAX), types[0]);
  const Output queue =
      ops::FIFOQueueV2(ps.WithOpName("queue"), types,
                       {.shapes = {PartialShape({kElements})}, .capacity = kCapacity});
  const Output element = ops::Fill(ps, Tensor::Vector<int32_t>({kElements}), number);
  const QueueRunner runner(ps, queue, {ops::QueueEnqueueV2(ps, queue, {element})});
  const Output size = ops::QueueSizeV2(ps, queue);
  const Output taken = ops::QueueDequeueV2(ps, queue, types)[0];
  ASSERT_TRUE(s.ok()) << s.status();
  TrainingState state;
  {
    auto session = Session::Create(s.graph(), Target());
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->RunTargets({zero}).ok());
    Coordinator coordinator;
    ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
    const absl::Time end = absl::Now() + kPatience;
    while (absl::Now() < end) {
      const auto sizes = (*session)->Run({size});
      ASSERT_TRUE(sizes.ok()) << sizes.status();
      if ((*sizes)[0].unchecked_scalar<int32_t>() == kCapacity) break;
    }
    const absl::Status saved = HeldQueues(**session).Save(kPatience, &state);
    ASSERT_TRUE(saved.ok()) << saved;
    coordinator.RequestStop();
    EXPECT_TRUE((*session)->Close().ok());
    EXPECT_TRUE(coordinator.Join(kPatience).ok());
  }
  EXPECT_EQ(state.queues["queue"].elements.size(), static_cast<size_t>(kCapacity));
  const size_t all = kCapacity + state.queues["queue"].waiting.size();
  for (int i = 0; i < kTasks; ++i) Start(i);
  auto session = Session::Create(s.graph(), Target());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({zero}).ok());
  const absl::Status restored = RestoreQueues(**session, std::move(state));
  ASSERT_TRUE(restored.ok()) << restored;
  for (size_t i = 0; i < all; ++i) {
    const auto values = (*session)->Run({taken});
    ASSERT_TRUE(values.ok()) << values.status();
    const auto element = (*values)[0].unchecked_values<float>();
    EXPECT_EQ(std::count(element.begin(), element.end(), static_cast<float>(i)), kElements);
  }
}

TEST_F(ClusterStates, ATaskThatIsMissingIsNamed) {
  const Model model;
  ASSERT_TRUE(model.s.ok()) << model.s.status();
  Node* const init = GlobalVariablesInitializer(model.s);
  Node* const local = LocalVariablesInitializer(model.s);
  auto session = Session::Create(model.s.graph(), Target());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({init, local}).ok());
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(**session, coordinator).ok());
  TrainingState state;
  const absl::Status saved = HeldQueues(**session).Save(kPatience, &state);
  ASSERT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(state.queues.count("queue"), 1u);
  servers_[0].reset();
  const absl::Status lost = HeldQueues(**session).Save(kPatience, &state);
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), testing::HasSubstr("/job:ps/replica:0/task:0"));
  coordinator.RequestStop();
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_FALSE(coordinator.Join(absl::Seconds(30)).ok()) << "the runner has failed";
}

}  // namespace
}  // namespace troupe
