// Clusters of real processes, which are killed, stopped and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr absl::Duration kTimeout = absl::Seconds(2);

class ClusterProcesses : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "/cluster_" + std::to_string(getpid()) + ".json";
    ps_address_ = "127.0.0.1:" + std::to_string(FreePort());
    worker_address_ = "127.0.0.1:" + std::to_string(FreePort());
    std::ofstream(file_) << "{\"ps\": [\"" << ps_address_ << "\"], \"worker\": [\""
                         << worker_address_ << "\"]}";
    Scope s = Scope::NewRoot();
    Scope ps = s.WithDevice("/job:ps/task:0"), worker = s.WithDevice("/job:worker/task:0");
    w_ = ops::VariableV2(ps, PartialShape({}), ElementType::kFloat);
    init_ = ops::Assign(ps, w_, Tensor::Scalar(21.0f));
    y_ = ops::Add(worker, w_, w_);
    graph_ = s.graph();
    ps_ = Start("ps");
    worker_ = Start("worker");
  }
  std::unique_ptr<TroupeProcess> Start(const std::string& job) {
    auto process = std::make_unique<TroupeProcess>(std::vector<std::string>{
        "worker", "--cluster", file_, "--job", job, "--task", "0", "--heartbeat-timeout", "2"});
    EXPECT_THAT(process->Line(),
                StartsWith("ready troupe://" + (job == "ps" ? ps_address_ : worker_address_)));
    return process;
  }
  std::unique_ptr<Session> Connect() {
    SessionOptions options;
    options.target = "troupe://" + ps_address_;
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return nullptr;
    EXPECT_TRUE((*session)->Run({init_}).ok());
    return *std::move(session);
  }
  /// Runs until it fails, for at most a minute; `*took` is since `trouble` was made, in the midst.
  absl::Status RunUntilError(Session* session, const std::function<void()>& trouble,
                             absl::Duration* took) {
    absl::Time when;
    std::thread other([&] {
      // Steps are to have run for a while when the trouble comes.
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      when = absl::Now();
      trouble();
    });
    absl::Status status;
    for (const absl::Time end = absl::Now() + absl::Minutes(1); status.ok() && absl::Now() < end;) {
      status = session->Run({y_}).status();
    }
    const absl::Time failed = absl::Now();
    other.join();
    *took = failed - when;
    return status;
  }
  /// A run that succeeds within 10 seconds.
  void ExpectRecovery(Session* session) {
    absl::Status status;
    for (int i = 0; i < 100; ++i) {
      auto values = session->Run({y_});
      status = values.status();
      if (status.ok()) {
        EXPECT_EQ(*(*values)[0].unchecked_data<float>(), 42);
        return;
      }
      // A client is not told when a task is back: it tries again.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << status;
  }

  std::string file_, ps_address_, worker_address_;
  std::unique_ptr<TroupeProcess> ps_, worker_;
  Output w_, init_, y_;
  std::shared_ptr<Graph> graph_;
};

TEST_F(ClusterProcesses, KilledWorkerIsNamedAndTakenBack) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  absl::Duration took;
  const absl::Status status = RunUntilError(
      session.get(), [&] { worker_->Signal(SIGKILL); }, &took);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_LT(took, 2 * kTimeout);
  worker_ = Start("worker");
  ExpectRecovery(session.get());  // Same session; the parameter server kept its variable.
}

TEST_F(ClusterProcesses, StoppedWorkerIsNamedAndTakenBack) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  absl::Duration took;
  const absl::Status status = RunUntilError(
      session.get(), [&] { worker_->Signal(SIGSTOP); }, &took);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_LT(took, 2 * kTimeout);
  worker_->Signal(SIGCONT);
  ExpectRecovery(session.get());
}

TEST_F(ClusterProcesses, KilledMasterFailsTheClient) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  absl::Duration took;
  const absl::Status status = RunUntilError(
      session.get(), [&] { ps_->Signal(SIGKILL); }, &took);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(took, 2 * kTimeout);
  session.reset();
  ps_ = Start("ps");
  ASSERT_NE(session = Connect(), nullptr);
  ExpectRecovery(session.get());
}

TEST_F(ClusterProcesses, TermDrainsAndEndsWithZero) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  absl::Duration took;
  const absl::Status status = RunUntilError(
      session.get(), [&] { worker_->Signal(SIGTERM); }, &took);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(worker_->Wait()->ok());
  ps_->Signal(SIGINT);
  EXPECT_TRUE(ps_->Wait()->ok());
}

TEST_F(ClusterProcesses, SecondProcessOfATaskIsRefused) {
  TroupeProcess second({"worker", "--cluster", file_, "--job", "ps", "--task", "0"});
  EXPECT_THAT(second.Line(), StartsWith("UNAVAILABLE: cannot listen at " + ps_address_));
  EXPECT_EQ(second.Wait()->code, 1);
}

TEST_F(ClusterProcesses, ClusterCommandStartsAllTasks) {
  ps_.reset();
  worker_.reset();
  TroupeProcess all({"cluster", file_});
  EXPECT_EQ(all.Line(), "ready");
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  ExpectRecovery(session.get());
  session.reset();
  all.Signal(SIGTERM);
  EXPECT_TRUE(all.Wait()->ok());
}

TEST_F(ClusterProcesses, ClusterCommandStartsLostTasksAgain) {
  ps_.reset();
  worker_.reset();
  TroupeProcess all({"cluster", file_, "--restart"});
  EXPECT_EQ(all.Line(), "ready");
  const std::string pid = std::to_string(all.pid());
  for (int i = 0; i < 3; ++i) {
    std::ifstream list("/proc/" + pid + "/task/" + pid + "/children");
    const std::vector<pid_t> children(std::istream_iterator<pid_t>(list), {});
    ASSERT_EQ(children.size(), 2u);
    kill(children[i % 2], SIGKILL);
    EXPECT_THAT(all.Line(), HasSubstr("was killed by signal 9 (Killed); started again"));
    absl::Status status = absl::UnknownError("not tried");
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (!status.ok() && absl::Now() < end) {
      SessionOptions options;
      options.target = "troupe://" + ps_address_;
      const auto session = Session::Create(graph_, options);
      status = session.status();
      if (status.ok()) status = (*session)->Run({init_}).status();
      if (status.ok()) status = (*session)->Run({y_}).status();
    }
    EXPECT_TRUE(status.ok()) << status;
  }
  all.Signal(SIGTERM);
  EXPECT_TRUE(all.Wait()->ok());
}

TEST_F(ClusterProcesses, OnlyTheProgramsOwnThreadIsInterrupted) {
  auto session = Connect();
  ASSERT_NE(session, nullptr);
  ExpectRecovery(session.get());
  const std::string pid = std::to_string(worker_->pid());
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
    std::ifstream status(task.path() / "status");
    const std::string text(std::istreambuf_iterator<char>(status), {});
    const size_t blocked = text.find("SigBlk:");
    ASSERT_NE(blocked, std::string::npos);
    const uint64_t mask = std::stoull(text.substr(blocked + 7), nullptr, 16);
    const bool main = task.path().filename() == pid;
    EXPECT_EQ((mask >> (SIGTERM - 1)) & 1, main ? 0 : 1) << text;
    ++threads;
  }
  EXPECT_GT(threads, 3);
}

TEST_F(ClusterProcesses, AnInterruptAtATerminalDrainsAllTasks) {
  ps_.reset();
  worker_.reset();
  TroupeProcess all({"cluster", file_});
  EXPECT_EQ(all.Line(), "ready");
  // A terminal sends it to all of them, and the parent tells its children besides.
  const std::string pid = std::to_string(all.pid());
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  const std::vector<pid_t> pids(std::istream_iterator<pid_t>(children), {});
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t child : pids) kill(child, SIGINT);
  all.Signal(SIGINT);
  EXPECT_EQ(all.Rest(), "");
  EXPECT_TRUE(all.Wait()->ok());
}

}  // namespace
}  // namespace troupe
