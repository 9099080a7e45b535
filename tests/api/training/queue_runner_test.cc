#include "api/training/queue_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "api/troupe.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A queue of numbers, which come from another one that ends; -1: of ones, without end.
struct Numbers {
  explicit Numbers(int64_t most, int64_t capacity = 4) {
    const auto make = [this](const char* name, int64_t size) {
      return ops::FIFOQueueV2(s.WithOpName(name), {ElementType::kInt64},
                              {.shapes = {PartialShape({})}, .capacity = size});
    };
    queue = make("queue", capacity);
    Output next = ops::Const(s, Tensor::Scalar<int64_t>(1));
    init = ops::NoOp(s);
    if (most >= 0) {
      const Output source = make("source", most + 1);
      std::vector<int64_t> numbers(most);
      std::iota(numbers.begin(), numbers.end(), 0);
      Node* const fill = ops::QueueEnqueueManyV2(s, source, {Tensor::Vector<int64_t>(numbers)});
      init = ops::QueueCloseV2(s.WithControlDependencies({fill}), source);
      next = ops::QueueDequeueV2(s, source, {ElementType::kInt64})[0];
    }
    enqueue = ops::QueueEnqueueV2(s.WithOpName("enqueue"), queue, {next});
    dequeue = ops::QueueDequeueV2(s.WithOpName("dequeue"), queue, {ElementType::kInt64})[0];
  }
  std::unique_ptr<Session> Begin() const {
    EXPECT_TRUE(s.ok()) << s.status();
    auto session = Session::Create(s.graph(), {.threads = 2});
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->RunTargets({init}).ok());
    return *std::move(session);
  }
  absl::StatusOr<int64_t> Take(Session& session) const {
    auto values = session.Run({dequeue});
    if (!values.ok()) return values.status();
    return (*values)[0].unchecked_scalar<int64_t>();
  }

  Scope s = Scope::NewRoot();
  Output queue, dequeue;
  Node *enqueue = nullptr, *init = nullptr;
};

TEST(QueueRunner, FillsUntilItsInputEnds) {
  Numbers graph(100);
  QueueRunner(graph.s, graph.queue, {graph.enqueue, graph.enqueue, graph.enqueue});
  auto session = graph.Begin();
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
  std::map<int64_t, int> seen;
  while (true) {
    const auto value = graph.Take(*session);
    if (!value.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(value.status())) << value.status();
      break;
    }
    ++seen[*value];
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(seen.begin()->first, 0);
  EXPECT_EQ(seen.rbegin()->first, 99);
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_FALSE(coordinator.should_stop());  // It was the input's end, not somebody's wish.
}

TEST(QueueRunner, EnqueuesThatWaitEndWithTheCoordinator) {
  Numbers graph(-1, /*capacity=*/2);
  QueueRunner(graph.s, graph.queue, std::vector<Node*>(1000, graph.enqueue));
  auto session = graph.Begin();
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
  EXPECT_EQ(coordinator.members().size(), 1000u);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(graph.Take(*session).ok());
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join(absl::Seconds(30)).ok());
  EXPECT_THAT(coordinator.members(), ElementsAre());
}

TEST(QueueRunner, AnErrorStopsTheCoordinator) {
  Numbers graph(10);
  Node* const bad = ops::QueueEnqueueV2(
      graph.s.WithOpName("bad"), graph.queue,
      {ops::ReadVariableOp(graph.s,
                           ops::VarHandleOp(graph.s, ElementType::kInt64, PartialShape({})),
                           ElementType::kInt64)});
  QueueRunner(graph.s, graph.queue, {bad});
  auto session = graph.Begin();
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
  const absl::Status status = coordinator.Join(absl::Seconds(30));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue runner of queue, bad: "));
}

// The stop may come before, while or after the runner tells the coordinator how to stop it.
TEST(QueueRunner, NobodyWaitsForARunnerThatEndedAtOnce) {
  Numbers graph(-1);
  QueueRunner(graph.s, graph.queue, {graph.enqueue});
  auto session = graph.Begin();
  Coordinator coordinator;
  coordinator.RequestStop();
  ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
  EXPECT_TRUE(absl::IsOutOfRange(
      session->Run({}, {graph.dequeue}, {}, {.timeout = absl::Seconds(20)}).status()));
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST(QueueRunner, EndsWithItsSession) {
  Numbers graph(-1);
  QueueRunner(graph.s, graph.queue, {graph.enqueue, graph.enqueue});
  auto session = graph.Begin();
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
  EXPECT_TRUE(graph.Take(*session).ok());
  session.reset();
  EXPECT_TRUE(coordinator.Join(absl::Seconds(30)).ok());
  coordinator.RequestStop();
}

TEST(QueueRunner, StopsAtRandomMoments) {
  Numbers graph(-1);
  QueueRunner(graph.s, graph.queue, std::vector<Node*>(8, graph.enqueue));
  for (int round = 0; round < 50; ++round) {
    auto session = graph.Begin();
    Coordinator coordinator;
    ASSERT_TRUE(StartQueueRunners(*session, coordinator).ok());
    for (int i = 0; i < round % 7; ++i) EXPECT_TRUE(graph.Take(*session).ok());
    if (round % 3 == 0) session.reset();
    coordinator.RequestStop();
    ASSERT_TRUE(coordinator.Join(absl::Seconds(30)).ok()) << round;
  }
}

TEST(QueueRunner, IsWrittenDownAndReadBack) {
  Numbers graph(10);
  const QueueRunner runner(graph.s, graph.queue, {graph.enqueue});
  ASSERT_TRUE(graph.s.ok()) << graph.s.status();
  const auto runners = QueueRunner::OfGraph(*graph.s.graph());
  ASSERT_TRUE(runners.ok()) << runners.status();
  ASSERT_EQ(runners->size(), 1u);
  EXPECT_EQ((*runners)[0].name(), "queue");
  EXPECT_THAT((*runners)[0].enqueues(), ElementsAre(graph.enqueue));
  EXPECT_EQ((*runners)[0].ToProto().SerializeAsString(), runner.ToProto().SerializeAsString());

  QueueRunnerDef def = runner.ToProto();
  def.set_close_op_name("nowhere");
  const auto lacks = QueueRunner::FromProto(*graph.s.graph(), def);
  EXPECT_TRUE(absl::IsNotFound(lacks.status()));
  EXPECT_THAT(std::string(lacks.status().message()), HasSubstr("'nowhere'"));
  graph.s.graph()->AddToCollection(collections::kQueueRunners, "\xff\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(QueueRunner::OfGraph(*graph.s.graph()).status()));
}

TEST(QueueRunner, BadArguments) {
  for (const bool no_queue : {true, false}) {
    Numbers graph(10);
    QueueRunner runner(graph.s, no_queue ? Output() : graph.queue,
                       {no_queue ? graph.enqueue : nullptr});
    EXPECT_TRUE(absl::IsInvalidArgument(graph.s.status()));
    Coordinator coordinator;
  }
  Numbers graph(10);
  auto session = graph.Begin();
  Coordinator coordinator;
  EXPECT_TRUE(absl::IsInvalidArgument(QueueRunner().Start(*session, coordinator)));
}

}  // namespace
}  // namespace troupe
