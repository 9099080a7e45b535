#include "api/program/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Boost makes a pipe per start and marks it close-on-exec afterwards: a process that another
/// thread starts in between would hold it open for as long as it lives.
std::mutex starting;

/// Ends a file descriptor with itself.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Reset(-1); }

  int get() const { return fd_; }
  int Take() { return std::exchange(fd_, -1); }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace

/// The ends of a process's streams: `ours` stay here, `its` become its standard streams.
struct ChildProcess::Streams {
  Descriptor our_input, its_input, our_output, its_output, its_log;

  absl::Status Open(const Options& options) {
    int ends[2];
    if (options.input) {  // A socket, which can be written to without a signal.
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Failed("socket");
      our_input.Reset(ends[0]);
      its_input.Reset(ends[1]);
    }
    if (options.output || options.errors) {
      if (pipe2(ends, O_CLOEXEC) != 0) return Failed("pipe");
      our_output.Reset(ends[0]);
      its_output.Reset(ends[1]);
    }
    if (!options.log.empty()) {
      its_log.Reset(open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
      if (its_log.get() < 0) return Failed(StrCat("log ", options.log));
    }
    return absl::OkStatus();
  }
  static absl::Status Failed(const std::string& what) {
    return absl::ErrnoToStatus(errno, StrCat("no ", what, " for a process"));
  }
};

namespace {

/// What is done in the new process, before its program or its function begins: only calls that are
/// safe there. The step that fails is named, and `errno` says why.
struct Setup {
  pid_t parent;
  int input, output, errors, death_signal, network;

  const char* Apply() const {
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) _exit(126);  // The parent has ended before it was said so.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (network >= 0 && setns(network, CLONE_NEWNET) != 0) return "setns";
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0) return "standard input";
    if (output >= 0 && dup2(output, STDOUT_FILENO) < 0) return "standard output";
    if (errors >= 0 && dup2(errors, STDERR_FILENO) < 0) return "standard error";
    return nullptr;
  }
};

struct SetupHandler : boost::process::extend::handler {
  explicit SetupHandler(const Setup& setup) : setup(setup) {}

  template <typename Executor>
  void on_exec_setup(Executor& executor) const {
    if (const char* failed = setup.Apply(); failed != nullptr) {
      executor.set_error(std::error_code(errno, std::system_category()), failed);
      _exit(127);
    }
  }
  /// Boost leaves a process that could not become the program behind.
  template <typename Executor>
  void on_error(Executor& executor, const std::error_code&) const {
    if (executor.pid > 0) waitpid(executor.pid, nullptr, 0);
  }

  Setup setup;
};

Setup MakeSetup(const ChildProcess::Options& options, int input, int output, int log) {
  return {.parent = getpid(),
          .input = input,
          .output = options.output ? output : -1,
          .errors = options.errors ? output : log,
          .death_signal = options.death_signal,
          .network = options.network};
}

ExitStatus FromWait(int status) {
  if (WIFSIGNALED(status)) return {.code = std::nullopt, .signal = WTERMSIG(status)};
  return {.code = WEXITSTATUS(status), .signal = 0};
}

int MillisecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (code.has_value()) return StrCat("ended with exit status ", *code);
  return StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  namespace bp = boost::process;
  if (options.arguments.empty()) return InvalidArgument("no program to start");
  Streams streams;
  TROUPE_RETURN_IF_ERROR(streams.Open(options));
  bp::environment environment = boost::this_process::environment();
  // Boost's operator[] reads beyond the ends of strings that are shorter than the name.
  for (const auto& [name, value] : options.environment) environment.set(name, value);
  const std::vector<std::string> arguments(options.arguments.begin() + 1, options.arguments.end());
  const SetupHandler setup(
      MakeSetup(options, streams.its_input.get(), streams.its_output.get(), streams.its_log.get()));
  std::error_code error;
  std::lock_guard<std::mutex> lock(starting);
  bp::child child(bp::exe = options.arguments[0], bp::args = arguments, environment, setup, error);
  if (error || child.id() <= 0) {
    return absl::ErrnoToStatus(error ? error.value() : EAGAIN,
                               StrCat(options.arguments[0], " cannot be started"));
  }
  child.detach();  // `ChildProcess` waits for it.
  return ChildProcess(child.id(), &streams);
}

absl::StatusOr<ChildProcess> ChildProcess::Fork(absl::FunctionRef<int()> body,
                                                const Options& options) {
  Streams streams;
  TROUPE_RETURN_IF_ERROR(streams.Open(options));
  const Setup setup =
      MakeSetup(options, streams.its_input.get(), streams.its_output.get(), streams.its_log.get());
  std::fflush(stdout);  // What is buffered is written once. (Others may be read by a thread.)
  std::lock_guard<std::mutex> lock(starting);
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "no process can be started");
  if (pid == 0) {
    if (setup.Apply() != nullptr) _exit(127);
    streams.our_input.Reset(-1);
    streams.our_output.Reset(-1);
    starting.unlock();
    const int result = body();
    std::fflush(stdout);
    _exit(result);
  }
  return ChildProcess(pid, &streams);
}

ChildProcess::ChildProcess(pid_t pid, Streams* streams)
    : pid_(pid), input_(streams->our_input.Take()), output_(streams->our_output.Take()) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  buffer_ = std::move(other.buffer_);
  closed_ = other.closed_;
  status_ = other.status_;
  return *this;
}

void ChildProcess::Release() {
  if (pid_ > 0) End();
  if (input_ >= 0) close(input_);
  if (output_ >= 0) close(output_);
}

void ChildProcess::Signal(int number) {
  if (pid_ > 0 && !status_.has_value()) kill(pid_, number);
}

std::optional<ExitStatus> ChildProcess::Wait(absl::Duration patience) {
  if (pid_ <= 0 || status_.has_value()) return status_;
  const absl::Time deadline = absl::Now() + patience;
  const int options = patience == absl::InfiniteDuration() ? 0 : WNOHANG;
  while (!status_.has_value()) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, options);
    if (ended == pid_) {
      status_ = FromWait(status);
    } else if (ended < 0 && errno != EINTR) {
      status_ = ExitStatus{.code = 255, .signal = 0};  // Somebody else has waited for it.
    } else if (absl::Now() >= deadline) {
      return std::nullopt;
    } else if (ended == 0) {
      absl::SleepFor(absl::Milliseconds(1));  // A child cannot be waited for with a deadline.
    }
  }
  return status_;
}

ExitStatus ChildProcess::End(int number, absl::Duration patience) {
  Signal(number);
  if (const std::optional<ExitStatus> status = Wait(patience)) return *status;
  Signal(SIGKILL);
  return Wait().value_or(ExitStatus());
}

bool ChildProcess::Read(absl::Time deadline) {
  while (!closed_) {
    pollfd ready{output_, POLLIN, 0};
    const int number = poll(&ready, 1, MillisecondsUntil(deadline));
    if (number == 0) return false;
    if (number < 0 && errno == EINTR) continue;
    char bytes[4096];
    const ssize_t size = number > 0 ? read(output_, bytes, sizeof(bytes)) : -1;
    if (size > 0) {
      buffer_.append(bytes, static_cast<size_t>(size));
      return true;
    }
    if (size == 0 || errno != EINTR) closed_ = true;
  }
  return false;
}

std::optional<std::string> ChildProcess::Line(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (!Read(deadline)) return std::nullopt;
  }
}

std::string ChildProcess::Rest(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (Read(deadline)) {
  }
  return std::exchange(buffer_, "");
}

void ChildProcess::Say(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t size = send(input_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    done += static_cast<size_t>(size);
  }
}

void ChildProcess::CloseInput() {
  if (input_ >= 0) close(std::exchange(input_, -1));
}

absl::StatusOr<Finished> RunProgram(ChildProcess::Options options, absl::Duration patience) {
  options.output = true;
  const absl::Time deadline = absl::Now() + patience;
  const std::string program = options.arguments.empty() ? "" : options.arguments[0];
  TROUPE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  Finished finished;
  finished.output = process.Rest(patience);
  const std::optional<ExitStatus> status = process.Wait(deadline - absl::Now());
  if (!status.has_value()) {
    return absl::DeadlineExceededError(
        StrCat(program, " had not ended after ", absl::FormatDuration(patience)));
  }
  finished.status = *status;
  return finished;
}

std::string ThisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string ProgramFolder() { return std::filesystem::path(ThisProgram()).parent_path().string(); }

}  // namespace troupe
