// Processes that are started, fail to start, and end.
#include "api/program/child_process.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> fork_fails = false;
std::atomic<int> signals_to_many = 0, signals = 0;

}  // namespace

// The system's calls, with those that would hit other processes counted and not made.
extern "C" pid_t fork() noexcept {
  if (fork_fails) {
    errno = EAGAIN;
    return -1;
  }
  static const auto real = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"));
  return real();
}
extern "C" int kill(pid_t pid, int number) noexcept {
  ++signals;
  if (pid <= 0) {
    ++signals_to_many;
    return 0;
  }
  static const auto real = reinterpret_cast<int (*)(pid_t, int)>(dlsym(RTLD_NEXT, "kill"));
  return real(pid, number);
}

namespace troupe {
namespace {

using testing::HasSubstr;

ChildProcess::Options Shell(const std::string& command) {
  return {.arguments = {"/bin/sh", "-c", command}, .output = true};
}

class ChildProcessTest : public testing::Test {
 protected:
  void SetUp() override { signals = signals_to_many = 0; }
  void TearDown() override {
    fork_fails = false;
    EXPECT_EQ(signals_to_many, 0) << "kill(-1, ...) ends everything that this user runs";
  }
};

TEST_F(ChildProcessTest, AFailedForkSignalsNobody) {
  fork_fails = true;
  for (int i = 0; i < 3; ++i) {
    const auto started = ChildProcess::Start(Shell("true"));
    EXPECT_EQ(started.status().code(), absl::StatusCode::kUnavailable) << started.status();
    EXPECT_THAT(std::string(started.status().message()), HasSubstr("/bin/sh cannot be started"));
    EXPECT_FALSE(ChildProcess::Fork([] { return 0; }, {}).ok());
    EXPECT_FALSE(RunProgram(Shell("true")).ok());
  }
  EXPECT_EQ(signals, 0);
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereLeavesNothing) {
  for (const char* program : {"/no/such/program", "/", "/etc/passwd"}) {
    const auto started = ChildProcess::Start({.arguments = {program}});
    EXPECT_FALSE(started.ok());
    EXPECT_THAT(std::string(started.status().message()), HasSubstr(program));
  }
  EXPECT_FALSE(ChildProcess::Start({}).ok());
  EXPECT_FALSE(
      ChildProcess::Start({.arguments = {"/bin/true"}, .log = "/no/such/folder/log"}).ok());
  EXPECT_EQ(signals, 0);
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ChildProcessTest, OneThatHasEndedOrMovedIsNotSignalled) {
  auto process = ChildProcess::Start(Shell("exit 3"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait()->code, 3);
  process->Signal(SIGKILL);
  EXPECT_EQ(process->End().code, 3) << "what it ended with stays";
  ChildProcess other = *std::move(process);
  process->Signal(SIGKILL);
  process->End();
  EXPECT_EQ(signals, 0);
  EXPECT_EQ(other.Wait()->ToString(), "ended with exit status 3");
}

TEST_F(ChildProcessTest, TalksByLines) {
  ChildProcess::Options options = Shell("read a; echo \"got $a\"; echo error >&2; echo end");
  options.input = options.errors = true;
  auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Line(absl::Milliseconds(20)), std::nullopt);
  EXPECT_FALSE(process->closed());
  EXPECT_TRUE(process->running());
  process->Say("it");
  EXPECT_EQ(process->Line(), "got it");
  EXPECT_EQ(process->Rest(), "error\nend\n");
  EXPECT_TRUE(process->closed());
  EXPECT_TRUE(process->Wait()->ok());
  process->Say("nobody reads this");  // No signal.
}

TEST_F(ChildProcessTest, WaitsWithADeadlineAndKills) {
  auto process = ChildProcess::Start(Shell("trap '' TERM; echo on; while :; do sleep 0.1; done"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Line(), "on");
  EXPECT_EQ(process->Wait(absl::Milliseconds(20)), std::nullopt);
  const ExitStatus status = process->End(SIGTERM, absl::Milliseconds(50));
  EXPECT_EQ(status.code, std::nullopt);
  EXPECT_EQ(status.ToString(), "was killed by signal 9 (Killed)");
  const auto ran = RunProgram(Shell("exec sleep 60"), absl::Milliseconds(50));
  EXPECT_EQ(ran.status().code(), absl::StatusCode::kDeadlineExceeded) << ran.status();
}

TEST_F(ChildProcessTest, EnvironmentAndLog) {
  const std::string log = testing::TempDir() + "/child_log_" + std::to_string(getpid());
  ChildProcess::Options options = Shell("echo $TROUPE_TEST_A; echo lost >&2");
  options.environment = {{"TROUPE_TEST_A", "a value"}};
  options.log = log;
  const auto ran = RunProgram(options);
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(ran->output, "a value\n");
  std::string line;
  std::getline(std::ifstream(log) >> std::ws, line);
  EXPECT_EQ(line, "lost");
  std::filesystem::remove(log);
}

TEST_F(ChildProcessTest, SignalsOfItsParentAreNotBlocked) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  auto process = ChildProcess::Start(Shell("echo on; exec sleep 60"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Line(), "on");
  EXPECT_EQ(process->End(SIGTERM).signal, SIGTERM);
}

TEST_F(ChildProcessTest, EndsWithTheThreadThatStartedIt) {
  std::optional<ChildProcess> process;
  std::thread([&] { process = ChildProcess::Start(Shell("exec sleep 60")).value(); }).join();
  EXPECT_EQ(process->Wait(absl::Seconds(10)).value_or(ExitStatus()).signal, SIGKILL);
}

TEST_F(ChildProcessTest, ForkGivesWhatTheFunctionReturns) {
  auto process = ChildProcess::Fork(
      [] {
        std::printf("from the copy\n");
        return 5;
      },
      {.output = true});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Line(), "from the copy");
  EXPECT_EQ(process->Wait()->code, 5);
}

TEST_F(ChildProcessTest, ManyThreadsStartManyAndNoneHoldsAnothersPipe) {
  auto longest = ChildProcess::Start(Shell("exec sleep 60"));
  ASSERT_TRUE(longest.ok());
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        const auto ran = RunProgram(Shell("echo " + std::to_string(i)), absl::Seconds(30));
        if (ran.ok() && ran->output == std::to_string(i) + "\n") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

}  // namespace
}  // namespace troupe
