#include "tests/faults/process.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

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

namespace {

ChildProcess Begin(const Process::Options& options) {
  absl::StatusOr<ChildProcess> process =
      ChildProcess::Start({.arguments = options.arguments,
                           .input = true,
                           .output = true,
                           .log = options.log.empty() ? "/dev/null" : options.log,
                           .network = options.network});
  if (process.ok()) return *std::move(process);
  std::fprintf(stderr, "%s\n", process.status().ToString().c_str());
  std::exit(1);
}

}  // namespace

Process::Process(const Options& options) : ChildProcess(Begin(options)) {}

bool Shell(const std::string& command, int network) {
  Process shell({.arguments = {"/bin/sh", "-c", command}, .network = network, .log = ""});
  const std::optional<ExitStatus> status = shell.Wait(Seconds(60));
  return status.has_value() && status->ok();
}

}  // namespace troupe::faults
