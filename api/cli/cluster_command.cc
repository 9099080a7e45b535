#include "api/cli/cluster_command.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "api/cli/cli.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

// For a task to serve, and for one that was told to end: it drains, and gives up what hangs.
constexpr absl::Duration kReadyPatience = absl::Seconds(60), kChildPatience = absl::Seconds(15);

int ParseWhole(const std::string& option, const std::string& text, int maximum) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > maximum) {
    throw UsageError{option + " takes a number up to " + std::to_string(maximum) + ", not \"" +
                     text + "\""};
  }
  return number;
}

/// The cluster, and the task if TF_CONFIG names it.
absl::StatusOr<ClusterSpec> ReadCluster(ServeOptions* options) {
  if (!options->cluster_file.empty()) return ClusterSpec::ReadFile(options->cluster_file);
  const char* config = std::getenv("TF_CONFIG");
  if (config == nullptr) {
    return InvalidArgument("no cluster: give --cluster FILE, or set TF_CONFIG");
  }
  TROUPE_ASSIGN_OR_RETURN(TfConfig parsed, ParseTfConfig(config));
  if (options->job.empty()) options->job = parsed.task.job;
  if (options->task < 0) options->task = parsed.task.task;
  return parsed.cluster;
}

/// SIGTERM and SIGINT are waited for: no thread that is started later is interrupted by them.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

}  // namespace

ServeOptions ServeOptions::Parse(int argc, char** argv) {
  ServeOptions options;
  options.command = argv[1];
  const bool worker = options.command == "worker";
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      if (worker || !options.cluster_file.empty()) {
        throw UsageError{"unexpected argument \"" + name + "\""};
      }
      options.cluster_file = name;
      continue;
    }
    std::optional<std::string> inline_value;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      inline_value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    auto value = [&]() -> std::string {
      if (inline_value) return *inline_value;
      if (i + 1 >= argc) throw UsageError{name + " needs a value"};
      return argv[++i];
    };
    if (worker && name == "--cluster") {
      options.cluster_file = value();
    } else if (worker && name == "--job") {
      options.job = value();
    } else if (worker && name == "--task") {
      options.task = ParseWhole(name, value(), 1000000);
    } else if (worker && name == "--data-port") {
      options.data_port = ParseWhole(name, value(), 65535);
    } else if (worker && name == "--join") {
      options.join = value();
    } else if (name == "--tls-cert") {
      options.tls_cert = value();
    } else if (name == "--tls-key") {
      options.tls_key = value();
    } else if (name == "--tls-ca") {
      options.tls_ca = value();
    } else if (name == "--insecure" && !inline_value) {
      options.insecure = true;
    } else if (name == "--heartbeat-timeout") {
      const std::string text = value();
      char* end = nullptr;
      options.heartbeat_timeout = std::strtod(text.c_str(), &end);
      if (*end != '\0' || !(options.heartbeat_timeout >= 0.1 && options.heartbeat_timeout <= 1e6)) {
        throw UsageError{"--heartbeat-timeout takes seconds, at least 0.1, not \"" + text + "\""};
      }
    } else if (name == "--threads") {
      options.threads = ParseWhole(name, value(), 4096);
    } else if (name == "--devices") {
      options.devices = ParseWhole(name, value(), 1024);
    } else {
      throw UsageError{"unknown option " + name + " for " + options.command};
    }
  }
  if (!worker && options.cluster_file.empty()) throw UsageError{"FILE is missing"};
  if (options.devices < 1) throw UsageError{"--devices takes at least 1"};
  return options;
}

absl::StatusOr<int> WorkerCommand(const ServeOptions& given) {
  ServeOptions options = given;
  TROUPE_ASSIGN_OR_RETURN(const ClusterSpec cluster, ReadCluster(&options));
  if (options.job.empty() || options.task < 0) {
    throw UsageError{"which task is this? give --job and --task"};
  }
  const sigset_t signals = BlockSignals();
  ServerOptions server_options;
  server_options.cluster = cluster;
  server_options.job = options.job;
  server_options.task = options.task;
  server_options.join = options.join;
  server_options.threads = options.threads;
  server_options.num_cpu_devices = options.devices;
  server_options.data_port = options.data_port;
  server_options.heartbeat_timeout = absl::Seconds(options.heartbeat_timeout);
  server_options.heartbeat_interval =
      std::min(absl::Seconds(1), absl::Seconds(options.heartbeat_timeout / 5));
  server_options.wait_for_workers = 1.5 * server_options.heartbeat_timeout;
  server_options.insecure = options.insecure;
  server_options.tls_certificate = options.tls_cert;
  server_options.tls_key = options.tls_key;
  server_options.tls_authority = options.tls_ca;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(server_options));
  std::cout << "ready " << server->target() << std::endl;
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  TROUPE_RETURN_IF_ERROR(server->Stop());
  return 0;
}

namespace {

/// A task of the cluster and its process.
struct Child {
  TaskId task;
  ChildProcess process;
};

/// The command line of a task. The signal mask of this thread is not handed on.
std::vector<std::string> WorkerArguments(const ServeOptions& options, const TaskId& task) {
  std::vector<std::string> arguments = {ThisProgram(),
                                        "worker",
                                        "--cluster",
                                        options.cluster_file,
                                        "--job",
                                        task.job,
                                        "--task",
                                        std::to_string(task.task),
                                        "--heartbeat-timeout",
                                        std::to_string(options.heartbeat_timeout),
                                        "--devices",
                                        std::to_string(options.devices)};
  if (options.threads > 0) {
    arguments.insert(arguments.end(), {"--threads", std::to_string(options.threads)});
  }
  if (options.insecure) arguments.push_back("--insecure");
  if (!options.tls_cert.empty()) {
    arguments.insert(arguments.end(), {"--tls-cert", options.tls_cert, "--tls-key", options.tls_key,
                                       "--tls-ca", options.tls_ca});
  }
  return arguments;
}

absl::StatusOr<std::vector<Child>> StartTasks(const ServeOptions& options,
                                              const ClusterSpec& cluster) {
  std::vector<Child> children;
  for (const TaskId& task : cluster.tasks()) {
    TROUPE_ASSIGN_OR_RETURN(ChildProcess process,
                            ChildProcess::Start({.arguments = WorkerArguments(options, task),
                                                 .output = true,
                                                 .death_signal = SIGTERM}));
    children.push_back({task, std::move(process)});
  }
  return children;
}

/// Each says "ready ...", or ends with its error, or is given up.
absl::Status WaitUntilReady(std::vector<Child>* children) {
  const absl::Time ready_by = absl::Now() + kReadyPatience;
  for (Child& child : *children) {
    if (child.process.Line(ready_by - absl::Now()).has_value()) continue;
    return absl::UnavailableError(StrCat(child.task.ToString(), " did not start within ",
                                         absl::FormatDuration(kReadyPatience),
                                         ", or not at all; its own message is above"));
  }
  return absl::OkStatus();
}

/// Tells all to drain; the exit status of the whole.
int EndTasks(std::vector<Child>* children) {
  for (Child& child : *children) child.process.Signal(SIGTERM);
  int status = 0;
  const absl::Time ended_by = absl::Now() + kChildPatience;
  for (Child& child : *children) {
    const ExitStatus ended = child.process.End(SIGTERM, ended_by - absl::Now());
    if (ended.ok()) continue;
    std::cerr << child.task.ToString() << " " << ended.ToString() << "\n";
    status = 1;
  }
  return status;
}

}  // namespace

absl::StatusOr<int> ClusterCommand(const ServeOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::ReadFile(options.cluster_file));
  const sigset_t signals = BlockSignals();
  TROUPE_ASSIGN_OR_RETURN(std::vector<Child> children, StartTasks(options, cluster));
  if (absl::Status status = WaitUntilReady(&children); !status.ok()) {
    EndTasks(&children);
    return status;
  }
  std::cout << "ready" << std::endl;
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  return EndTasks(&children);
}

}  // namespace troupe::cli
