#include "api/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "api/control_flow.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/training/variables.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "tests/api/unknown_ops_graph.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class SessionTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Session> NewSession(int threads = 2) {
    SessionOptions options;
    options.threads = threads;
    options.optimize = GetParam();
    EXPECT_TRUE(s_.ok()) << s_.status();
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  Output Placeholder(const char* name, PartialShape shape = PartialShape()) {
    return ops::Placeholder(s_.WithOpName(name), ElementType::kFloat, {.shape = shape});
  }
  Scope s_ = Scope::NewRoot();
};

INSTANTIATE_TEST_SUITE_P(Optimize, SessionTest, testing::Bool());

TEST_P(SessionTest, FeedsAndFetchesAnyTensor) {
  Output x = Placeholder("x");
  Output y = ops::Mul(s_.WithOpName("y"), x, 2.0f);
  Output z = ops::Add(s_.WithOpName("z"), y, 1.0f);
  auto session = NewSession();
  std::vector<Tensor> values;
  ASSERT_TRUE(session->Run({{"x:0", Tensor::Scalar(3.0f)}}, {"z", "y:0", "z:0"}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 7);
  EXPECT_EQ(values[1].unchecked_scalar<float>(), 6);
  EXPECT_EQ(values[2].unchecked_scalar<float>(), 7);
  ASSERT_TRUE(session->Run({{"y", Tensor::Scalar(10.0f)}}, {"z"}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 11) << "what is fed cuts off what is before it";
  auto by_output = session->Run({{x, Tensor::Scalar(1.0f)}}, {z});
  ASSERT_TRUE(by_output.ok());
  EXPECT_EQ((*by_output)[0].unchecked_scalar<float>(), 3);
}

TEST_P(SessionTest, OpsThatNobodyHasRegisteredAreRefusedWhenAStepNeedsThem) {
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(TrainingGraphWithUnknownOps(), {}, graph.get()).ok());
  for (const int devices : {1, 2}) {
    auto session =
        Session::Create(graph, {.threads = 2, .num_cpu_devices = devices, .optimize = GetParam()});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Run({}, {}, {"init"}, nullptr).ok());
    const NamedTensors data = {{"x", Tensor::Vector<float>({0, 1, 2})},
                               {"y", Tensor::Vector<float>({1, 3, 5})}};
    std::vector<Tensor> loss;
    ASSERT_TRUE((*session)->Run(data, {"loss"}, {"train"}, &loss).ok());
    EXPECT_FLOAT_EQ(*loss[0].scalar<float>(), 35.0f / 3);
    const absl::Status save = (*session)->Run({}, {}, {"save/restore_all"}, nullptr);
    EXPECT_EQ(save.code(), absl::StatusCode::kNotFound) << save;
    EXPECT_THAT(Message(save), HasSubstr("NobodysRestoreV2"));
    const absl::Status summaries = (*session)->Run(data, {"summaries/summaries"}, {}, &loss);
    EXPECT_EQ(summaries.code(), absl::StatusCode::kNotFound);
    for (const char* op : {"HistogramSummary", "MergeSummary", "ScalarSummary"}) {
      EXPECT_THAT(Message(summaries), HasSubstr(std::string("Nobodys") + op));
    }
    // What an unknown op gives can be fed like anything else.
    EXPECT_EQ((*session)
                  ->Run({{"save/RestoreV2:0", Tensor::Scalar(3.0f)}}, {"save/Assign"}, {}, &loss)
                  .code(),
              absl::StatusCode::kOk);
    // The graph may grow behind them.
    GraphDef more;
    NodeDef* node = more.add_node();
    node->set_name("more" + std::to_string(devices));
    node->set_op("Neg");
    node->add_input("save/RestoreV2:3");
    (*node->mutable_attr())["T"].set_type(DT_FLOAT);
    ASSERT_TRUE((*session)->Extend(more).ok());
    const std::string name = node->name();
    EXPECT_EQ((*session)->Run({}, {name}, {}, &loss).code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(
        (*session)->Run({{"save/RestoreV2:3", Tensor::Scalar(3.0f)}}, {name}, {}, &loss).ok());
    EXPECT_EQ(*loss[0].scalar<float>(), -3);
  }
}

TEST_P(SessionTest, ConstantsOfALoopAreExecutedOnlyWithoutOptimization) {
  const Output end = WhileLoop(
      s_, {0}, [](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], 3); },
      [](const Scope& s, absl::Span<const Output> v) {
        const Output one = Const(s.WithOpName("step"), 1);
        return std::vector<Output>{ops::Add(s, v[0], one)};
      })[0];
  auto session = NewSession();
  RunMetadata metadata;
  std::vector<Tensor> values;
  ASSERT_TRUE(session->Run({.trace = true}, {}, {end.name()}, {}, &values, &metadata).ok());
  EXPECT_EQ(*values[0].scalar<int32_t>(), 3);
  int executed = 0;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      executed += node.node_name().find("step") != std::string::npos;
    }
  }
  EXPECT_EQ(executed, GetParam() ? 0 : 3);
}

TEST_P(SessionTest, WrongRunsAreRefusedBeforeAnythingRuns) {
  Output x = Placeholder("x", PartialShape({2}));
  ops::Neg(s_.WithOpName("y"), x);
  auto session = NewSession();
  const Tensor good = Tensor::Vector<float>({1, 2});
  std::vector<Tensor> values;
  struct Case {
    NamedTensors feeds;
    std::vector<std::string> fetches, targets;
    absl::StatusCode code;
    const char* says;
  };
  const Case cases[] = {
      {{{"nothing", good}}, {"y"}, {}, absl::StatusCode::kNotFound, "nothing"},
      {{{"x", good}}, {"nothing"}, {}, absl::StatusCode::kNotFound, "nothing"},
      {{{"x", good}}, {}, {"nothing"}, absl::StatusCode::kNotFound, "nothing"},
      {{{"x", good}}, {"y:1"}, {}, absl::StatusCode::kInvalidArgument, "y"},
      {{{"x", good}, {"x:0", good}},
       {"y"},
       {},
       absl::StatusCode::kInvalidArgument,
       "more than once"},
      {{{"x", good}}, {"x"}, {}, absl::StatusCode::kInvalidArgument, "both fed and fetched"},
      {{{"x", good}}, {}, {}, absl::StatusCode::kInvalidArgument, "nothing to run"},
      {{{"x", Tensor::Vector<int32_t>({1, 2})}},
       {"y"},
       {},
       absl::StatusCode::kInvalidArgument,
       "int32"},
      {{{"x", Tensor::Vector<float>({1, 2, 3})}},
       {"y"},
       {},
       absl::StatusCode::kInvalidArgument,
       "[3]"},
      {{{"x", Tensor()}}, {"y"}, {}, absl::StatusCode::kInvalidArgument, "x"},
      {{}, {"y"}, {}, absl::StatusCode::kInvalidArgument, "x"},
  };
  for (const Case& c : cases) {
    const absl::Status status = session->Run(c.feeds, c.fetches, c.targets, &values);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(Message(status), HasSubstr(c.says));
  }
}

TEST_P(SessionTest, VariablesOutliveSteps) {
  ModelVariable v(s_, Const(s_, 1.0f), "v");
  Node* add = v.AssignAdd(s_.WithOpName("add"), 2.0f);
  auto session = NewSession();
  absl::Status status = session->Run({}, {v.value().name()}, {}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("v"));
  ASSERT_TRUE(session->RunTargets({v.initializer()}).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->RunTargets({add}).ok());
  auto value = session->Run({v.value()});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].unchecked_scalar<float>(), 7);
  ASSERT_TRUE(session->Reset().ok());
  EXPECT_FALSE(session->Run({v.value()}).ok());
  ASSERT_TRUE(session->RunTargets({v.initializer()}).ok());
  EXPECT_EQ((*session->Run({v.value()}))[0].unchecked_scalar<float>(), 1);
}

TEST_P(SessionTest, SessionsOwnTheirVariablesUnlessTheyShareARuntime) {
  ModelVariable v(s_, Const(s_, 5.0f), "v");
  auto first = NewSession();
  ASSERT_TRUE(first->RunTargets({v.initializer()}).ok());
  EXPECT_FALSE((*Session::Create(s_.graph()))->Run({v.value()}).ok());
  SessionOptions shared;
  shared.runtime = first->runtime();
  auto second = *Session::Create(s_.graph(), shared);
  EXPECT_EQ((*second->Run({v.value()}))[0].unchecked_scalar<float>(), 5);
}

TEST_P(SessionTest, ConcurrentStepsAreIndependent) {
  Output x = Placeholder("x");
  ModelVariable count(s_, Const(s_, int64_t{0}), "count");
  Node* add = count.AssignAdd(s_, Const(s_, int64_t{1}));
  Output y = ops::Square(s_.WithOpName("y"), x);
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({count.initializer()}).ok());
  auto call = session->MakeCallable({x}, {y}, {add});
  ASSERT_TRUE(call.ok());
  constexpr int kThreads = 8, kRuns = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const float in = static_cast<float>(t * kRuns + i) / 16;
        Tensor out;
        const absl::Status status = (*call)({Tensor::Scalar(in)}, absl::MakeSpan(&out, 1));
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(out.unchecked_scalar<float>(), in * in);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ((*session->Run({count.value()}))[0].unchecked_scalar<int64_t>(), kThreads * kRuns);
}

TEST_P(SessionTest, ErrorsNameNodeOpAndDevice) {
  Output x = Placeholder("x");
  ops::CheckNumerics(s_.WithOpName("check"), x, "weights exploded");
  auto session = NewSession();
  const absl::Status status = session->Run(
      {{"x", Tensor::Scalar(std::numeric_limits<float>::infinity())}}, {"check"}, {}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"weights exploded", "check", "CheckNumerics", "CPU:0"}) {
    EXPECT_THAT(Message(status), HasSubstr(part));
  }
}

TEST_P(SessionTest, PartialRunsAreFedAndFetchedInPieces) {
  Output a = Placeholder("a"), b = Placeholder("b");
  Output x = ops::Neg(s_.WithOpName("x"), a);
  ops::Add(s_.WithOpName("y"), x, b);
  auto session = NewSession();
  auto handle = session->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> values;
  EXPECT_EQ(session->PartialRun(*handle, {}, {"x"}, &values).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {"x"}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), -2);
  EXPECT_FALSE(session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {"y"}, &values).ok());
  ASSERT_TRUE(session->PartialRun(*handle, {{"b", Tensor::Scalar(5.0f)}}, {"y"}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 3);
  EXPECT_FALSE(session->PartialRun(*handle, {}, {"y"}, &values).ok()) << "the run is over";
  auto open = session->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(open.ok());
  EXPECT_TRUE(session->Close().ok()) << "an unfinished partial run does not hold up closing";
}

TEST_P(SessionTest, PartialRunsHaveDeadlines) {
  Output a = Placeholder("a"), b = Placeholder("b");
  Output queue = ops::FIFOQueueV2(s_, {ElementType::kFloat});
  ops::Neg(s_.WithOpName("x"), a);
  ops::Add(s_.WithOpName("y"), ops::QueueDequeueV2(s_, queue, {ElementType::kFloat})[0], b);
  auto session = NewSession();
  RunOptions soon;
  soon.timeout = absl::Milliseconds(500);
  std::vector<Tensor> values;
  // A piece that waits at the queue.
  auto handle = session->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {"x"}, &values).ok());
  EXPECT_EQ(
      session->PartialRun(*handle, {{"b", Tensor::Scalar(1.0f)}}, {"y"}, &values, soon).code(),
      absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(session->PartialRun(*handle, {}, {}, &values).code(),
            absl::StatusCode::kInvalidArgument)
      << "it is over";
  // The whole of a run, of which nobody asks anything.
  handle = session->PartialRunSetup({"a", "b"}, {"x", "y"}, {}, soon);
  ASSERT_TRUE(handle.ok()) << handle.status();
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {"x"}, &values).code(),
            absl::StatusCode::kDeadlineExceeded);
  // One that has run, and whose value nobody has taken.
  handle = session->PartialRunSetup({"a"}, {"x"}, {}, soon);
  ASSERT_TRUE(session->PartialRun(*handle, {{"a", Tensor::Scalar(2.0f)}}, {}, &values).ok());
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(session->PartialRun(*handle, {}, {"x"}, &values).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(session->Close().ok());
}

TEST_P(SessionTest, ClosingEndsAPartialRunThatWaits) {
  Output queue = ops::FIFOQueueV2(s_, {ElementType::kFloat});
  ops::Neg(s_.WithOpName("y"), ops::QueueDequeueV2(s_, queue, {ElementType::kFloat})[0]);
  auto session = NewSession(/*threads=*/1);
  auto handle = session->PartialRunSetup({}, {"y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::thread waits([&] {
    std::vector<Tensor> values;
    EXPECT_EQ(session->PartialRun(*handle, {}, {"y"}, &values).code(),
              absl::StatusCode::kCancelled);
  });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(session->Close().ok());
  waits.join();
}

TEST_P(SessionTest, AsynchronousRunsAndClosing) {
  Output x = Placeholder("x");
  ops::Mul(s_.WithOpName("y"), x, x);
  auto session = NewSession();
  std::vector<std::promise<float>> results(20);
  for (int i = 0; i < 20; ++i) {
    session->RunAsync(
        {{"x", Tensor::Scalar(static_cast<float>(i))}}, {"y"}, {},
        [&results, i](absl::StatusOr<std::vector<Tensor>> values) {
          results[i].set_value(values.ok() ? (*values)[0].unchecked_scalar<float>() : -1);
        });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(results[i].get_future().get(), i * i);
  auto call = session->MakeCallable({"x"}, {"y"}, {});
  ASSERT_TRUE(session->Close().ok());
  Tensor out;
  EXPECT_EQ((*call)({Tensor::Scalar(1.0f)}, absl::MakeSpan(&out, 1)).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(session->Run({{"x", Tensor::Scalar(1.0f)}}, {"y"}, {}, nullptr).code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(session->Close().ok());
}

TEST_P(SessionTest, ADeadlineEndsALongStep) {
  // A chain of products that would take seconds.
  Output x =
      Const(s_, Tensor::FromValues<float>(std::vector<float>(512 * 512, 0.0f), {512, 512}).value());
  Output p = Placeholder("p", PartialShape({512, 512}));
  Output y = ops::Add(s_, x, p);
  for (int i = 0; i < 2000; ++i) y = ops::MatMul(s_, y, y);
  auto session = NewSession();
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  const absl::Time start = absl::Now();
  const absl::Status status = session->Run(
      options,
      {{"p", Tensor::FromValues<float>(std::vector<float>(512 * 512, 0.0f), {512, 512}).value()}},
      {y.name()}, {}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_P(SessionTest, MetadataHasEveryNodesTime) {
  Output x = Placeholder("x");
  ops::Neg(s_.WithOpName("b"), ops::Neg(s_.WithOpName("a"), x));
  auto session = NewSession();
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  ASSERT_TRUE(
      session->Run(options, {{"x", Tensor::Scalar(1.0f)}}, {"b"}, {}, nullptr, &metadata).ok());
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  std::vector<std::string> nodes;
  for (const auto& node : metadata.step_stats().dev_stats(0).node_stats()) {
    nodes.push_back(node.node_name());
  }
  EXPECT_THAT(nodes, testing::IsSupersetOf({"a", "b"}));
}

TEST_P(SessionTest, ExtendsItsGraph) {
  Output x = Placeholder("x");
  auto session = NewSession();
  GraphDef def;
  NodeDef* node = def.add_node();
  node->set_name("later");
  node->set_op("Neg");
  node->add_input("x");
  (*node->mutable_attr())["T"].set_type(DT_FLOAT);
  node = def.add_node();
  node->set_name("even_later");
  node->set_op("Identity");
  node->add_input("later:0");
  node->add_input("^x");
  (*node->mutable_attr())["T"].set_type(DT_FLOAT);
  const absl::Status extended = session->Extend(def);
  ASSERT_TRUE(extended.ok()) << extended;
  EXPECT_FALSE(session->Extend(def).ok()) << "the names are taken";
  Output twice = ops::Add(s_.WithOpName("twice"), x, x);
  std::vector<Tensor> values;
  ASSERT_TRUE(
      session->Run({{"x", Tensor::Scalar(4.0f)}}, {"even_later", twice.name()}, {}, &values).ok())
      << "a session sees what its graph has grown";
  EXPECT_EQ(values[0].unchecked_scalar<float>(), -4);
  EXPECT_EQ(values[1].unchecked_scalar<float>(), 8);
}

TEST_P(SessionTest, ImpossibleDevicesAreRefused) {
  ops::Neg(s_.WithOpName("y").WithDevice("/device:GPU:0"), 1.0f);
  auto session = NewSession();
  const absl::Status status = session->Run({}, {"y"}, {}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("GPU:0"));
  SessionOptions soft;
  soft.allow_soft_placement = true;
  EXPECT_TRUE((*Session::Create(s_.graph(), soft))->Run({}, {"y"}, {}, nullptr).ok());
}

TEST_P(SessionTest, ListsDevices) {
  SessionOptions options;
  options.num_cpu_devices = 2;
  auto session = Session::Create(s_.graph(), options);
  ASSERT_TRUE(session.ok());
  const std::vector<DeviceAttributes> devices = (*session)->ListDevices().value();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_NE(devices[0].incarnation, 0u);
  options.target = "localhost:1";  // No scheme. Targets that exist: cluster_realtime_test.cc.
  EXPECT_EQ(Session::Create(s_.graph(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Session::Create(nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
