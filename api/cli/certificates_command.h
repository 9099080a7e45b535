// The command `troupe certificates`.

#ifndef TROUPE_API_CLI_CERTIFICATES_COMMAND_H_
#define TROUPE_API_CLI_CERTIFICATES_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "net/cluster_spec.h"

namespace troupe::cli {

/// The names of files, without endings: "job-ps-task-0" for a task, and those of clients.
std::string TaskFiles(const TaskId& task);
inline constexpr char kClientFiles[] = "client";

struct CertificatesOptions {
  std::string cluster_file;
  std::string folder;
  /// A folder that the command has made before: its authority signs. Empty: there is a new one.
  std::string authority;
  int days = 365;
};

/// Makes an authority and what it signs: a certificate and key for each task of the cluster, which
/// names the task, and one for clients. The exit status. AlreadyExists: one of the files is there;
/// then none is written.
absl::StatusOr<int> CertificatesCommand(const CertificatesOptions& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_CERTIFICATES_COMMAND_H_
