/// Child processes that are talked to line by line.
#ifndef TROUPE_TESTS_FAULTS_PROCESS_H_
#define TROUPE_TESTS_FAULTS_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

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

/// A running program. Killed at the end.
class Process {
 public:
  struct Options {
    std::vector<std::string> arguments;  ///< The program first.
    int network = -1;                    ///< A network namespace; -1: this process's own.
    std::string log;                     ///< Gets what is written to standard error.
  };
  explicit Process(const Options& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::optional<std::string> Line(Seconds patience) { return reader_.Next(patience); }
  void Say(const std::string& line);
  void Signal(int number);
  /// The status that `waitpid` gives; nothing: it did not end in time.
  std::optional<int> Wait(Seconds patience);
  bool running();
  pid_t pid() const { return pid_; }

 private:
  struct Pipes;
  explicit Process(const Pipes& pipes, const Options& options);

  int input_;
  int output_;
  LineReader reader_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// Runs a shell command to its end, in a network namespace if one is given; true: it exited with 0.
bool Shell(const std::string& command, int network = -1);

/// Where the program of this process lies.
std::string ProgramFolder();

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_PROCESS_H_
