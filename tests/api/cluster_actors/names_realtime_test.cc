// Who is found in a cluster of processes: members, and actors that are published.
#include "devices/status_macros.h"
#include "tests/api/cluster_actors/cluster_actors.h"

namespace troupe {
namespace {

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
  absl::StatusOr<TaskActor> task = absl::UnknownError("not asked");
  ASSERT_TRUE(Soon([&] { return (task = node->Find<TaskActor>(kTask2, "")).ok(); }))
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
  EXPECT_TRUE(Soon([&] { return (doubled = (*session)->Run({asked})).ok(); })) << doubled.status();
  if (doubled.ok()) {
    EXPECT_EQ(doubled->at(0).unchecked_scalar<float>(), 8);
  }

  // One that has left is none any more.
  const auto left = RunProgram(
      {.arguments = {ProgramFolder() + "/troupe", "leave", "--master", Target(0), "--task", kTask2},
       .output = true});
  ASSERT_TRUE(left.ok() && left->status.ok()) << left->output;
  EXPECT_TRUE(Soon([&] {
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
