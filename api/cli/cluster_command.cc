#include "api/cli/cluster_command.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "api/cli/certificates_command.h"
#include "api/cluster.h"
#include "api/config.h"
#include "api/internal/secret.h"
#include "api/program/task_processes.h"
#include "api/termination_signals.h"
#include "devices/status_macros.h"
#include "net/cluster_resolvers.h"

namespace troupe::cli {

namespace {

/// What the environment says about the cluster and this task.
absl::StatusOr<TfConfig> Resolve(const ServeOptions& options) {
  if (!options.resolver.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const JobSizes jobs, ParseJobSizes(options.jobs));
    const auto resolve = options.resolver == "slurm" ? ResolveSlurm : ResolveKubernetes;
    return resolve(jobs, options.port, [](const char* name) { return std::getenv(name); });
  }
  const char* config = std::getenv("TF_CONFIG");
  if (config == nullptr) {
    return InvalidArgument("no cluster: give --cluster FILE or --resolve, or set TF_CONFIG");
  }
  return ParseTfConfig(config);
}

/// The cluster, and the task if the environment names it.
absl::StatusOr<ClusterSpec> ReadCluster(ServeOptions* options) {
  if (!options->cluster_file.empty()) return ClusterSpec::ReadFile(options->cluster_file);
  TROUPE_ASSIGN_OR_RETURN(const TfConfig config, Resolve(*options));
  if (options->job.empty()) options->job = config.task.job;
  if (options->task < 0) options->task = config.task.task;
  return config.cluster;
}

}  // namespace

absl::StatusOr<int> WorkerCommand(const ServeOptions& given) {
  ServeOptions options = given;
  ServerOptions server_options;
  if (options.server_def.empty()) {
    TROUPE_ASSIGN_OR_RETURN(server_options.cluster, ReadCluster(&options));
  } else {
    TROUPE_ASSIGN_OR_RETURN(const config::ServerDef server, ReadServerDef(options.server_def));
    TROUPE_ASSIGN_OR_RETURN(server_options, ServerOptionsFrom(server));
    options.job = server_options.job;
    options.task = server_options.task;
  }
  if (!options.config.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const config::ConfigProto config, ReadConfigProto(options.config));
    TROUPE_RETURN_IF_ERROR(ApplyConfig(config, &server_options));
  }
  if (options.job.empty() || options.task < 0) {
    throw UsageError{"which task is this? give --job and --task"};
  }
  signal(SIGPIPE, SIG_IGN);
  const TerminationSignals signals;  // Kept from here on, whenever they come.
  server_options.job = options.job;
  server_options.task = options.task;
  server_options.join = options.join;
  if (options.threads > 0) server_options.threads = options.threads;
  if (options.devices > 0) server_options.num_cpu_devices = options.devices;
  for (auto& [type, devices] : options.device_texts.Parse()) {
    server_options.devices[type] = std::move(devices);
  }
  server_options.heartbeat_timeout = absl::Seconds(options.heartbeat_timeout);
  server_options.heartbeat_interval =
      std::min(absl::Seconds(1), absl::Seconds(options.heartbeat_timeout / 5));
  server_options.wait_for_workers = 1.5 * server_options.heartbeat_timeout;
  server_options.insecure = options.insecure;
  options.credentials.CopyTo(TaskFiles({options.job, options.task}), &server_options);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(server_options));
  std::cout << "ready " << server->target() << std::endl;
  TROUPE_RETURN_IF_ERROR(server->JoinUntilSignal());
  return 0;
}

namespace {

/// The command line of a task, whose secret is in `secret_file` unless that is empty.
std::vector<std::string> WorkerArguments(const ServeOptions& options, const TaskId& task,
                                         const std::string& secret_file) {
  std::vector<std::string> arguments = {ThisProgram(),
                                        "worker",
                                        "--cluster",
                                        options.cluster_file,
                                        "--job",
                                        task.job,
                                        "--task",
                                        std::to_string(task.task),
                                        "--heartbeat-timeout",
                                        std::to_string(options.heartbeat_timeout)};
  if (options.devices > 0) {
    arguments.insert(arguments.end(), {"--devices", std::to_string(options.devices)});
  }
  if (!options.config.empty()) arguments.insert(arguments.end(), {"--config", options.config});
  if (options.threads > 0) {
    arguments.insert(arguments.end(), {"--threads", std::to_string(options.threads)});
  }
  for (const std::string& library : options.libraries) {
    arguments.insert(arguments.end(), {"--library", library});
  }
  for (std::string& argument : options.device_texts.Arguments()) {
    arguments.push_back(std::move(argument));
  }
  if (options.insecure) arguments.push_back("--insecure");
  if (!options.log_level.empty()) {
    arguments.insert(arguments.end(), {"--log-level", options.log_level});
  }
  const Credentials& credentials = options.credentials;
  if (!credentials.certificate.empty()) {
    arguments.insert(arguments.end(), {"--tls-cert", credentials.certificate, "--tls-key",
                                       credentials.key, "--tls-ca", credentials.authority});
  }
  if (!credentials.folder.empty()) {
    arguments.insert(arguments.end(), {"--certificates", credentials.folder});
  }
  if (!secret_file.empty()) arguments.insert(arguments.end(), {"--secret-file", secret_file});
  return arguments;
}

/// A secret for a cluster that was not given one; nullptr if other machines are to reach it.
absl::StatusOr<std::unique_ptr<PublishedSecret>> MakeSecret(const ServeOptions& options,
                                                            const ClusterSpec& cluster) {
  if (!options.credentials.secret.empty()) return nullptr;
  std::vector<std::string> addresses;
  for (const TaskId& task : cluster.tasks()) {
    addresses.push_back(cluster.Address(task).value());
  }
  return PublishedSecret::Create(addresses);
}

}  // namespace

absl::StatusOr<int> ClusterCommand(const ServeOptions& options) {
  options.device_texts.Parse();  // Wrong usage is said once, not by every task.
  TROUPE_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::ReadFile(options.cluster_file));
  signal(SIGPIPE, SIG_IGN);
  const TerminationSignals signals;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<PublishedSecret> secret,
                          MakeSecret(options, cluster));
  TaskProcesses processes(cluster, [&](const TaskId& task) {
    std::string secret_file = options.credentials.secret;
    if (secret != nullptr) secret_file = secret->file(cluster.Address(task).value());
    return WorkerArguments(options, task, secret_file);
  });
  absl::Status status = processes.Start();
  if (status.ok()) {
    std::cout << "ready" << std::endl;
    if (options.restart) {
      status = processes.Supervise(signals);
    } else {
      signals.Wait();
    }
  }
  const bool ended = processes.End();
  TROUPE_RETURN_IF_ERROR(status);
  return ended ? 0 : 1;
}

}  // namespace troupe::cli
