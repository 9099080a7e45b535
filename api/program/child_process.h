// Child processes: the one place where Troupe's programs, examples and tests start any.

#ifndef TROUPE_API_PROGRAM_CHILD_PROCESS_H_
#define TROUPE_API_PROGRAM_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace troupe {

/// How a process ended.
struct ExitStatus {
  /// What it returned; nothing: a signal killed it.
  std::optional<int> code;
  /// What killed it, or 0.
  int signal = 0;

  bool ok() const { return code == 0; }
  /// "ended with exit status 1", "was killed by signal 9 (Killed)".
  std::string ToString() const;
};

/// A process that this one has started: there is one for as long as the object lives, running or
/// ended. It is killed with the object, and with the thread that started it. Thread-compatible; any
/// number of threads may start processes at once.
class ChildProcess {
 public:
  struct Options {
    /// The path of the program first.
    std::vector<std::string> arguments;
    /// Names and values, beside this process's own.
    std::vector<std::pair<std::string, std::string>> environment;
    /// `Say` writes what it reads from standard input.
    bool input = false;
    /// `Line` and `Rest` read what it writes to standard output.
    bool output = false;
    /// They read what it writes to standard error, too.
    bool errors = false;
    /// A file to which its standard error is appended.
    std::string log;
    /// What it gets when the thread that started it ends.
    int death_signal = SIGKILL;
    /// A file descriptor of a network namespace; -1: this process's own.
    int network = -1;
  };

  /// Starts a program. Streams that no option names are this process's own; no signal is blocked.
  /// The error names the program and says why it could not be started: nothing runs then.
  static absl::StatusOr<ChildProcess> Start(const Options& options);
  /// Runs `body` in a copy of this process, which must have no other threads, and ends it with the
  /// status that `body` returns, without destructors. Arguments and environment do not count.
  static absl::StatusOr<ChildProcess> Fork(absl::FunctionRef<int()> body, const Options& options);

  ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Release(); }

  pid_t pid() const { return pid_; }
  bool running() { return !Wait(absl::ZeroDuration()).has_value(); }
  /// Does nothing if it has ended.
  void Signal(int number);
  /// Nothing: it did not end in time.
  std::optional<ExitStatus> Wait(absl::Duration patience = absl::InfiniteDuration());
  /// Signals and waits; kills it if it has not ended in time, and so says `ExitStatus::signal`.
  ExitStatus End(int number = SIGKILL, absl::Duration patience = absl::InfiniteDuration());

  /// The next line that it writes, without its end. Nothing: no whole line came in time, or the
  /// other end was closed.
  std::optional<std::string> Line(absl::Duration patience = absl::InfiniteDuration());
  /// All that it writes from here on, until it closes its end or the time is over.
  std::string Rest(absl::Duration patience = absl::InfiniteDuration());
  /// Whether it has closed its end of the output, after a `Line` that gave nothing.
  bool closed() const { return closed_; }
  /// Writes a line to its input. One that has ended does not read it; `Wait` tells.
  void Say(const std::string& line);
  /// It reads the end of its input.
  void CloseInput();

 private:
  struct Streams;
  ChildProcess(pid_t pid, Streams* streams);
  void Release();
  /// Reads once; false: the time is over, or the end was closed.
  bool Read(absl::Time deadline);

  /// -1 only after a move, never signalled.
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
  bool closed_ = false;
  std::optional<ExitStatus> status_;
};

/// What a program wrote, to standard error too if so asked, and how it ended.
struct Finished {
  ExitStatus status;
  std::string output;
};

/// Runs a program to its end and reads what it writes. DeadlineExceeded: it was killed.
absl::StatusOr<Finished> RunProgram(ChildProcess::Options options,
                                    absl::Duration patience = absl::InfiniteDuration());

/// The file of this program, and the folder in which it lies.
std::string ThisProgram();
std::string ProgramFolder();

}  // namespace troupe

#endif  // TROUPE_API_PROGRAM_CHILD_PROCESS_H_
