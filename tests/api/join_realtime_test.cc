// Tasks that join a cluster of processes, and leave it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::unique_ptr<TroupeProcess> StartWorker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"worker", "--heartbeat-timeout", "2"});
  return std::make_unique<TroupeProcess>(std::move(arguments));
}

class JoinTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) addresses_.push_back("127.0.0.1:" + std::to_string(FreePort()));
    for (int count : {2, 3}) {
      std::string& file = count == 2 ? file_ : larger_file_;
      file = testing::TempDir() + "/join_" + std::to_string(getpid()) + "_" +
             std::to_string(count) + ".json";
      std::ofstream out(file);
      out << "{\"worker\": [\"" << addresses_[0] << "\"";
      for (int i = 1; i < count; ++i) out << ", \"" << addresses_[static_cast<size_t>(i)] << "\"";
      out << "]}";
    }
    for (int i = 0; i < 2; ++i) Start(i, {"--cluster", file_});
    Scope s = Scope::NewRoot();
    x_ = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({2})});
    first_ = ops::Add(s.WithDevice("/job:worker/task:1"), x_, x_);
    ASSERT_TRUE(s.status().ok());
    graph_ = s.graph();
  }
  void TearDown() override {
    std::filesystem::remove(file_);
    std::filesystem::remove(larger_file_);
  }
  TroupeProcess* Start(int task, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--job", "worker", "--task", std::to_string(task)});
    workers_[task] = StartWorker(std::move(arguments));
    said_ = workers_[task]->Line();
    return workers_[task].get();
  }
  std::unique_ptr<Session> Connect(int task) {
    SessionOptions options;
    options.target = "troupe://" + addresses_[static_cast<size_t>(task)];
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  /// Has a task leave by way of another one.
  absl::Status Leave(const std::string& task, size_t by) {
    const absl::StatusOr<TaskId> id = TaskId::FromDeviceName(task);
    if (!id.ok()) return id.status();
    return RemoveTask({.target = "troupe://" + addresses_[by]}, *id);
  }
  /// Something that crosses from `task` to the first one and back.
  absl::StatusOr<float> RunOn(Session* session, int task) { return Run(session, Across(task)); }
  Output Across(int task) {
    Scope s(graph_);
    Output y = ops::Mul(s.WithDevice("/job:worker/task:" + std::to_string(task)), first_, x_);
    return ops::Add(s.WithDevice("/job:worker/task:0"), y, x_);
  }
  absl::StatusOr<float> Run(Session* session, Output z) {
    auto values = session->Run({{x_, Tensor::Vector<float>({1, 3})}}, {z});
    if (!values.ok()) return values.status();
    return (*values)[0].unchecked_data<float>()[1];
  }

  std::vector<std::string> addresses_;
  std::string file_, larger_file_, said_;
  std::map<int, std::unique_ptr<TroupeProcess>> workers_;
  std::shared_ptr<Graph> graph_;
  Output x_, first_;
};

TEST_F(JoinTest, ANewTaskIsUsedByTheNextPlacement) {
  auto running = Connect(0);
  ASSERT_NE(running, nullptr);
  ASSERT_TRUE(running->Run({{x_, Tensor::Vector<float>({1, 3})}}, {first_}).ok());
  EXPECT_EQ(RunOn(running.get(), 2).status().code(), absl::StatusCode::kInvalidArgument);

  Start(2, {"--cluster", larger_file_, "--join", addresses_[1]});
  EXPECT_EQ(said_, "ready troupe://" + addresses_[2]);

  // A session that runs, one whose master was not asked, and one whose master is the newcomer.
  for (Session* session : {running.get(), Connect(0).release(), Connect(2).release()}) {
    std::unique_ptr<Session> owned(session == running.get() ? nullptr : session);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->ListDevices().value().size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<float> value = RunOn(session, 2);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ(*value, 21);
    }
  }
  EXPECT_TRUE(workers_[2]->End(SIGTERM).ok());
  // Those who came first go on without it, in new sessions too.
  auto later = Connect(1);
  ASSERT_NE(later, nullptr);
  EXPECT_TRUE(later->Run({{x_, Tensor::Vector<float>({1, 3})}}, {first_}).ok());
}

TEST_F(JoinTest, RefusesANameThatIsTaken) {
  ASSERT_NE(Connect(0), nullptr);  // By now the first one has heard the second one.
  const std::string other = "127.0.0.1:" + std::to_string(FreePort());
  const std::string file = file_ + ".other";
  std::ofstream(file) << "{\"worker\": [\"" << addresses_[0] << "\", \"" << other << "\"]}";
  const auto impostor =
      StartWorker({"--cluster", file, "--job", "worker", "--task", "1", "--join", addresses_[0]});
  EXPECT_THAT(impostor->Line(), StartsWith("ALREADY_EXISTS: "));
  auto session = Connect(0);
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(session->Run({{x_, Tensor::Vector<float>({1, 3})}}, {first_}).ok());
  std::filesystem::remove(file);
}

TEST_F(JoinTest, SaysWhenThereIsNobodyToJoin) {
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  Start(2, {"--cluster", larger_file_, "--join", nobody});
  EXPECT_THAT(said_, StartsWith("UNAVAILABLE: "));
  EXPECT_THAT(said_, HasSubstr(nobody));
  Start(2, {"--cluster", larger_file_, "--join", "nonsense"});
  EXPECT_THAT(said_, StartsWith("INVALID_ARGUMENT: "));
}

TEST_F(JoinTest, ARestartedTaskLearnsOfThoseThatJoined) {
  Start(2, {"--cluster", larger_file_, "--join", addresses_[0]});
  ASSERT_THAT(said_, StartsWith("ready"));
  workers_[1]->End(SIGKILL);
  Start(1, {"--cluster", file_});
  ASSERT_THAT(said_, StartsWith("ready"));
  auto session = Connect(1);
  ASSERT_NE(session, nullptr);
  // It asks the others who is there as soon as it hears them.
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  while (session->ListDevices().value().size() < 3 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));  // Heartbeats have a rhythm of their own.
  }
  const absl::StatusOr<float> value = RunOn(session.get(), 2);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 21);
}

TEST_F(JoinTest, ATaskThatIsToLeaveEndsAndItsNameIsFree) {
  Start(2, {"--cluster", larger_file_, "--join", addresses_[0]});
  auto session = Connect(0);
  ASSERT_NE(session, nullptr);
  const Output across = Across(2);
  ASSERT_TRUE(Run(session.get(), across).ok());
  EXPECT_TRUE(Leave("/job:worker/task:2", 1).ok());
  EXPECT_TRUE(workers_[2]->Wait(absl::Seconds(20)).value_or(ExitStatus()).ok())
      << "its process ends";
  const absl::Status status = Run(session.get(), across).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(RunOn(session.get(), 2).status())) << "there is no device";
  EXPECT_THAT(std::string(status.message()), HasSubstr("/task:2 has left the cluster"));
  EXPECT_EQ(session->ListDevices().value().size(), 2u);

  EXPECT_TRUE(Leave("/job:worker/task:2", 0).ok()) << "again";
  const absl::Status unknown = Leave("/job:worker/task:7", 0);
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_TRUE(absl::IsInvalidArgument(Leave("worker", 0)));

  Start(2, {"--cluster", larger_file_, "--join", addresses_[0]});
  EXPECT_EQ(said_, "ready troupe://" + addresses_[2]);
  ASSERT_NE(Connect(0), nullptr);  // Waits for its devices.
  const absl::StatusOr<float> value = Run(session.get(), across);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 21);
}

TEST_F(JoinTest, NobodyWaitsForADeadTaskThatHasLeft) {
  ASSERT_NE(Connect(0), nullptr);
  workers_[1]->End(SIGKILL);
  const SessionOptions options{.target = "troupe://" + addresses_[0]};
  EXPECT_TRUE(absl::IsUnavailable(Session::Create(graph_, options).status()));
  EXPECT_TRUE(Leave("/job:worker/task:1", 0).ok());
  const absl::Time begin = absl::Now();
  ASSERT_NE(Connect(0), nullptr);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(1));
  const absl::Status last = Leave("/job:worker/task:0", 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(last)) << last;
  // It comes back as it has left, and is told that it is no member.
  Start(1, {"--cluster", file_, "--log-level", "warning"});
  EXPECT_THAT(said_, StartsWith("ready"));
  EXPECT_THAT(workers_[1]->Line(), HasSubstr("there is no task /job:worker/replica:0/task:1"));
  EXPECT_EQ(Connect(0)->ListDevices().value().size(), 1u);
}

TEST_F(JoinTest, AServerLeavesByItself) {
  ServerOptions options{.cluster = *ClusterSpec::ReadFile(larger_file_),
                        .job = "worker",
                        .task = 2,
                        .heartbeat_interval = absl::Milliseconds(400),
                        .heartbeat_timeout = absl::Seconds(2),
                        .join = addresses_[0]};
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  auto session = Connect(1);
  ASSERT_NE(session, nullptr);
  const Output across = Across(2);
  ASSERT_TRUE(Run(session.get(), across).ok());
  EXPECT_TRUE((*server)->Leave().ok());
  (*server)->Join();
  EXPECT_TRUE(absl::IsUnavailable(Run(session.get(), across).status()));
  EXPECT_EQ(session->ListDevices().value().size(), 2u);
  EXPECT_TRUE((*server)->Leave().ok()) << "again";
}

TEST_F(JoinTest, TheCommandSaysWhatIsWrong) {
  const auto leave = [](const std::string& master, const std::string& task) {
    return RunProgram(
        {.arguments = {ProgramFolder() + "/troupe", "leave", "--master", master, "--task", task},
         .output = true,
         .errors = true});
  };
  auto ran = leave("troupe://" + addresses_[0], "/job:ps/task:0");
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->status.code, 1);
  EXPECT_THAT(ran->output, StartsWith("NOT_FOUND: there is no task /job:ps/replica:0/task:0"));
  ran = leave("troupe://" + addresses_[0], "/job:worker/task:1");
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->status.code, 0) << ran->output;
  EXPECT_EQ(ran->output, "");
  EXPECT_TRUE(workers_[1]->Wait(absl::Seconds(20)).value_or(ExitStatus()).ok());
}

}  // namespace
}  // namespace troupe
