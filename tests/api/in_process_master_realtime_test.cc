// Sessions whose master is in this process, with and without a network in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "api/cluster.h"
#include "api/troupe.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "tests/api/free_port.h"
#include "tests/api/unknown_ops_graph.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// One task. A target that names its host otherwise than the cluster leads over the network.
class InProcessMasterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    port_ = FreePort();
    options_.cluster = *ClusterSpec::Create({{"worker", {"127.0.0.1:" + std::to_string(port_)}}});
    options_.job = "worker";
    server_ = *Server::Start(options_);
    Scope s = Scope::NewRoot();
    x_ = ops::Placeholder(s, ElementType::kFloat);
    twice_ = ops::Add(s, x_, x_);
    minus_ = ops::Neg(s, x_);
    forever_ = WhileLoop(
        s, {Output(ops::Const(s, Tensor::Scalar<float>(0)))},
        [](const Scope& in, absl::Span<const Output> v) {
          return Output(ops::GreaterEqual(in, v[0], ops::ZerosLike(in, v[0])));
        },
        [](const Scope& in, absl::Span<const Output> v) {
          return std::vector<Output>{ops::Identity(in, v[0])};
        })[0];
    ASSERT_TRUE(s.status().ok()) << s.status();
    graph_ = s.graph();
  }
  std::unique_ptr<Session> Connect() {
    auto session = Session::Create(
        graph_, {.target = std::string("troupe://") + GetParam() + ":" + std::to_string(port_)});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  int port_ = 0;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  Output x_, twice_, minus_, forever_;
  std::shared_ptr<Graph> graph_;
};

TEST_P(InProcessMasterTest, LargeFeedsAndFetches) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  // Within a message; beside it; more than a message may have; more than one chunk.
  for (int64_t n : {1, 100, 5000, 300000, 3000000}) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 1.0f);
    auto result = session->Run({{x_, Tensor::Vector<float>(values)}}, {twice_, minus_});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].unchecked_data<float>()[n - 1], 2 * values[n - 1]);
    EXPECT_EQ((*result)[1].unchecked_data<float>()[n / 2], -values[n / 2]);
  }
}

TEST_P(InProcessMasterTest, OpsThatNobodyHasRegisteredAreRefusedByTheMaster) {
  graph_ = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(TrainingGraphWithUnknownOps(), {}, graph_.get()).ok());
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run({}, {}, {"init"}, nullptr).ok());
  const NamedTensors data = {{"x", Tensor::Vector<float>({0, 1, 2})},
                             {"y", Tensor::Vector<float>({1, 3, 5})}};
  std::vector<Tensor> values;
  absl::Status status = session->Run(data, {"loss"}, {"train"}, &values);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FLOAT_EQ(*values[0].scalar<float>(), 35.0f / 3);
  status = session->Run(data, {"summaries/summaries:0"}, {}, &values);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  for (const char* op : {"HistogramSummary", "MergeSummary", "ScalarSummary"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("Nobodys") + op));
  }
  // The client may know less than the master: which outputs there are is the master's to say.
  status = session->Run({}, {"save/SaveV2:3"}, {}, &values);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  // Fed, and extended behind what is not known.
  GraphDef more;
  NodeDef* node = more.add_node();
  node->set_name("more");
  node->set_op("Neg");
  node->add_input("save/RestoreV2:3");
  (*node->mutable_attr())["T"].set_type(DT_FLOAT);
  ASSERT_TRUE(session->Extend(more).ok());
  status = session->Run({{"save/RestoreV2:3", Tensor::Scalar(3.0f)}}, {"more"}, {}, &values);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*values[0].scalar<float>(), -3);
}

TEST_P(InProcessMasterTest, SessionsOutliveTheirServer) {
  auto session = Connect(), idle = Connect();
  ASSERT_TRUE(session->Run({{x_, Tensor::Scalar<float>(1)}}, {twice_}).ok());
  ASSERT_TRUE(server_->Stop().ok());
  const absl::Status status = session->Run({{x_, Tensor::Scalar<float>(1)}}, {twice_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(port_)));
  EXPECT_TRUE(session->Close().ok());
  server_.reset();
  idle.reset();
}

TEST_P(InProcessMasterTest, AStopEndsStepsThatRun) {
  auto session = Connect();
  std::future<absl::Status> run =
      std::async(std::launch::async, [&] { return session->Run({forever_}).status(); });
  // The step should be under way; if it is not yet, it is refused, and the test holds as well.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(server_->Stop(absl::Milliseconds(50)).ok());
  ASSERT_EQ(run.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  const absl::StatusCode code = run.get().code();
  EXPECT_TRUE(code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kCancelled);
}

TEST_P(InProcessMasterTest, DeadlinesHold) {
  auto session = Connect();
  RunOptions options;
  options.timeout = absl::Milliseconds(100);
  const absl::Time before = absl::Now();
  EXPECT_EQ(session->Run(FeedMap{}, {forever_}, {}, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - before, absl::Seconds(4));
}

TEST_P(InProcessMasterTest, ManyThreadsWhileItStops) {
  auto session = Connect();
  ASSERT_TRUE(session->Run({{x_, Tensor::Scalar<float>(1)}}, {twice_}).ok());
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (true) {
        auto result = session->Run({{x_, Tensor::Scalar<float>(2)}}, {twice_});
        if (result.ok()) {
          ++good;
          EXPECT_EQ((*result)[0].unchecked_data<float>()[0], 4);
          continue;
        }
        EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
        ++bad;
        return;
      }
    });
  }
  while (good < 200) std::this_thread::yield();
  EXPECT_TRUE(server_->Stop().ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 4);
}

TEST_P(InProcessMasterTest, AnswersOfRunAsyncComeOnce) {
  auto session = Connect();
  std::promise<absl::StatusOr<std::vector<Tensor>>> answer;
  session->RunAsync(
      {{x_.name(), Tensor::Scalar<float>(3)}}, {twice_.name()}, {},
      [&](absl::StatusOr<std::vector<Tensor>> values) { answer.set_value(std::move(values)); });
  auto values = answer.get_future().get();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_data<float>()[0], 6);
}

/// Whoever ends a session waits for its callbacks, but not for the one that holds it.
TEST_P(InProcessMasterTest, ACallbackMayHoldTheSessionLast) {
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 8; ++i) {
    std::shared_ptr<Session> session = Connect();
    ASSERT_NE(session, nullptr);
    const std::weak_ptr<Session> known = session;
    session->RunAsync({{x_.name(), Tensor::Scalar<float>(3)}}, {twice_.name()}, {},
                      [session](const auto& values) { EXPECT_TRUE(values.ok()); });
    session.reset();
    while (!known.expired()) std::this_thread::yield();
  }
  // Those that end sessions have threads of the server's.
  EXPECT_NE(Connect(), nullptr);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST_P(InProcessMasterTest, RunAsyncTakesOptions) {
  auto session = Connect();
  const NamedTensors feeds = {{x_.name(), Tensor::Scalar<float>(3)}};
  RunOptions options;
  options.timeout = absl::Milliseconds(200);
  options.trace = true;
  RunMetadata metadata;
  std::promise<absl::Status> late, traced, wrong;
  session->RunAsync(options, {}, {forever_.name()}, {}, [&](const auto& values) {
    late.set_value(values.status());
    throw std::runtime_error("the actor goes on");
  });
  EXPECT_EQ(late.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  options.timeout = absl::Hours(24 * 365) * 10000;
  session->RunAsync(
      options, feeds, {twice_.name()}, {},
      [&](const auto& values) { traced.set_value(values.status()); }, &metadata);
  EXPECT_TRUE(traced.get_future().get().ok());
  EXPECT_GT(metadata.step_stats().dev_stats_size(), 0);
  session->RunAsync({}, {"nobody"}, {},
                    [&](const auto& values) { wrong.set_value(values.status()); });
  EXPECT_EQ(wrong.get_future().get().code(), absl::StatusCode::kNotFound);
}

TEST_P(InProcessMasterTest, ListDevicesSaysThatTheMasterIsGone) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->ListDevices().value().size(), 1u);
  EXPECT_TRUE(server_->Stop().ok());
  const auto devices = session->ListDevices();
  EXPECT_FALSE(devices.ok()) << "an error, not a list of none";
}

TEST_P(InProcessMasterTest, ItsSessionsAreClosedWithIt) {
  for (int i = 0; i < 3; ++i) {
    auto session = Connect();
    ASSERT_TRUE(session->Run({{x_, Tensor::Scalar<float>(1)}}, {twice_}).ok());
  }
  // A server without sessions stops at once.
  const absl::Time before = absl::Now();
  EXPECT_TRUE(server_->Stop().ok());
  EXPECT_LT(absl::Now() - before, absl::Seconds(3));
}

INSTANTIATE_TEST_SUITE_P(Ways, InProcessMasterTest, testing::Values("127.0.0.1", "localhost"),
                         [](const auto& info) {
                           return info.index == 0 ? std::string("Call") : std::string("Network");
                         });

}  // namespace
}  // namespace troupe
