// Clusters of several tasks in this process, on loopback.
#include "api/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "api/training/session_manager.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/net/recording_sink.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    cluster_ = *ClusterSpec::Create({{"ps", {host + std::to_string(FreePort())}},
                                     {"worker", {host + std::to_string(FreePort())}}});
    options_.cluster = cluster_;
    options_.heartbeat_interval = absl::Milliseconds(200);
    options_.heartbeat_timeout = absl::Seconds(1);
    options_.wait_for_workers = absl::Seconds(2);
  }
  std::unique_ptr<Server> Start(const std::string& job) {
    options_.job = job;
    auto server = Server::Start(options_);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  /// w on the parameter server, doubled on the worker.
  void BuildGraph() {
    Scope s = Scope::NewRoot();
    Scope ps = s.WithDevice("/job:ps/task:0"), worker = s.WithDevice("/job:worker/task:0");
    x_ = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({2})});
    w_ = ops::VariableV2(ps, PartialShape({2}), ElementType::kFloat);
    init_ = ops::Assign(ps, w_, Tensor::Vector<float>({1, 2}));
    y_ = ops::Mul(worker, w_, x_);
    add_ = ops::AssignAdd(ps, w_, y_);
    local_ = ops::Add(ps, x_, x_);
    ASSERT_TRUE(s.status().ok()) << s.status();
    graph_ = s.graph();
  }
  std::unique_ptr<Session> Connect(const Server& server) {
    SessionOptions options;
    options.target = server.target();
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  ClusterSpec cluster_;
  ServerOptions options_;
  Output x_, w_, init_, y_, add_, local_;
  std::shared_ptr<Graph> graph_;
};

TEST_F(ClusterTest, StepsCrossTasks) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  for (Server* master : {ps.get(), worker.get()}) {
    auto session = Connect(*master);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->Run({init_}).ok());
    const Tensor x = Tensor::Vector<float>({3, 4});
    auto values = session->Run({{x_, x}}, {y_, add_, local_});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_data<float>()[1], 8);
    EXPECT_EQ((*values)[1].unchecked_data<float>()[1], 10);
    EXPECT_EQ((*values)[2].unchecked_data<float>()[0], 6);
    auto step = session->MakeCallable({x_}, {y_});
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_GE(step->num_nodes(), 2);
    std::vector<Tensor> result(1);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE((*step)({x}, absl::MakeSpan(result)).ok());
      ASSERT_EQ(result[0].unchecked_data<float>()[0], 12);
    }
    EXPECT_EQ(session->ListDevices().value().size(), 2u);
    EXPECT_TRUE(session->Close().ok());
    EXPECT_EQ(session->Run({init_}).status().code(), absl::StatusCode::kCancelled);
  }
}

TEST_F(ClusterTest, GraphsGrowAndErrorsCross) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Run({init_}).ok());
  Scope s = Scope(graph_).WithDevice("/job:worker/task:0");
  Output shape = ops::Placeholder(s, ElementType::kInt32);
  Output reshaped = ops::Reshape(s, w_, shape);
  ASSERT_TRUE(s.status().ok());
  auto good = session->Run({{shape, Tensor::Vector<int32_t>({2, 1})}}, {reshaped});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)[0].shape().rank(), 2);
  auto bad = session->Run({{shape, Tensor::Vector<int32_t>({7})}}, {reshaped});
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("/job:worker/replica:0/task:0"));
  // The session goes on.
  EXPECT_TRUE(session->Run({{shape, Tensor::Vector<int32_t>({1, 2})}}, {reshaped}).ok());
  Output nowhere = ops::Add(Scope(graph_).WithDevice("/job:moon/task:0"), x_, x_);
  EXPECT_EQ(session->Run({{x_, Tensor::Vector<float>({1, 2})}}, {nowhere}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ClusterTest, SessionsShareContainersAndNotGraphs) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto first = Connect(*ps), second = Connect(*worker);
  ASSERT_TRUE(first->Run({init_}).ok());
  ASSERT_TRUE(first->Run({{x_, Tensor::Vector<float>({1, 1})}}, {add_}).ok());
  auto read = second->Run({w_});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].unchecked_data<float>()[1], 4);
  ASSERT_TRUE(first->Reset().ok());
  EXPECT_EQ(second->Run({w_}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ClusterTest, MissingWorkerIsNamed) {
  auto ps = Start("ps");
  BuildGraph();
  SessionOptions options;
  options.target = ps->target();
  const absl::Status status = Session::Create(graph_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/replica:0/task:0"));
}

TEST_F(ClusterTest, AnotherTaskAtAnAddressIsNamed) {
  auto ps = Start("ps");
  const std::string there = *cluster_.Address({"worker", 0});
  options_.cluster = *ClusterSpec::Create({{"moon", {there}}});
  auto moon = Start("moon");
  BuildGraph();
  SessionOptions options;
  options.target = ps->target();
  const absl::Status status = Session::Create(graph_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("at " + there +
                        ": refused by the peer: this is task /job:moon/replica:0/task:0, not"));
  // The other cluster is not concerned.
  options.target = moon->target();
  EXPECT_TRUE(Session::Create(graph_, options).ok());
}

// Who says that it is a task has to serve where the cluster expects that one.
TEST_F(ClusterTest, ATaskOfAnotherAddressIsRefused) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  ASSERT_TRUE(session->Run({init_}).ok());
  RecordingSink sink;
  for (const std::string address : {"", "127.0.0.1:1", "127.0.0.2:7000", "nowhere"}) {
    TransportOptions options;
    options.task = worker->task();
    options.address = address;
    auto impostor = Transport::Create(options, &sink);
    ASSERT_TRUE(impostor.ok()) << impostor.status();
    const absl::Status status = ConnectNow(**impostor, *cluster_.Address({"ps", 0})).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(worker->task() + " is not expected at"));
  }
  EXPECT_TRUE(session->Run({{x_, Tensor::Vector<float>({1, 1})}}, {y_}).ok());
}

TEST_F(ClusterTest, LostTaskIsNamedAndTakenBack) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  ASSERT_TRUE(session->Run({init_}).ok());
  const Tensor x = Tensor::Vector<float>({1, 1});
  ASSERT_TRUE(session->Run({{x_, x}}, {y_}).ok());
  ASSERT_TRUE(worker->Stop().ok());
  worker.reset();
  const absl::Time before = absl::Now();
  absl::Status status = session->Run({{x_, x}}, {y_}).status();
  EXPECT_LT(absl::Now() - before, 2 * options_.heartbeat_timeout);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/replica:0/task:0"));
  // Who does not need it goes on.
  EXPECT_TRUE(session->Run({{x_, x}}, {local_}).ok());
  worker = Start("worker");
  for (int i = 0; i < 50 && !status.ok(); ++i) {
    // A client is not told when a task is back: it tries again.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    status = session->Run({{x_, x}}, {y_}).status();
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClusterTest, LostVariableIsFailedPrecondition) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*worker);
  ASSERT_TRUE(session->Run({init_}).ok());
  ps.reset();
  ps = Start("ps");
  absl::Status status;
  for (int i = 0; i < 50; ++i) {
    // A client is not told when a task is back: it tries again.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    status = session->Run({w_}).status();
    if (status.code() != absl::StatusCode::kUnavailable) break;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(session->Run({init_}).ok());
}

TEST_F(ClusterTest, LostMasterFailsItsClients) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  ASSERT_TRUE(session->Run({init_}).ok());
  ASSERT_TRUE(ps->Stop().ok());
  ps.reset();
  EXPECT_EQ(session->Run({init_}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(ClusterTest, TimeoutsAndBadTargets) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  RunOptions options;
  options.timeout = absl::ZeroDuration();
  EXPECT_EQ(session->Run(FeedMap{}, {init_}, {}, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Session::Create(graph_, {.target = "grpc://127.0.0.1:1"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Session::Create(graph_, {.target = "troupe://127.0.0.1"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A port at which connections are refused is told of after a second, or when the caller's own time
// is over; one at which nobody answers when it is over.
TEST_F(ClusterTest, WhoCreatesASessionIsToldOfNobodySoon) {
  BuildGraph();
  const auto took = [](const std::function<absl::Status()>& create, absl::StatusCode code,
                       const char* says) {
    const absl::Time before = absl::Now();
    const absl::Status status = create();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
    return absl::Now() - before;
  };
  SessionOptions options;
  options.target = "troupe://127.0.0.1:" + std::to_string(FreePort());
  const auto create = [&] { return Session::Create(graph_, options).status(); };
  const auto wait = [&] {
    return SessionManager(graph_, {}).WaitForSession(options, absl::Milliseconds(300)).status();
  };
  const std::string nobody = "no answer from " + options.target + "; cannot connect";
  const absl::Duration refused = took(create, absl::StatusCode::kUnavailable, nobody.c_str());
  EXPECT_GT(refused, absl::Milliseconds(900));
  EXPECT_LT(refused, options.heartbeat_timeout - absl::Seconds(1));
  EXPECT_LT(took(wait, absl::StatusCode::kDeadlineExceeded, "refused"), absl::Seconds(1));
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(listen(silent, 8), 0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  options.target = "troupe://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_LT(took(wait, absl::StatusCode::kDeadlineExceeded, "no answer"), absl::Seconds(1));
  options.creation_timeout = absl::Milliseconds(300);
  EXPECT_LT(took(create, absl::StatusCode::kUnavailable, "no answer"), absl::Seconds(1));
  close(silent);
  // The master is there, and waits for a task that is not.
  auto ps = Start("ps");
  options.target = "troupe://localhost" + ps->target().substr(ps->target().rfind(':'));
  EXPECT_LT(took(create, absl::StatusCode::kDeadlineExceeded, "create_session"), absl::Seconds(1));
}

TEST_F(ClusterTest, AMasterThatStartsWithItsClientsIsWaitedFor) {
  BuildGraph();
  const std::string target = "troupe://" + *cluster_.Address({"ps", 0});
  auto session =
      std::async(std::launch::async, [&] { return Session::Create(graph_, {.target = target}); });
  // It has been refused several times, and has not given up.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  auto ps = Start("ps"), worker = Start("worker");
  const auto created = session.get();
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE((*created)->Run({init_}).ok());
}

TEST_F(ClusterTest, ServersRefuseWhatCannotBe) {
  auto ps = Start("ps");
  options_.job = "ps";
  EXPECT_EQ(Server::Start(options_).status().code(),
            absl::StatusCode::kUnavailable);  // Port in use.
  options_.job = "moon";
  EXPECT_EQ(Server::Start(options_).status().code(), absl::StatusCode::kNotFound);
  options_.cluster = *ClusterSpec::Create({{"ps", {"192.0.2.1:7000"}}});
  options_.job = "ps";
  EXPECT_EQ(Server::Start(options_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ClusterTest, NoiseAtThePortHarmsNobody) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  auto session = Connect(*ps);
  ASSERT_TRUE(session->Run({init_}).ok());
  const std::string address = ps->target();
  for (int i = 0; i < 20; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
    const std::string noise(static_cast<size_t>(i * 37), static_cast<char>(i * 13));
    send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
    close(fd);
    EXPECT_TRUE(session->Run({{x_, Tensor::Vector<float>({1, 1})}}, {y_}).ok());
  }
}

TEST_F(ClusterTest, ManyClientsAtOnce) {
  auto ps = Start("ps"), worker = Start("worker");
  BuildGraph();
  {
    auto session = Connect(*ps);
    ASSERT_TRUE(session->Run({init_}).ok());
  }
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      auto session = Connect(c % 2 == 0 ? *ps : *worker);
      ASSERT_NE(session, nullptr);
      for (int i = 0; i < 50; ++i) {
        auto values = session->Run({{x_, Tensor::Vector<float>({float(c), float(i)})}}, {y_});
        ASSERT_TRUE(values.ok()) << values.status();
        ASSERT_EQ((*values)[0].unchecked_data<float>()[1], 2 * i);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace troupe
