#include "api/program/task_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace troupe {
namespace {

using testing::HasSubstr;

/// Tasks that are shell scripts; each process writes its number to a file when it begins.
class TaskProcessesTest : public testing::Test {
 protected:
  TaskProcessesTest() : folder_(testing::TempDir() + "task_processes_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~TaskProcessesTest() override { std::filesystem::remove_all(folder_); }

  /// `script` for task 0 of the job; the other task serves.
  TaskProcesses Tasks(const std::string& script) {
    const std::string begin = "echo $$ >> " + folder_ + "/";
    return TaskProcesses(*ClusterSpec::Create({{"worker", {"127.0.0.1:1", "127.0.0.1:2"}}}),
                         [=](const TaskId& task) {
                           const std::string number = std::to_string(task.task);
                           const char* const serve = "echo ready; exec sleep 100";
                           return std::vector<std::string>{
                               "/bin/sh", "-c",
                               begin + number + "; " + (task.task == 0 ? script : serve)};
                         });
  }
  /// The processes of task `task` so far.
  std::vector<pid_t> Begun(int task) const {
    std::ifstream in(folder_ + "/" + std::to_string(task));
    return {std::istream_iterator<pid_t>(in), {}};
  }
  /// Waits, for 30 s at most.
  bool WaitForBegun(int task, size_t count) const {
    for (int i = 0; i < 3000 && Begun(task).size() < count; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return Begun(task).size() >= count;
  }

  const std::string folder_;
};

TEST_F(TaskProcessesTest, WhatIsKilledIsStartedAgain) {
  TaskProcesses tasks = Tasks("echo ready; exec sleep 100");
  ASSERT_TRUE(tasks.Start().ok());
  const TerminationSignals signals;
  absl::Status supervised;
  // Its death signal is tied to the thread that starts processes: it outlives them.
  std::thread killer([&] {
    for (size_t i = 1; i <= 7; ++i) {  // More than kMaxFailures: it served.
      ASSERT_TRUE(WaitForBegun(0, i));
      absl::SleepFor(absl::Milliseconds(100));  // It says that it serves.
      kill(Begun(0).back(), SIGKILL);
    }
    ASSERT_TRUE(WaitForBegun(0, 8));
    kill(getpid(), SIGTERM);
  });
  supervised = tasks.Supervise(signals);
  killer.join();
  EXPECT_TRUE(supervised.ok()) << supervised;
  EXPECT_EQ(Begun(1).size(), 1u) << "the other one was left alone";
  EXPECT_FALSE(tasks.End()) << "sleep does not drain";
}

TEST_F(TaskProcessesTest, WhatDoesNotComeToServeIsGivenUp) {
  TaskProcesses tasks = Tasks("test $(wc -l < " + folder_ +
                              "/0) -gt 1 && exit 3; echo ready; "
                              "exec sleep 100");
  ASSERT_TRUE(tasks.Start().ok());
  kill(Begun(0).back(), SIGKILL);
  const TerminationSignals signals;
  const absl::Status status = tasks.Supervise(signals);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("task:0 ended with exit status 3"));
  EXPECT_EQ(Begun(0).size(), 1u + TaskProcesses::kMaxFailures);
  tasks.End();
}

TEST_F(TaskProcessesTest, WhatEndsWellIsNotStartedAgain) {
  TaskProcesses tasks = Tasks("echo ready; sleep 0.3");
  ASSERT_TRUE(tasks.Start().ok());
  const TerminationSignals signals;
  std::thread terminator([] {
    absl::SleepFor(absl::Seconds(1));  // Time enough to start it again.
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(tasks.Supervise(signals).ok());
  terminator.join();
  EXPECT_EQ(Begun(0).size(), 1u);
  tasks.End();
}

TEST_F(TaskProcessesTest, WhatDoesNotStartAtAllIsAnError) {
  TaskProcesses tasks = Tasks("exit 1");
  EXPECT_TRUE(absl::IsUnavailable(tasks.Start()));
  tasks.End();
}

}  // namespace
}  // namespace troupe
