// What tasks and clients log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "api/cluster.h"
#include "api/troupe.h"
#include "graph/protos/config.pb.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"
#include "tests/net/raw_socket.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

/// What is logged meanwhile.
class Recorder {
 public:
  explicit Recorder(LogLevel least) {
    SetLogLevel(least);
    SetLogSink([this](const LogRecord& record) {
      std::lock_guard<std::mutex> lock(mutex_);
      records_.push_back(record);
      changed_.notify_all();
    });
  }
  ~Recorder() {
    SetLogSink(nullptr);
    SetLogLevel(LogLevel::kWarning);
  }
  /// Waits for a record.
  bool Has(const testing::Matcher<LogRecord>& wanted) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool found = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::any_of(records_.begin(), records_.end(),
                         [&](const LogRecord& record) { return wanted.Matches(record); });
    });
    for (const LogRecord& record : records_) {
      if (!found) ADD_FAILURE() << record.task << " " << record.text;
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LogRecord> records_;
};

testing::Matcher<LogRecord> Record(LogLevel level, const std::string& task,
                                   const testing::Matcher<const std::string&>& text) {
  return AllOf(Field(&LogRecord::level, level), Field(&LogRecord::task, task),
               Field(&LogRecord::text, text));
}

/// Two tasks; the first is in this process, the second may be.
class LogRealtimeTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int& port : ports_) port = FreePort();
    const std::string a = StrCat("127.0.0.1:", ports_[0]), b = StrCat("127.0.0.1:", ports_[1]);
    file_ = StrCat(testing::TempDir(), "/log_", getpid(), ".json");
    std::ofstream(file_) << "{\"worker\": [\"" << a << "\", \"" << b << "\"]}";
    auto server = Server::Start({.cluster = *ClusterSpec::Create({{"worker", {a, b}}}),
                                 .job = "worker",
                                 .task = 0,
                                 .heartbeat_interval = absl::Milliseconds(200),
                                 .heartbeat_timeout = absl::Seconds(2)});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::unique_ptr<TroupeProcess> StartOther(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "worker", "--cluster", file_, "--job", "worker", "--task", "1", "--heartbeat-timeout", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<TroupeProcess>(std::move(arguments));
  }

  Recorder recorder_{LogLevel::kDebug};
  int ports_[2];
  std::string file_;
  std::unique_ptr<Server> server_;
};

Finished RunTroupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ProgramFolder() + "/troupe");
  return RunProgram({.arguments = arguments, .output = true, .errors = true}).value();
}

constexpr char kTask[] = "/job:worker/task:0";

TEST_F(LogRealtimeTest, ATaskThatIsKilledAndTheStepThatNeedsIt) {
  auto other = StartOther();
  EXPECT_THAT(other->Line(), HasSubstr("ready"));
  EXPECT_TRUE(recorder_.Has(Record(LogLevel::kInfo, kTask, HasSubstr("serves at 127.0.0.1:"))));
  EXPECT_TRUE(recorder_.Has(
      Record(LogLevel::kInfo, kTask,
             MatchesRegex("/job:worker/replica:0/task:1 \\(127.0.0.1:[0-9]+\\) is up"))));
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat);
  Output y = ops::Neg(s.WithDevice("/job:worker/task:0"),
                      ops::Square(s.WithDevice("/job:worker/task:1"), x));
  const Tensor two = Tensor::Scalar<float>(2);
  auto session = Session::Create(s.graph(), {.target = server_->target()});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(recorder_.Has(Record(LogLevel::kDebug, kTask, MatchesRegex("session .* is opened"))));
  ASSERT_TRUE((*session)->Run({{x, two}}, {y}).ok());
  other->Signal(SIGKILL);
  EXPECT_TRUE(recorder_.Has(
      Record(LogLevel::kWarning, kTask,
             MatchesRegex("lost /job:worker/replica:0/task:1 \\(.*\\): its connection broke"))));
  EXPECT_TRUE(absl::IsUnavailable((*session)->Run({{x, two}}, {y}).status()));
  EXPECT_TRUE(recorder_.Has(Record(
      LogLevel::kInfo, kTask,
      // Where the machine is slow the master has dialled again by then, in vain.
      MatchesRegex("step [0-9]+ of session .* is aborted: UNAVAILABLE: (lost|cannot connect to) "
                   ".*/task:1 .*"))));
  session->reset();
  EXPECT_TRUE(recorder_.Has(Record(LogLevel::kDebug, kTask, MatchesRegex("session .* is closed"))));
  EXPECT_TRUE(server_->Stop().ok());
  EXPECT_TRUE(recorder_.Has(Record(LogLevel::kInfo, kTask, "stops")));
}

TEST_F(LogRealtimeTest, AStrangerIsRefused) {
  RawSocket stranger(ports_[0]);
  ASSERT_TRUE(stranger.connected());
  EXPECT_TRUE(stranger.Write("GET / HTTP/1.0\r\n\r\n" + std::string(100, ' ')));
  EXPECT_TRUE(recorder_.Has(
      Record(LogLevel::kWarning, kTask, HasSubstr("refused a connection from 127.0.0.1: "))));
}

TEST_F(LogRealtimeTest, ATaskOfANameThatIsTaken) {
  // Another description of the cluster, in which the first task is somewhere else.
  std::ofstream(file_) << "{\"worker\": [\"127.0.0.1:" << FreePort()
                       << "\", \"127.0.0.1:" << ports_[0] << "\", \"127.0.0.1:" << ports_[1]
                       << "\"]}";
  auto other = StartOther({"--log-level", "warning", "--task", "0"});
  EXPECT_THAT(other->Line(), HasSubstr("ready"));
  EXPECT_TRUE(recorder_.Has(
      Record(LogLevel::kWarning, kTask, HasSubstr("refused a connection from 127.0.0.1: "))));
  // Who is refused logs it, too.
  EXPECT_THAT(other->Line(), MatchesRegex("[-0-9]+ [:.0-9]+ W /job:worker/task:0 .*"));
}

TEST_F(LogRealtimeTest, TheLogOfATaskIsReadFromElsewhere) {
  auto other = StartOther({"--log-level", "info"});
  while (other->Line().rfind("ready", 0) != 0) {
  }
  const SessionOptions cluster{.target = server_->target()};
  const TaskId task{"worker", 1};
  const auto lines = ReadLog(cluster, task, LogLevel::kInfo, 100);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(
      *lines,
      Contains(MatchesRegex("[-0-9]+ [:.0-9]+ I /job:worker/task:1 serves at 127.0.0.1:[0-9]+.*")));
  EXPECT_THAT(*ReadLog(cluster, task, LogLevel::kInfo, 1), SizeIs(1));
  EXPECT_THAT(*ReadLog(cluster, task, LogLevel::kError, 100), IsEmpty());
  EXPECT_THAT(*ReadLog(cluster, task, LogLevel::kInfo, 0), IsEmpty());
  EXPECT_THAT(*ReadLog(cluster, std::nullopt, LogLevel::kInfo, 1000),
              Contains(HasSubstr(" I /job:worker/task:0 serves at ")));

  EXPECT_TRUE(absl::IsInvalidArgument(ReadLog(cluster, task, LogLevel::kInfo, -1).status()));
  EXPECT_TRUE(
      absl::IsNotFound(ReadLog(cluster, TaskId{"worker", 5}, LogLevel::kInfo, 100).status()));
  EXPECT_TRUE(
      absl::IsNotFound(ReadLog(cluster, TaskId{"worker", -1}, LogLevel::kInfo, 100).status()));
  const auto ran = RunTroupe({"log", "--master", server_->target(), "--task", "/job:worker/task:1",
                              "--level", "info", "--lines", "1000"});
  EXPECT_EQ(ran.status.code, 0);
  EXPECT_THAT(ran.output, HasSubstr(" I /job:worker/task:1 serves at "));
  other->End();
  const absl::Status dead = ReadLog(cluster, task, LogLevel::kInfo, 100).status();
  EXPECT_TRUE(absl::IsUnavailable(dead)) << dead;
}

/// Two masters have the second task run steps all the time.
class TracingRealtimeTest : public LogRealtimeTest {
 protected:
  void SetUp() override {
    LogRealtimeTest::SetUp();
    other_ = StartOther();
    ASSERT_THAT(other_->Line(), HasSubstr("ready"));
    for (int master = 0; master < 2; ++master) {
      Scope s = Scope::NewRoot();
      Output x = ops::Placeholder(s, ElementType::kFloat);
      Output y = ops::Square(
          s.WithDevice("/job:worker/task:1").WithOpName(StrCat("of_master_", master)), x);
      y = ops::Neg(s.WithDevice("/job:worker/task:0"), y);
      auto session =
          Session::Create(s.graph(), {.target = StrCat("troupe://127.0.0.1:", ports_[master])});
      ASSERT_TRUE(session.ok()) << session.status();
      steps_.emplace_back([this, x, y, session = *std::move(session)] {
        while (!stop_) {
          RunOptions options;
          options.trace = traced_;
          RunMetadata metadata;
          const absl::Status ran =
              session->Run({{x, Tensor::Scalar<float>(2)}}, {y}, {}, options, &metadata).status();
          EXPECT_TRUE(ran.ok() || killed_) << ran;
          EXPECT_EQ(metadata.partition_graphs_size(), ran.ok() && options.trace ? 2 : 0);
        }
      });
    }
  }
  void TearDown() override {
    stop_ = true;
    for (std::thread& steps : steps_) steps.join();
    LogRealtimeTest::TearDown();
  }
  absl::StatusOr<TaskTrace> Trace(absl::Duration duration, int64_t max_bytes = 16 << 20) {
    return TraceTask({.target = server_->target()}, task_, duration, max_bytes, &metadata_);
  }
  /// Waits for another client to trace the task.
  void AwaitTrace() {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (!absl::IsAlreadyExists(Trace(absl::ZeroDuration()).status())) {
      ASSERT_LT(absl::Now(), limit);
    }
  }
  /// The same, until nobody else traces it.
  absl::Status TraceWhenFree(absl::Duration duration) {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    RunMetadata metadata;
    absl::Status status = absl::AlreadyExistsError("");
    while (absl::IsAlreadyExists(status) && absl::Now() < limit) {
      status =
          TraceTask({.target = server_->target()}, task_, duration, 1 << 20, &metadata).status();
    }
    return status;
  }

  const TaskId task_{"worker", 1};
  RunMetadata metadata_;  ///< Of the last trace.
  std::unique_ptr<TroupeProcess> other_;
  std::vector<std::thread> steps_;
  std::atomic<bool> stop_{false}, traced_{false}, killed_{false};
};

TEST_F(TracingRealtimeTest, HasTheStepsOfAllMasters) {
  for (const bool traced : {false, true}) {  // By their own clients, too.
    traced_ = traced;
    std::map<std::string, int64_t> runs;
    // On a busy machine nobody knows how long a step takes.
    for (absl::Duration time = absl::Milliseconds(200); runs.size() < 2; time *= 3) {
      ASSERT_LT(time, absl::Seconds(30));
      const absl::Time begun = absl::Now();
      const auto trace = Trace(time);
      ASSERT_TRUE(trace.ok()) << trace.status();
      EXPECT_GE(absl::Now() - begun, time);
      EXPECT_FALSE(trace->full);
      EXPECT_EQ(metadata_.partition_graphs_size(), 0);
      EXPECT_EQ(metadata_.step_stats().dev_stats_size(), trace->num_steps);
      runs.clear();
      int64_t sum = 0;
      for (const DeviceStepStats& device : metadata_.step_stats().dev_stats()) {
        EXPECT_EQ(device.device(), "/job:worker/replica:0/task:1/device:CPU:0");
        for (const NodeExecStats& node : device.node_stats()) {
          if (node.node_name().rfind("of_master_", 0) != 0) continue;
          ++runs[node.node_name()];
          ++sum;
        }
      }
      EXPECT_EQ(sum, trace->num_steps);
    }
  }
  // A task of this process, too.
  RunMetadata here;
  const auto trace =
      TraceTask({.target = server_->target()}, std::nullopt, absl::Minutes(1), 2000, &here);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_GT(trace->num_steps, 0);
  EXPECT_EQ(here.step_stats().dev_stats(0).device(), "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST_F(TracingRealtimeTest, EndsWhenItIsFull) {
  const absl::Time begun = absl::Now();
  const auto trace = Trace(absl::Minutes(10), 1000);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_LT(absl::Now() - begun, absl::Minutes(2));
  EXPECT_TRUE(trace->full);
  EXPECT_GE(trace->num_steps, 1);
  EXPECT_LE(metadata_.ByteSizeLong(), 1000u);
}

TEST_F(TracingRealtimeTest, RefusesWhatIsTooMuch) {
  for (absl::Duration duration : {absl::Seconds(-1), absl::Minutes(11), absl::InfiniteDuration(),
                                  -absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Trace(duration).status())) << duration;
  }
  for (int64_t bytes : {int64_t{-1}, int64_t{0}, int64_t{65} << 20}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Trace(absl::Seconds(1), bytes).status())) << bytes;
  }
  RunMetadata metadata;
  EXPECT_TRUE(absl::IsNotFound(TraceTask({.target = server_->target()}, TaskId{"worker", 5},
                                         absl::Seconds(1), 1 << 20, &metadata)
                                   .status()));
}

TEST_F(TracingRealtimeTest, ATaskIsTracedForOneClientUntilItIsGone) {
  const std::vector<std::string> tracing = {
      ProgramFolder() + "/troupe", "tracing",   "--master", server_->target(), "--task",
      "/job:worker/task:1",        "--seconds", "600",      "--out",           file_ + ".trace"};
  // The trace would be full before long.
  stop_ = true;
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  std::optional<ChildProcess> client;
  while (!absl::IsAlreadyExists(Trace(absl::ZeroDuration()).status())) {
    ASSERT_LT(absl::Now(), limit);
    // It may have been refused itself.
    if (!client || !client->running()) {
      client = *ChildProcess::Start({.arguments = tracing, .output = true, .errors = true});
    }
  }
  const absl::Time killed = absl::Now();
  client->End(SIGKILL);
  EXPECT_TRUE(TraceWhenFree(absl::ZeroDuration()).ok());
  EXPECT_LT(absl::Now() - killed, absl::Seconds(10));
  EXPECT_FALSE(std::filesystem::exists(file_ + ".trace"));
}

TEST_F(TracingRealtimeTest, ATaskIsKilledMeanwhile) {
  stop_ = true;
  absl::Status status;
  std::thread client([&] { status = TraceWhenFree(absl::Minutes(10)); });
  AwaitTrace();
  killed_ = true;
  other_->End(SIGKILL);
  const absl::Time killed = absl::Now();
  client.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(absl::Now() - killed, absl::Seconds(10));
}

TEST_F(TracingRealtimeTest, TheCommandWritesAFileForChrome) {
  const std::string file = file_ + ".trace";
  const auto ran = RunTroupe({"tracing", "--master", server_->target(), "--task",
                              "/job:worker/task:1", "--seconds", "3", "--out", file});
  EXPECT_EQ(ran.status.code, 0) << ran.output;
  EXPECT_THAT(ran.output, MatchesRegex("steps: [1-9][0-9]*\n"));
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  const auto events = nlohmann::json::parse(text.str())["traceEvents"];
  ASSERT_GT(events.size(), 2u);
  EXPECT_EQ(events[0]["ph"], "M");
  EXPECT_EQ(events[0]["args"]["name"], "/job:worker/replica:0/task:1/device:CPU:0");
  std::map<std::string, int> runs;
  std::map<int, double> ends;  // By row.
  for (size_t i = 1; i < events.size(); ++i) {
    const auto& event = events[i];
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["pid"], events[0]["pid"]);
    EXPECT_GE(event["dur"].get<double>(), 0);
    double& end = ends[event["tid"].get<int>()];
    EXPECT_GE(event["ts"].get<double>(), end - 1e-3) << "events of a row do not overlap";
    end = event["ts"].get<double>() + event["dur"].get<double>();
    ++runs[event["name"]];
    if (event["name"] == "of_master_0") {
      EXPECT_EQ(event["args"]["label"], "of_master_0 = Square");
    }
  }
  EXPECT_GT(runs["of_master_0"], 0);
  EXPECT_GT(runs["of_master_1"], 0);
  // What cannot be written is said before anybody is traced.
  const auto refused = RunTroupe({"tracing", "--master", server_->target(), "--seconds", "600",
                                  "--out", "/no/such/folder/t.json"});
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("NOT_FOUND: cannot write /no/such/folder/t.json"));
}

TEST_F(LogRealtimeTest, AWorkerLogsFromInfoOnUnlessItIsAskedForMore) {
  auto other = StartOther({"--log-level", "info"});
  std::string line;
  while (!(line = other->Line()).empty() && line.find(" I /job:worker/task:1 ") == line.npos) {
  }
  EXPECT_THAT(line, MatchesRegex("[-0-9]+ [:.0-9]+ I /job:worker/task:1 .*"));
}

}  // namespace
}  // namespace troupe
