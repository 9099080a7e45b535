// The commands for who runs a cluster: `troupe leave`, `troupe log` and `troupe tracing`.

#ifndef TROUPE_API_CLI_ADMIN_COMMAND_H_
#define TROUPE_API_CLI_ADMIN_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "api/cli/cli.h"

namespace troupe::cli {

struct AdminOptions {
  /// "troupe://host:port"; any task of the cluster.
  std::string master;
  Credentials credentials;
  /// "/job:worker/task:2".
  std::string task;
  std::string log_level;        ///< Empty: the default.
  std::string level = "trace";  ///< The least one of the lines that are printed.
  int lines = 100;
  double seconds = 1;
  std::string file;  ///< For the trace.
};

/// Has a task leave its cluster for good; the exit status.
absl::StatusOr<int> LeaveCommand(const AdminOptions& options);
/// Prints the last lines that a task has logged; the exit status.
absl::StatusOr<int> LogCommand(const AdminOptions& options);
/// Traces the steps of a task for a while and writes a file for Chrome; the exit status.
absl::StatusOr<int> TracingCommand(const AdminOptions& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_ADMIN_COMMAND_H_
