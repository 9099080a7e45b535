// The commands that serve: `troupe worker` and `troupe cluster`.

#ifndef TROUPE_API_CLI_CLUSTER_COMMAND_H_
#define TROUPE_API_CLI_CLUSTER_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/cli/cli.h"

namespace troupe::cli {

/// Options of `worker` and `cluster`.
struct ServeOptions {
  std::string cluster_file;
  /// Without a file: "slurm" or "kubernetes" tell cluster and task, by these jobs; else TF_CONFIG.
  std::string resolver, jobs;
  int port = 7000;
  std::string job;
  int task = -1;
  std::string join;
  Credentials credentials;
  bool insecure = false;
  double heartbeat_timeout = 5;
  int threads = 0;
  int devices = 0;  ///< 0: as the configuration says.
  /// ServerDef (of a worker) and ConfigProto, as text or files; empty: none.
  std::string server_def, config;
  DeviceTexts device_texts;
  std::vector<std::string> libraries;
  std::string log_level;  ///< Empty: the default.
  bool restart = false;   ///< Of `cluster`: starts tasks again that have failed.
};

/// Serves as one task until SIGTERM or SIGINT; the exit status. Throws UsageError.
absl::StatusOr<int> WorkerCommand(const ServeOptions& options);
/// Starts a process for every task of the cluster, and ends with them. Unless there is a secret
/// file, a cluster on loopback gets a secret of its own, which clients of the same user find. With
/// `restart` a process that fails is started again; the error of one that keeps failing ends all.
absl::StatusOr<int> ClusterCommand(const ServeOptions& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_CLUSTER_COMMAND_H_
