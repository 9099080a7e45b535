// Actors of a cluster of processes: found, asked, published, watched, lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

struct Point {
  int32_t x = 0;
  std::string name;
  std::vector<int64_t> more;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Point& p) {
  return f(caf::meta::type_name("Point"), p.x, p.name, p.more);
}
struct Unregistered {
  int64_t x = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Unregistered& p) {
  return f(caf::meta::type_name("Unregistered"), p.x);
}
CAF_BEGIN_TYPE_ID_BLOCK(cluster_actors_test, first_custom_type_id)
CAF_ADD_TYPE_ID(cluster_actors_test, (Point))
CAF_END_TYPE_ID_BLOCK(cluster_actors_test)

namespace troupe {
namespace {

using Tensors = std::vector<Tensor>;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
constexpr char kTask0[] = "/job:worker/task:0", kTask1[] = "/job:worker/task:1";

struct Config : caf::actor_system_config {
  Config() {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", uint64_t{2});
    add_message_types<caf::id_block::cluster_actors_test>();
  }
};

/// Two tasks, each a process of its own.
class ClusterActorsTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "/cluster_actors_" + std::to_string(getpid()) + ".json";
    for (int i = 0; i < 2; ++i) addresses_.push_back("127.0.0.1:" + std::to_string(FreePort()));
    std::ofstream(file_) << "{\"worker\": [\"" << addresses_[0] << "\", \"" << addresses_[1]
                         << "\"]}";
    for (int i = 0; i < 2; ++i) StartTask(i);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void StartTask(size_t task) {
    workers_[task] = std::make_unique<TroupeProcess>(
        std::vector<std::string>{"worker", "--heartbeat-timeout", "2", "--cluster", file_, "--job",
                                 "worker", "--task", std::to_string(task)});
    EXPECT_THAT(workers_[task]->Line(), HasSubstr("ready"));
  }
  std::string Target(size_t task) { return "troupe://" + addresses_[task]; }
  std::unique_ptr<ClusterNode> Join(size_t task = 0) {
    configs_.push_back(std::make_unique<Config>());
    auto node = ClusterNode::Join({.target = Target(task),
                                   .heartbeat_timeout = absl::Seconds(2),
                                   .config = configs_.back().get()});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *std::move(node) : nullptr;
  }
  /// A session at the first task.
  std::unique_ptr<Session> Connect(const std::shared_ptr<Graph>& graph) {
    auto session = Session::Create(graph, {.target = Target(0)});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  std::vector<std::string> addresses_;
  std::string file_;
  std::unique_ptr<TroupeProcess> workers_[2];
  std::vector<std::unique_ptr<Config>> configs_;  ///< Outlive the nodes.
};

/// What `actor` answers, or its error.
template <typename Answer, typename Actor, typename... Args>
absl::StatusOr<Answer> Ask(caf::actor_system& system, const Actor& actor, Args... args) {
  caf::scoped_actor self(system);
  absl::StatusOr<Answer> result = absl::UnknownError("no answer");
  self->request(actor, std::chrono::seconds(20), args...)
      .receive([&](Answer answer) { result = std::move(answer); },
               [&](const caf::error& error) { result = ToStatus(error); });
  return result;
}

caf::behavior Doubler(caf::event_based_actor*) {
  return {[](ask_atom, const Tensors& in) {
            return Tensors{Tensor::Scalar<float>(2 * in.at(0).unchecked_scalar<float>())};
          },
          [](tell_atom, const Tensors&) {}};
}

TEST_F(ClusterActorsTest, RolesOfTasksAreFoundAndAsked) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output v =
      ops::VarHandleOp(on_1, ElementType::kFloat, PartialShape({2}), {.shared_name = "weights"});
  Node* init = ops::AssignVariableOp(on_1, v, ops::Const(on_1, Tensor::Vector<float>({1, 2})));
  Output read = ops::ReadVariableOp(on_1, v, ElementType::kFloat);
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join();
  EXPECT_EQ(node->Find<VariableActor>(kTask1, "weights").status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(session->RunTargets({init}).ok());

  auto weights = node->Find<VariableActor>(kTask1, "weights");
  ASSERT_TRUE(weights.ok()) << weights.status();
  auto value = Ask<Tensor>(node->system(), *weights, caf::get_atom_v);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_THAT(value->unchecked_values<float>(), ElementsAre(1, 2));
  {
    caf::scoped_actor self(node->system());
    bool done = false;
    self->request(*weights, caf::infinite, caf::put_atom_v, Tensor::Vector<float>({5, 6}))
        .receive([&] { done = true; }, [&](const caf::error& e) { FAIL() << ToStatus(e); });
    EXPECT_TRUE(done);
    absl::Status wrong;
    self->request(*weights, caf::infinite, caf::put_atom_v, Tensor::Vector<float>({5, 6, 7}))
        .receive([&] {}, [&](const caf::error& e) { wrong = ToStatus(e); });
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  auto now = session->Run({read});
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_THAT(now->at(0).unchecked_values<float>(), ElementsAre(5, 6));

  auto task = node->Find<TaskActor>(kTask0, "");
  ASSERT_TRUE(task.ok()) << task.status();
  auto status = Ask<TaskStatus>(node->system(), *task, status_atom_v);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->name, "/job:worker/replica:0/task:0");
  EXPECT_EQ(status->devices.size(), 1U);
  auto device = node->Find<DeviceActor>(kTask1, "CPU:0");
  ASSERT_TRUE(device.ok()) << device.status();
  auto about = Ask<DeviceStatus>(node->system(), *device, status_atom_v);
  ASSERT_TRUE(about.ok()) << about.status();
  EXPECT_EQ(about->name, "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_THAT(about->resources, testing::Contains(HasSubstr("weights")));

  EXPECT_EQ(node->Find<DeviceActor>(kTask1, "GPU:0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(node->Find<TaskActor>("/job:worker/task:7", "").status().code(),
            absl::StatusCode::kNotFound);
  // Another role's messages.
  auto confused = Ask<Tensor>(node->system(), caf::actor_cast<caf::actor>(*task), caf::get_atom_v);
  EXPECT_EQ(confused.status().code(), absl::StatusCode::kUnimplemented) << confused.status();

  // Who monitors the variable hears when its container drops it.
  caf::scoped_actor self(node->system());
  self->monitor(*weights);
  ASSERT_TRUE(session->Reset().ok());
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_TRUE(down);
  value = Ask<Tensor>(node->system(), *weights, caf::get_atom_v);
  EXPECT_EQ(value.status().code(), absl::StatusCode::kUnavailable) << value.status();
}

TEST_F(ClusterActorsTest, AQueueIsSharedByGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output queue = ops::FIFOQueueV2(
      on_1, {ElementType::kFloat, ElementType::kString},
      {.shapes = {PartialShape({}), PartialShape({})}, .capacity = 3, .shared_name = "numbers"});
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})});
  Node* put =
      ops::QueueEnqueueV2(on_1, queue, {x, ops::Const(on_1, Tensor::Scalar<std::string>("graph"))});
  const OutputList got =
      ops::QueueDequeueV2(on_1, queue, {ElementType::kFloat, ElementType::kString});
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join(0), other = Join(1);
  ASSERT_TRUE(session->RunTargets({put}, {{x, Tensor::Scalar<float>(1)}}).ok());
  auto handle = node->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(handle.ok()) << handle.status();
  const auto size = [&] { return *Ask<int64_t>(node->system(), *handle, size_atom_v); };
  EXPECT_EQ(size(), 1);
  auto tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v);
  ASSERT_TRUE(tuple.ok()) << tuple.status();
  EXPECT_EQ(tuple->at(0).unchecked_scalar<float>(), 1);
  EXPECT_EQ(tuple->at(1).unchecked_scalar<std::string>(), "graph");

  // Who waits and is gone takes nothing.
  auto theirs = other->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  {
    caf::scoped_actor gone(node->system());
    gone->send(caf::actor_cast<caf::actor>(*handle), caf::get_atom_v);
    gone->request(*handle, caf::infinite, caf::get_atom_v);
    caf::scoped_actor goes(other->system());
    goes->request(*theirs, caf::infinite, caf::get_atom_v);
    EXPECT_EQ(size(), 0);
  }
  other.reset();
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  int64_t there = 0;
  do {  // The queue hears of their ends soon.
    ASSERT_TRUE(session->RunTargets({put}, {{x, Tensor::Scalar<float>(2)}}).ok());
    there = size();
  } while (there == 0 && Clock::now() < deadline);
  EXPECT_EQ(there, 1);

  // What a process puts in, a graph takes out; several at once come stacked.
  caf::scoped_actor self(node->system());
  for (float value : {3.f, 4.f}) {
    self->request(*handle, caf::infinite, caf::put_atom_v,
                  Tensors{Tensor::Scalar<float>(value), Tensor::Scalar<std::string>("process")})
        .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  }
  auto fetched = session->Run({got[0], got[1]});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->at(0).unchecked_scalar<float>(), 2);
  tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{2});
  ASSERT_TRUE(tuple.ok()) << tuple.status();
  EXPECT_THAT(tuple->at(0).unchecked_values<float>(), ElementsAre(3, 4));
  absl::Status wrong;
  self->request(*handle, caf::infinite, caf::put_atom_v, Tensors{Tensor::Scalar<float>(1)})
      .receive([] {}, [&](const caf::error& e) { wrong = ToStatus(e); });
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  self->request(*handle, caf::infinite, caf::close_atom_v, false)
      .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  tuple = Ask<Tensors>(node->system(), *handle, caf::get_atom_v);
  EXPECT_EQ(tuple.status().code(), absl::StatusCode::kOutOfRange) << tuple.status();
  EXPECT_EQ(node->Find<QueueActor>(kTask1, "no such queue").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ClusterActorsTest, AnAccumulatorAddsUpGradientsOfGraphsAndProcesses) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output sum = ops::ResourceConditionalAccumulator(on_1, ElementType::kFloat, PartialShape({2}),
                                                   {.shared_name = "gradients"});
  Node* apply =
      ops::ResourceAccumulatorApplyGradient(on_1, sum, ops::Const(on_1, Tensor::Scalar<int64_t>(0)),
                                            ops::Const(on_1, Tensor::Vector<float>({1, 2})));
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  auto node = Join(), other = Join(1);
  ASSERT_TRUE(session->RunTargets({apply}).ok());
  auto handle = node->Find<AccumulatorActor>(kTask1, "gradients");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(node->system());
  const auto told = [&](auto... message) {
    absl::Status status;
    self->request(*handle, std::chrono::seconds(20), message...)
        .receive([] {}, [&](const caf::error& e) { status = ToStatus(e); });
    return status;
  };
  const auto number = [&] { return *Ask<int64_t>(node->system(), *handle, size_atom_v); };
  EXPECT_EQ(number(), 1);
  // Those who wait take nothing once they are gone; others go on waiting.
  {
    auto theirs = other->Find<AccumulatorActor>(kTask1, "gradients");
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    caf::scoped_actor goes(other->system());
    goes->request(*theirs, caf::infinite, caf::get_atom_v, int64_t{2});
    EXPECT_EQ(number(), 1);
  }
  other.reset();
  auto mean = std::async(std::launch::async, [&] {
    return Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{3});
  });
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{0}, Tensors{Tensor::Vector<float>({3, 4})}).ok());
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{0}, Tensors{Tensor::Vector<float>({5, 9})}).ok());
  const absl::StatusOr<Tensors> taken = mean.get();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(taken->at(0).unchecked_values<float>(), ElementsAre(3, 5));
  EXPECT_EQ(number(), 0);
  // What is stale is dropped, what does not fit refused.
  EXPECT_TRUE(told(caf::update_atom_v, int64_t{7}).ok());
  EXPECT_TRUE(told(caf::put_atom_v, int64_t{6}, Tensors{Tensor::Vector<float>({3, 4})}).ok());
  EXPECT_EQ(number(), 0);
  for (const Tensors& wrong : {Tensors{}, Tensors{Tensor()}, Tensors{Tensor::Scalar<float>(1)},
                               Tensors{Tensor::Vector<double>({1, 2})}}) {
    const absl::Status refused = told(caf::put_atom_v, int64_t{7}, wrong);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  }
  EXPECT_EQ(Ask<Tensors>(node->system(), *handle, caf::get_atom_v, int64_t{0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->Find<QueueActor>(kTask1, "gradients").status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A node knows the tasks that join after it, and they know what it publishes.
TEST_F(ClusterActorsTest, TasksThatJoinLaterAreKnown) {
  auto node = Join();
  auto published = node->Publish("doubler", node->system().spawn(Doubler));
  ASSERT_TRUE(published.ok()) << published.status();
  constexpr char kTask2[] = "/job:worker/task:2";
  EXPECT_EQ(node->Find<TaskActor>(kTask2, "").status().code(), absl::StatusCode::kNotFound);

  const std::string larger = file_ + ".larger";
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  std::ofstream(larger) << "{\"worker\": [\"" << addresses_[0] << "\", \"" << addresses_[1]
                        << "\", \"" << address << "\"]}";
  TroupeProcess third({"worker", "--heartbeat-timeout", "2", "--cluster", larger, "--job", "worker",
                       "--task", "2", "--join", addresses_[1]});
  ASSERT_THAT(third.Line(), HasSubstr("ready"));
  std::filesystem::remove(larger);
  const auto soon = [&](const auto& is_so) {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (!is_so()) {
      if (Clock::now() > deadline) return false;
      // It hears of it by a message that nobody else sees: all that can be done is to look again.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  };
  absl::StatusOr<TaskActor> task = absl::UnknownError("not asked");
  ASSERT_TRUE(soon([&] { return (task = node->Find<TaskActor>(kTask2, "")).ok(); }))
      << task.status();
  EXPECT_EQ(Ask<TaskStatus>(node->system(), *task, status_atom_v)->name,
            "/job:worker/replica:0/task:2");
  // Its graphs ask the node's actor.
  Scope s = Scope::NewRoot();
  Output asked = ops::AskActor(s.WithDevice(kTask2), {ops::Const(s, Tensor::Scalar<float>(4))},
                               "doubler", {ElementType::kFloat})[0];
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Session::Create(s.graph(), {.target = "troupe://" + address});
  ASSERT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Tensors> doubled = absl::UnknownError("not asked");
  EXPECT_TRUE(soon([&] { return (doubled = (*session)->Run({asked})).ok(); })) << doubled.status();
  if (doubled.ok()) {
    EXPECT_EQ(doubled->at(0).unchecked_scalar<float>(), 8);
  }

  // One that has left is none any more.
  const auto left = RunProgram(
      {.arguments = {ProgramFolder() + "/troupe", "leave", "--master", Target(0), "--task", kTask2},
       .output = true});
  ASSERT_TRUE(left.ok() && left->status.ok()) << left->output;
  EXPECT_TRUE(soon([&] {
    return node->Find<TaskActor>(kTask2, "").status().code() == absl::StatusCode::kNotFound;
  }));
  EXPECT_TRUE(node->Find<TaskActor>(kTask1, "").ok());
}

TEST_F(ClusterActorsTest, GraphsAskActorsOfOtherProcesses) {
  auto node = Join(1);
  caf::actor doubler = node->system().spawn(Doubler);
  auto published = node->Publish("doubler", doubler);
  ASSERT_TRUE(published.ok()) << published.status();
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})});
  Output y = x;
  for (const char* task : {kTask0, kTask1}) {
    y = ops::AskActor(s.WithDevice(task), {y}, "doubler", {ElementType::kFloat})[0];
  }
  auto session = Connect(s.graph());
  auto run = [&]() -> absl::StatusOr<float> {
    TROUPE_ASSIGN_OR_RETURN(const Tensors fetched,
                            session->Run({{x, Tensor::Scalar<float>(3)}}, {y}));
    return fetched[0].unchecked_scalar<float>();
  };
  absl::StatusOr<float> value = run();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 12);

  // The name is taken, here and elsewhere.
  auto other = Join();
  EXPECT_EQ(other->Publish("doubler", other->system().spawn(Doubler)).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(node->Publish("doubler", doubler).status().code(), absl::StatusCode::kAlreadyExists);
  // The other node finds it, and asks over a connection of its own.
  auto handle = other->Find<GraphActor>("", "doubler");
  ASSERT_TRUE(handle.ok()) << handle.status();
  auto four = Ask<Tensors>(other->system(), *handle, ask_atom_v, Tensors{Tensor::Scalar<float>(2)});
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_EQ(four->at(0).unchecked_scalar<float>(), 4);

  // A task that is killed and back knows the name again.
  workers_[1].reset();
  StartTask(1);
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  do {
    value = run();
  } while (!value.ok() && Clock::now() < deadline);
  ASSERT_TRUE(value.ok()) << value.status();

  // The actor ends: the node's error. The publication ends: another one takes the name.
  anon_send_exit(doubler, caf::exit_reason::user_shutdown);
  do {
    value = run();
  } while (value.ok() && Clock::now() < deadline);
  EXPECT_EQ(value.status().code(), absl::StatusCode::kUnavailable) << value.status();
  { PublishedActor ends = *std::move(published); }
  absl::StatusOr<PublishedActor> again = absl::UnknownError("");
  do {
    again = other->Publish("doubler", other->system().spawn(Doubler));
  } while (absl::IsAlreadyExists(again.status()) && Clock::now() < deadline);
  ASSERT_TRUE(again.ok()) << again.status();
  value = run();
  ASSERT_TRUE(value.ok()) << value.status();
  // Its process leaves.
  { PublishedActor ends = *std::move(again); }
  other.reset();
  value = run();
  EXPECT_EQ(value.status().code(), absl::StatusCode::kNotFound) << value.status();
}

TEST_F(ClusterActorsTest, TensorsOfAllSizesComeInOrder) {
  auto sender = Join(0), receiver = Join(1);
  constexpr int kCount = 400;
  std::promise<std::vector<int>> seen;
  auto collect = [&](caf::event_based_actor*) -> caf::behavior {
    auto numbers = std::make_shared<std::vector<int>>();
    return {[numbers, &seen](int number, const Tensors& tensors) {
      // Each tensor is filled with the number.
      for (const Tensor& tensor : tensors) {
        for (float x : tensor.unchecked_values<float>()) {
          if (x != static_cast<float>(number)) number = -1;
        }
      }
      numbers->push_back(number);
      if (numbers->size() == kCount) seen.set_value(*numbers);
    }};
  };
  auto published = receiver->Publish("collector", receiver->system().spawn(collect));
  ASSERT_TRUE(published.ok()) << published.status();
  auto handle = sender->Find<caf::actor>("", "collector");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(sender->system());
  std::mt19937 random(7);
  for (int i = 0; i < kCount; ++i) {
    Tensors tensors;
    for (uint32_t j = random() % 4; j > 0; --j) {
      const int64_t size = int64_t{1} << (random() % 19);
      Tensor tensor = *Tensor::Allocate(ElementType::kFloat, Shape({size}));
      for (float& x : tensor.mutable_values<float>()) x = static_cast<float>(i);
      tensors.push_back(std::move(tensor));
    }
    self->send(*handle, i, std::move(tensors));
  }
  auto future = seen.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const std::vector<int> numbers = future.get();
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], i);
}

TEST_F(ClusterActorsTest, MessagesOfTheApplicationAndHandlesTravel) {
  auto first = Join(0), second = Join(1), third = Join(0);
  // Gives the handle that it is told to whoever asks.
  auto keeper = [](caf::event_based_actor*) -> caf::behavior {
    auto kept = std::make_shared<caf::actor>();
    return {[kept](caf::put_atom, const caf::actor& actor) { *kept = actor; },
            [kept](caf::get_atom) { return *kept; }};
  };
  auto mirror = [](caf::event_based_actor*) -> caf::behavior {
    return {[](Point p) {
      ++p.x;
      p.name += "!";
      p.more.push_back(p.x);
      return p;
    }};
  };
  auto published = first->Publish("keeper", first->system().spawn(keeper));
  ASSERT_TRUE(published.ok()) << published.status();
  caf::actor mirror_actor = second->system().spawn(mirror);
  {
    caf::scoped_actor self(second->system());
    self->request(*second->Find<caf::actor>("", "keeper"), caf::infinite, caf::put_atom_v,
                  mirror_actor)
        .receive([] {}, [](const caf::error& e) { FAIL() << ToStatus(e); });
  }
  // The third process has no connection to the second one yet.
  auto keeper_handle = third->Find<caf::actor>("", "keeper");
  ASSERT_TRUE(keeper_handle.ok()) << keeper_handle.status();
  auto handle = Ask<caf::actor>(third->system(), *keeper_handle, caf::get_atom_v);
  ASSERT_TRUE(handle.ok()) << handle.status();
  auto point = Ask<Point>(third->system(), *handle, Point{4, "p", {1}});
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(point->x, 5);
  EXPECT_EQ(point->name, "p!");
  EXPECT_THAT(point->more, ElementsAre(1, 5));
  // What cannot travel is refused, and nobody else is concerned.
  auto none = Ask<Point>(third->system(), *handle, Unregistered{1});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument) << none.status();
  // A task does not know the application's types.
  auto task = third->FindAny(kTask0, ActorKind::kTask, "", absl::Seconds(5));
  ASSERT_TRUE(task.ok()) << task.status();
  none = Ask<Point>(third->system(), caf::actor_cast<caf::actor>(*task), Point{});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument) << none.status();
  EXPECT_THAT(none.status().message(), HasSubstr("types"));

  // The second process leaves: monitors fire, what was asked fails.
  caf::scoped_actor self(third->system());
  self->monitor(*handle);
  mirror_actor = nullptr;
  second.reset();
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_TRUE(down);
  point = Ask<Point>(third->system(), *handle, Point{});
  EXPECT_EQ(point.status().code(), absl::StatusCode::kUnavailable) << point.status();
  // And so does what is asked of a handle of its that comes later.
  handle = Ask<caf::actor>(third->system(), *keeper_handle, caf::get_atom_v);
  if (handle.ok() && *handle != nullptr) {
    point = Ask<Point>(third->system(), *handle, Point{});
    EXPECT_EQ(point.status().code(), absl::StatusCode::kUnavailable) << point.status();
  }
}

TEST_F(ClusterActorsTest, WhoIsKilledIsMissedAtOnceAndWhoIsFrozenInTime) {
  auto node = Join();
  auto task = node->Find<TaskActor>(kTask1, "");
  ASSERT_TRUE(task.ok()) << task.status();
  caf::scoped_actor self(node->system());
  for (const bool killed : {false, true}) {
    self->monitor(*task);
    const auto since = Clock::now();
    kill(workers_[1]->pid(), killed ? SIGKILL : SIGSTOP);
    absl::StatusOr<TaskStatus> status = TaskStatus();
    // It may still answer before the signal reaches it.
    while (status.ok()) status = Ask<TaskStatus>(node->system(), *task, status_atom_v);
    EXPECT_EQ(status.status().code(), absl::StatusCode::kUnavailable) << status.status();
    bool down = false;
    self->receive([&](const caf::down_msg&) { down = true; },
                  caf::after(std::chrono::seconds(5)) >> [] {});
    EXPECT_TRUE(down);
    EXPECT_LT(Clock::now() - since, std::chrono::seconds(killed ? 1 : 5));
    if (!killed) kill(workers_[1]->pid(), SIGCONT);
    if (killed) {
      workers_[1].reset();
      StartTask(1);
    }
    // It is found again; the handle of before stays dead.
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    absl::StatusOr<TaskActor> again = absl::UnknownError("");
    do {
      again = node->Find<TaskActor>(kTask1, "", absl::Seconds(2));
    } while (!again.ok() && Clock::now() < deadline);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(Ask<TaskStatus>(node->system(), *again, status_atom_v).ok());
    EXPECT_FALSE(Ask<TaskStatus>(node->system(), *task, status_atom_v).ok());
    task = again;
  }
}

/// What the actor hears of somebody's end, in order.
using Exits = std::vector<std::pair<caf::actor_addr, caf::error>>;
/// Links itself with whom it is told, says so, and outlives all but kills.
caf::behavior Linker(caf::event_based_actor* self) {
  auto exits = std::make_shared<Exits>();
  self->set_exit_handler(
      [exits](const caf::exit_msg& exit) { exits->emplace_back(exit.source, exit.reason); });
  return {[self](caf::link_atom, const caf::actor& other) { self->link_to(other); },
          [self](caf::unlink_atom, const caf::actor& other) { self->unlink_from(other); },
          [exits](caf::get_atom) {
            const auto [source, reason] = exits->empty() ? Exits::value_type() : exits->front();
            return std::make_tuple(static_cast<int64_t>(exits->size()), reason);
          }};
}

/// What ends of its peers a `Linker` of `system` has heard of, once there is one: their number and
/// the first one's reason.
std::pair<int64_t, caf::error> ExitsOf(caf::actor_system& system, const caf::actor& linker) {
  std::pair<int64_t, caf::error> heard;
  caf::scoped_actor self(system);
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  do {
    self->request(linker, caf::infinite, caf::get_atom_v)
        .receive(
            [&](int64_t number, const caf::error& reason) {
              heard = {number, reason};
            },
            [&](const caf::error& error) {
              heard = {-1, error};
            });
  } while (heard.first == 0 && Clock::now() < deadline);
  return heard;
}

/// Has `linker` link itself (or unlink), and waits until it has.
template <typename Atom>
void Tell(caf::actor_system& system, const caf::actor& linker, Atom atom, const caf::actor& other) {
  caf::scoped_actor self(system);
  self->request(linker, caf::infinite, atom, other)
      .receive([] {}, [](const caf::error& error) { FAIL() << ToStatus(error); });
}

/// The reasons with which actors end in these tests. CAF hands on a kill as such.
std::vector<caf::error> Ends() {
  return {caf::error(), caf::make_error(caf::sec::runtime_error, std::string("why")),
          caf::make_error(caf::exit_reason::user_shutdown)};
}

TEST_F(ClusterActorsTest, WhoIsLinkedWithAnotherProcessHearsOfItsEnd) {
  auto near = Join(0), far = Join(1);
  caf::actor_system &here = near->system(), &there = far->system();
  for (const bool far_links : {false, true}) {
    for (const caf::error& reason : Ends()) {
      SCOPED_TRACE(caf::to_string(reason) + (far_links ? ", linked from there" : ""));
      // Ends with the reason when it is told.
      auto mortal = [reason](caf::event_based_actor* self) -> caf::behavior {
        return {[self](caf::link_atom, const caf::actor& other) { self->link_to(other); },
                [self, reason](caf::tick_atom) { self->quit(reason); }};
      };
      const caf::actor doomed = there.spawn(mortal), linker = here.spawn(Linker);
      auto published = far->Publish("doomed", doomed);
      ASSERT_TRUE(published.ok()) << published.status();
      auto found = near->Find<caf::actor>("", "doomed");
      ASSERT_TRUE(found.ok()) << found.status();
      if (far_links) {
        Tell(here, *found, caf::link_atom_v, linker);
      } else {
        Tell(here, linker, caf::link_atom_v, *found);
      }
      caf::anon_send(*found, caf::tick_atom_v);
      const auto [number, heard] = ExitsOf(here, linker);
      EXPECT_EQ(number, 1);
      EXPECT_EQ(heard, reason);
      // It has ended already.
      const caf::actor late = here.spawn(Linker);
      Tell(here, late, caf::link_atom_v, *found);
      EXPECT_EQ(ExitsOf(here, late), std::make_pair(int64_t{1}, reason));
      caf::anon_send_exit(linker, caf::exit_reason::kill);
      caf::anon_send_exit(late, caf::exit_reason::kill);
    }
  }
}

TEST_F(ClusterActorsTest, LinksEndAsTheyDoWithinAProcess) {
  auto near = Join(0), far = Join(1);
  caf::actor_system &here = near->system(), &there = far->system();
  caf::actor other = there.spawn(Linker);
  auto published = far->Publish("other", other);
  ASSERT_TRUE(published.ok()) << published.status();
  auto found = near->Find<caf::actor>("", "other");
  ASSERT_TRUE(found.ok()) << found.status();

  // Who links itself, and ends at once or when it is unlinked again.
  auto brief = [&](bool unlink) {
    return here.spawn([&, unlink](caf::event_based_actor* self) {
      self->link_to(*found);
      if (unlink) self->unlink_from(*found);
      self->quit(caf::make_error(caf::sec::runtime_error, std::string(unlink ? "un" : "linked")));
    });
  };
  brief(true);
  brief(false);
  const auto heard =
      std::make_pair(int64_t{1}, caf::make_error(caf::sec::runtime_error, std::string("linked")));
  EXPECT_EQ(ExitsOf(there, other), heard);

  // A kill is handed on, also to who would survive all else; not after an unlink.
  const caf::actor tied = here.spawn(Linker), free = here.spawn(Linker);
  for (const caf::actor& linker : {tied, free}) Tell(here, linker, caf::link_atom_v, *found);
  Tell(here, free, caf::unlink_atom_v, *found);
  caf::anon_send_exit(other, caf::exit_reason::kill);
  EXPECT_EQ(ExitsOf(here, tied).first, -1);
  EXPECT_EQ(ToStatus(ExitsOf(here, tied).second).code(), absl::StatusCode::kUnavailable);
  caf::scoped_actor self(here);
  int64_t number = -1;
  self->request(free, caf::infinite, caf::get_atom_v)
      .receive([&](int64_t n, const caf::error&) { number = n; }, [](const caf::error&) {});
  EXPECT_EQ(number, 0);

  // The process leaves: who links itself there hears what monitors do, either way.
  const caf::actor first = here.spawn(Linker);
  caf::actor last = there.spawn(Linker);
  auto last_published = far->Publish("last", last);
  ASSERT_TRUE(last_published.ok()) << last_published.status();
  auto last_found = near->Find<caf::actor>("", "last");
  ASSERT_TRUE(last_found.ok()) << last_found.status();
  Tell(here, free, caf::link_atom_v, *last_found);
  Tell(here, *last_found, caf::link_atom_v, first);
  self->monitor(*last_found);
  { PublishedActor ends = *std::move(published); }
  { PublishedActor ends = *std::move(last_published); }
  other = last = caf::actor();  // of a system that ends
  far.reset();
  caf::error why;
  self->receive([&](const caf::down_msg& down) { why = down.reason; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_EQ(why, caf::make_error(caf::exit_reason::remote_link_unreachable));
  EXPECT_EQ(ExitsOf(here, free), std::make_pair(int64_t{1}, why));
  EXPECT_EQ(ExitsOf(here, first), std::make_pair(int64_t{1}, why));
}

TEST_F(ClusterActorsTest, WhoIsLinkedWithARoleEndsWithItsTask) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output v =
      ops::VarHandleOp(on_1, ElementType::kFloat, PartialShape({}), {.shared_name = "weight"});
  Node* init = ops::AssignVariableOp(on_1, v, ops::Const(on_1, Tensor::Scalar<float>(1)));
  Output queue = ops::FIFOQueueV2(on_1, {ElementType::kFloat},
                                  {.shapes = {PartialShape({})}, .shared_name = "numbers"});
  Output accumulator = ops::ConditionalAccumulator(on_1, ElementType::kFloat, PartialShape({}),
                                                   {.shared_name = "gradients"});
  Output sum = ops::AccumulatorNumAccumulated(on_1, accumulator);
  Node* put = ops::QueueEnqueueV2(on_1, queue, {ops::Const(on_1, Tensor::Scalar<float>(1))});
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  ASSERT_TRUE(session->RunTargets({init, put, sum.node}).ok());
  auto node = Join();
  const std::pair<ActorKind, const char*> roles[] = {{ActorKind::kTask, ""},
                                                     {ActorKind::kDevice, "CPU:0"},
                                                     {ActorKind::kVariable, "weight"},
                                                     {ActorKind::kQueue, "numbers"},
                                                     {ActorKind::kAccumulator, "gradients"}};
  std::vector<caf::actor> linked;
  for (const auto& [kind, name] : roles) {
    auto role = node->FindAny(kTask1, kind, name, absl::Seconds(10));
    ASSERT_TRUE(role.ok()) << name << ": " << role.status();
    const caf::actor handle = caf::actor_cast<caf::actor>(*role);
    // One that ends, which no role does on that account, and one that stays.
    for (const bool ends : {true, false}) {
      linked.push_back(node->system().spawn(Linker));
      Tell(node->system(), linked.back(), caf::link_atom_v, handle);
      if (!ends) continue;
      caf::anon_send_exit(linked.back(), caf::exit_reason::kill);
      linked.pop_back();
    }
  }
  // A session is where its client is: another node.
  auto client = Join(1);
  auto local = Session::Create(s.graph());
  ASSERT_TRUE(local.ok()) << local.status();
  auto published =
      client->Publish("model", caf::actor_cast<caf::actor>(MakeSessionActor(
                                   client->system(), std::shared_ptr<Session>(*std::move(local)))));
  ASSERT_TRUE(published.ok()) << published.status();
  auto model = node->Find<caf::actor>("", "model");
  ASSERT_TRUE(model.ok()) << model.status();
  linked.push_back(node->system().spawn(Linker));
  Tell(node->system(), linked.back(), caf::link_atom_v, *model);
  { PublishedActor ends = *std::move(published); }
  client.reset();

  auto size = node->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*Ask<int64_t>(node->system(), *size, size_atom_v), 1);
  kill(workers_[1]->pid(), SIGKILL);
  const auto lost =
      std::make_pair(int64_t{1}, caf::make_error(caf::exit_reason::remote_link_unreachable));
  for (size_t i = 0; i < linked.size(); ++i) {
    EXPECT_EQ(ExitsOf(node->system(), linked[i]), lost) << i;
  }
}

TEST_F(ClusterActorsTest, AnActorThatDoesNotKeepUpIsNotSentMore) {
  auto node = Join(0), slow_node = Join(1);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> handled{0};
  auto slow = [&](caf::blocking_actor* self) {
    gone.wait();
    bool idle = false;
    while (!idle) {
      self->receive([&](int) { ++handled; },
                    caf::after(std::chrono::milliseconds(500)) >> [&] { idle = true; });
    }
  };
  auto published = slow_node->Publish("slow", slow_node->system().spawn<caf::detached>(slow));
  ASSERT_TRUE(published.ok()) << published.status();
  auto handle = node->Find<caf::actor>("", "slow");
  ASSERT_TRUE(handle.ok()) << handle.status();
  caf::scoped_actor self(node->system());
  constexpr int kTells = 1000000;
  for (int i = 0; i < kTells; ++i) self->send(*handle, i);
  int refused = 0;
  absl::Status why;
  while (self->has_next_message()) {
    self->receive([&](const caf::error& error) {
      why = ToStatus(error);
      ++refused;
    });
  }
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  EXPECT_EQ(refused, kTells - 10000);
  // Others are not concerned.
  auto task = node->Find<TaskActor>(kTask1, "");
  ASSERT_TRUE(task.ok());
  EXPECT_TRUE(Ask<TaskStatus>(node->system(), *task, status_atom_v).ok());
  go.set_value();
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (handled < 10000 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the other process's actor works
  }
  EXPECT_EQ(handled, 10000);
}

TEST_F(ClusterActorsTest, ASessionIsAnActor) {
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({2})});
  Output y = ops::Mul(s, x, x);
  auto session = Session::Create(s.graph());
  ASSERT_TRUE(session.ok());
  auto node = Join(0), user = Join(1);
  auto published =
      node->Publish("model", caf::actor_cast<caf::actor>(MakeSessionActor(
                                 node->system(), std::shared_ptr<Session>(*std::move(session)))));
  ASSERT_TRUE(published.ok()) << published.status();
  auto model = user->Find<SessionActor>("", "model");
  ASSERT_TRUE(model.ok()) << model.status();
  using Names = std::vector<std::string>;
  auto answer = Ask<Tensors>(user->system(), *model, run_atom_v,
                             NamedTensors{{x.name(), Tensor::Vector<float>({3, 4})}},
                             Names{y.name()}, Names{});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->at(0).unchecked_values<float>(), ElementsAre(9, 16));
  answer =
      Ask<Tensors>(user->system(), *model, run_atom_v, NamedTensors{}, Names{"nowhere:0"}, Names{});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound) << answer.status();
}

TEST_F(ClusterActorsTest, ATaskOfThisProcessIsANode) {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  auto cluster = ClusterSpec::Parse("{\"ps\": [\"" + address + "\"]}");
  ASSERT_TRUE(cluster.ok());
  Config config;
  auto server = Server::Start({.cluster = *cluster, .job = "ps", .task = 0});
  ASSERT_TRUE(server.ok()) << server.status();
  auto node = ClusterNode::Of(**server, {.config = &config});
  ASSERT_TRUE(node.ok()) << node.status();
  auto published = (*node)->Publish("doubler", (*node)->system().spawn(Doubler));
  ASSERT_TRUE(published.ok()) << published.status();
  auto client = ClusterNode::Join({.target = (*server)->target()});
  ASSERT_TRUE(client.ok()) << client.status();
  auto handle = (*client)->Find<GraphActor>("", "doubler", absl::InfiniteDuration());
  ASSERT_TRUE(handle.ok()) << handle.status();
  auto four =
      Ask<Tensors>((*client)->system(), *handle, ask_atom_v, Tensors{Tensor::Scalar<float>(2)});
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_EQ(four->at(0).unchecked_scalar<float>(), 4);
  auto here = (*node)->Find<TaskActor>("/job:ps/task:0", "");
  EXPECT_TRUE(here.ok()) << here.status();
  Config another;
  EXPECT_EQ(ClusterNode::Of(**server, {.config = &another}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ClusterActorsTest, NobodyIsThere) {
  auto node = ClusterNode::Join(
      {.target = "troupe://127.0.0.1:1", .heartbeat_timeout = absl::Milliseconds(300)});
  EXPECT_EQ(node.status().code(), absl::StatusCode::kUnavailable) << node.status();
  EXPECT_EQ(ClusterNode::Join({.target = "nonsense"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ClusterNode::Join({.target = Target(0), .address = "nonsense"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
