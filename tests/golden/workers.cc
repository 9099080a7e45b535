#include "tests/golden/workers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/cluster.h"
#include "devices/status_macros.h"
#include "tests/golden/compare.h"
#include "tests/golden/spread.h"

namespace troupe::golden {
namespace {

constexpr char kServe[] = "--serve";
constexpr absl::Duration kStartPatience = absl::Seconds(30);

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

}  // namespace

Workers::~Workers() {
  for (const Child& child : children_) {
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
  for (size_t i = 0; i < children_.size(); ++i) {
    const std::string& type = CurrentSpread().device_type;
    names.push_back(
        StrCat("/job:worker/task:", i, type == "CPU" ? "" : StrCat("/device:", type, ":0")));
  }
  return names;
}

absl::Status Workers::Launch(int task) {
  Child& child = children_[static_cast<size_t>(task)];
  const Spread& spread = CurrentSpread();
  std::vector<std::string> arguments = {ThisProgram(), kServe, std::to_string(task),
                                        spread.device_type, std::to_string(spread.seed)};
  for (const Child& each : children_) arguments.push_back(each.address);
  TROUPE_ASSIGN_OR_RETURN(child.process,
                          ChildProcess::Start({.arguments = arguments, .output = true}));
  return absl::OkStatus();
}

absl::Status Workers::WaitUntilServing(int task) {
  Child& child = children_[static_cast<size_t>(task)];
  if (child.process->Line(kStartPatience).has_value()) return absl::OkStatus();
  return absl::UnavailableError(
      StrCat("/job:worker/task:", task, " at ", child.address, " did not start to serve"));
}

std::vector<std::string> Workers::Revive() {
  std::vector<std::string> ended;
  for (size_t i = 0; i < children_.size(); ++i) {
    std::optional<ChildProcess>& process = children_[i].process;
    if (!process.has_value() || process->running()) continue;
    const int task = static_cast<int>(i);
    std::string text = StrCat("/job:worker/task:", i, " ", process->Wait()->ToString());
    process.reset();
    absl::Status status = Launch(task);
    if (status.ok()) status = WaitUntilServing(task);
    if (!status.ok()) text += StrCat(" and cannot be started again: ", StatusLine(status));
    ended.push_back(std::move(text));
  }
  return ended;
}

bool ServeTask(int argc, char** argv, int* exit_status) {
  if (argc < 6 || std::strcmp(argv[1], kServe) != 0) return false;
  *exit_status = 1;
  const int task = std::atoi(argv[2]);
  std::string json;
  for (int i = 5; i < argc; ++i) json += StrCat(i > 5 ? ", " : "", "\"", argv[i], "\"");
  ServerOptions options;
  const std::string type = argv[3];
  if (type == "SIM") {
    UseSimulatedDevices(std::strtoull(argv[4], nullptr, 10) + static_cast<uint64_t>(task));
  }
  if (type != "CPU") options.devices[type] = {};
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
