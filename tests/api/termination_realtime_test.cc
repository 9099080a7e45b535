// Programs of one's own that serve until a signal. This program is also what the tests run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/termination_signals.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

std::unique_ptr<Server> StartServer() {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  return Server::Start({.cluster = *ClusterSpec::Create({{"worker", {address}}}), .job = "worker"})
      .value();
}

/// One of the tests below whose name says DISABLED, as a process, when it has said "ready".
ChildProcess StartProgram(const std::string& name) {
  auto process = ChildProcess::Start(
      {.arguments = {ThisProgram(), "--gtest_filter=*" + name, "--gtest_also_run_disabled_tests"},
       .output = true});
  while (const auto line = process->Line(absl::Seconds(30))) {
    if (*line == "ready") break;
  }
  return *std::move(process);
}

TEST(Termination, DISABLED_Serves) {
  const auto server = StartServer();
  const TerminationSignals signals;
  std::cout << "ready" << std::endl;
  const absl::Status status = server->JoinUntilSignal();
  std::cout << "drained " << status << std::endl;
  std::exit(signals.received() == 0 ? 1 : 0);
}

TEST(Termination, DISABLED_HoldsOut) {
  const TerminationSignals signals;
  std::cout << "ready" << std::endl;
  std::cout << "got " << signals.Wait() << std::endl;
  while (true) pause();
}

TEST(Termination, AProgramOfOnesOwnDrainsOnSignals) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ChildProcess program = StartProgram("DISABLED_Serves");
    program.Signal(signal);
    EXPECT_EQ(program.Line(absl::Seconds(20)), "drained OK");
    EXPECT_EQ(program.Wait(absl::Seconds(20)).value_or(ExitStatus()).code, 0);
  }
}

TEST(Termination, TheSecondInterruptInARowEndsTheProcess) {
  ChildProcess program = StartProgram("DISABLED_HoldsOut");
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Line(absl::Seconds(20)), "got 15");
  // One at a time: of two that are waiting, the handler may meet either first.
  for (const int signal : {SIGTERM, SIGINT}) {
    program.Signal(signal);
    EXPECT_FALSE(program.Wait(absl::Milliseconds(100)).has_value());
  }
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait(absl::Seconds(20)).value_or(ExitStatus()).signal, SIGINT);
}

TEST(Termination, AStopEndsTheWaitToo) {
  const auto server = StartServer();
  std::thread stopper([&] { EXPECT_TRUE(server->Stop().ok()); });
  EXPECT_TRUE(server->JoinUntilSignal().ok());
  server->Join();
  stopper.join();
}

TEST(Termination, HandlersThatWereThereComeBack) {
  static int seen = 0;
  const auto before = signal(SIGTERM, [](int) { ++seen; });
  {
    const TerminationSignals outer;
    const TerminationSignals inner;
    raise(SIGTERM);
    EXPECT_EQ(inner.Wait(), SIGTERM);
    EXPECT_EQ(outer.received(), SIGTERM);
  }
  EXPECT_EQ(seen, 0);
  raise(SIGTERM);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(TerminationSignals().received(), 0) << "what came before is forgotten";
  signal(SIGTERM, before);
}

}  // namespace
}  // namespace troupe
