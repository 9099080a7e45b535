/// Child processes that are talked to line by line.
#ifndef TROUPE_TESTS_FAULTS_PROCESS_H_
#define TROUPE_TESTS_FAULTS_PROCESS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "api/program/child_process.h"

namespace troupe::faults {

using Seconds = std::chrono::duration<double>;

/// Of the clock that all processes of a machine share, in seconds.
double Now();

/// Reads lines of a file descriptor, each within a deadline.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  /// Nothing: no whole line came in time, or the other end was closed.
  std::optional<std::string> Next(Seconds patience);
  bool closed() const { return closed_; }

 private:
  const int fd_;
  std::string buffer_;
  bool closed_ = false;
};

/// A running program that is talked to through its standard streams. Killed at the end.
class Process : public ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;  ///< The program first.
    int network = -1;                    ///< A network namespace; -1: this process's own.
    std::string log;                     ///< Gets what is written to standard error.
  };
  /// One that cannot be started ends the program with a message.
  explicit Process(const Options& options);

  std::optional<std::string> Line(Seconds patience) {
    return ChildProcess::Line(absl::Seconds(patience.count()));
  }
  std::optional<ExitStatus> Wait(Seconds patience) {
    return ChildProcess::Wait(absl::Seconds(patience.count()));
  }
};

/// Runs a shell command to its end, in a network namespace if one is given; true: it exited with 0.
bool Shell(const std::string& command, int network = -1);

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_PROCESS_H_
