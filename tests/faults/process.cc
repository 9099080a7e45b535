#include "tests/faults/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

namespace troupe::faults {

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::optional<std::string> LineReader::Next(Seconds patience) {
  const double deadline = Now() + patience.count();
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const double left = deadline - Now();
    if (closed_ || left <= 0) return std::nullopt;
    pollfd ready{fd_, POLLIN, 0};
    const int number = poll(&ready, 1, static_cast<int>(left * 1000) + 1);
    if (number <= 0) continue;
    char bytes[4096];
    const ssize_t size = read(fd_, bytes, sizeof(bytes));
    if (size > 0) {
      buffer_.append(bytes, static_cast<size_t>(size));
    } else if (size == 0 || errno != EINTR) {
      closed_ = true;
    }
  }
}

struct Process::Pipes {
  Pipes() {
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) perror("pipe2");
  }
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
};

Process::Process(const Options& options) : Process(Pipes(), options) {}

Process::Process(const Pipes& pipes, const Options& options)
    : input_(pipes.in[1]), output_(pipes.out[0]), reader_(output_) {
  std::vector<char*> argv;
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const char* log = options.log.empty() ? "/dev/null" : options.log.c_str();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    if (options.network >= 0 && setns(options.network, CLONE_NEWNET) != 0) _exit(125);
    dup2(pipes.in[0], STDIN_FILENO);
    dup2(pipes.out[1], STDOUT_FILENO);
    const int errors = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (errors >= 0) dup2(errors, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(pipes.in[0]);
  close(pipes.out[1]);
}

Process::~Process() {
  if (running()) {
    Signal(SIGKILL);
    Wait(Seconds(10));
  }
  close(input_);
  close(output_);
}

void Process::Say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(input_, text.data(), text.size()) < 0) return;  // It has ended; `Wait` tells.
}

void Process::Signal(int number) {
  if (pid_ > 0 && !status_) kill(pid_, number);
}

bool Process::running() { return pid_ > 0 && !Wait(Seconds(0)); }

std::optional<int> Process::Wait(Seconds patience) {
  const double deadline = Now() + patience.count();
  while (!status_) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) {
      status_ = status;
    } else if (Now() >= deadline) {
      return std::nullopt;
    } else {
      // There is no wait with a deadline for a child of one's own.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return status_;
}

bool Shell(const std::string& command, int network) {
  Process shell({.arguments = {"/bin/sh", "-c", command}, .network = network, .log = ""});
  const std::optional<int> status = shell.Wait(Seconds(60));
  return status.has_value() && *status == 0;
}

std::string ProgramFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

}  // namespace troupe::faults
