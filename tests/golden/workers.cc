#include "tests/golden/workers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/cluster.h"
#include "devices/status_macros.h"
#include "tests/golden/compare.h"

namespace troupe::golden {
namespace {

constexpr char kServe[] = "--serve";
constexpr int kStartMilliseconds = 30000;

/// A socket bound to a free port of the loopback address. While nobody listens there, others who
/// ask for reuse may: the task does, and whoever asks the kernel for a free port gets another one.
absl::Status HoldPort(int* fd, std::string* address) {
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(*fd, reinterpret_cast<sockaddr*>(&name), size) != 0 ||
      getsockname(*fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return absl::UnavailableError(StrCat("no port could be had: ", std::strerror(errno)));
  }
  *address = StrCat("127.0.0.1:", ntohs(name.sin_port));
  return absl::OkStatus();
}

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return StrCat("was killed by signal ", WTERMSIG(wait_status), " (",
                  strsignal(WTERMSIG(wait_status)), ")");
  }
  return StrCat("ended with exit status ", WEXITSTATUS(wait_status));
}

}  // namespace

Workers::~Workers() {
  for (const Child& child : children_) {
    if (child.pid > 0) kill(child.pid, SIGKILL);
  }
  for (const Child& child : children_) {
    if (child.pid > 0) waitpid(child.pid, nullptr, 0);
    if (child.output >= 0) close(child.output);
    if (child.held_port >= 0) close(child.held_port);
  }
}

absl::Status Workers::Start(int count) {
  children_.resize(static_cast<size_t>(count));
  for (Child& child : children_) {
    TROUPE_RETURN_IF_ERROR(HoldPort(&child.held_port, &child.address));
  }
  for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(Launch(i));
  for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(WaitUntilServing(i));
  return absl::OkStatus();
}

std::string Workers::target() const { return StrCat("troupe://", children_.front().address); }

std::vector<std::string> Workers::devices() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < children_.size(); ++i) names.push_back(StrCat("/job:worker/task:", i));
  return names;
}

absl::Status Workers::Launch(int task) {
  Child& child = children_[static_cast<size_t>(task)];
  std::vector<std::string> arguments = {"troupe_golden", kServe, std::to_string(task)};
  for (const Child& each : children_) arguments.push_back(each.address);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(StrCat("no pipe: ", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  std::fflush(nullptr);
  child.pid = fork();
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(ends[1], STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(ends[1]);
  if (child.output >= 0) close(child.output);
  child.output = ends[0];
  if (child.pid < 0) {
    return absl::ResourceExhaustedError(StrCat("no process: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status Workers::WaitUntilServing(int task) {
  const Child& child = children_[static_cast<size_t>(task)];
  std::string said;
  while (said.find('\n') == std::string::npos) {
    pollfd waiting{child.output, POLLIN, 0};
    const int ready = poll(&waiting, 1, kStartMilliseconds);
    if (ready < 0 && errno == EINTR) continue;
    char block[256];
    const ssize_t n = ready > 0 ? read(child.output, block, sizeof(block)) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return absl::UnavailableError(
          StrCat("/job:worker/task:", task, " at ", child.address, " did not start to serve"));
    }
    said.append(block, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

std::vector<std::string> Workers::Revive() {
  std::vector<std::string> ended;
  for (size_t i = 0; i < children_.size(); ++i) {
    int wait_status = 0;
    if (children_[i].pid <= 0 || waitpid(children_[i].pid, &wait_status, WNOHANG) == 0) continue;
    const int task = static_cast<int>(i);
    children_[i].pid = -1;
    std::string text = StrCat("/job:worker/task:", i, " ", HowItEnded(wait_status));
    absl::Status status = Launch(task);
    if (status.ok()) status = WaitUntilServing(task);
    if (!status.ok()) text += StrCat(" and cannot be started again: ", StatusLine(status));
    ended.push_back(std::move(text));
  }
  return ended;
}

bool ServeTask(int argc, char** argv, int* exit_status) {
  if (argc < 4 || std::strcmp(argv[1], kServe) != 0) return false;
  *exit_status = 1;
  const int task = std::atoi(argv[2]);
  std::string json;
  for (int i = 3; i < argc; ++i) json += StrCat(i > 3 ? ", " : "", "\"", argv[i], "\"");
  ServerOptions options;
  options.job = "worker";
  options.task = task;
  options.threads = 2;
  absl::StatusOr<ClusterSpec> cluster = ClusterSpec::Parse(StrCat("{\"worker\": [", json, "]}"));
  if (cluster.ok()) options.cluster = *cluster;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", StatusLine(server.status()).c_str());
    return true;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // Nobody reads what kernels print there.
  (*server)->Join();                   // Until this process is ended.
  return true;
}

}  // namespace troupe::golden
