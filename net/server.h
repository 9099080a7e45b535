/// A task of a cluster in this process.
#ifndef TROUPE_NET_SERVER_H_
#define TROUPE_NET_SERVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/runtime.h"
#include "graph/protos/cluster.pb.h"
#include "net/cluster_spec.h"

namespace troupe {

struct TaskServerOptions {
  ClusterSpec cluster;
  TaskId task;
  int threads = 0;  ///< That compute; 0: one per core.
  int num_cpu_devices = 1;
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds heartbeat_timeout{5000};
  /// How long the creation of a session waits for tasks that are missing.
  std::chrono::milliseconds wait_for_workers{7500};
  /// Of a cluster that runs, of which this task is to be a member: the name and address of each of
  /// its tasks. Only the task's own address is taken from `cluster`, and `Joined` is to be called.
  bool joining = false;
  std::vector<std::pair<std::string, std::string>> members;
  /// Serve addresses other than loopback without TLS.
  bool insecure = false;
  std::string tls_certificate, tls_key, tls_authority;  ///< PEM files; all or none.
};

/// Serves as worker and as master, from `Start` on until `Stop`. Thread-safe.
class TaskServer {
 public:
  /// Returns when it serves. InvalidArgument: the task is not in the cluster, or options that do
  /// not fit; FailedPrecondition: an address other than loopback without TLS and `insecure`;
  /// Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<TaskServer>> Start(const TaskServerOptions& options);
  /// Stops without draining.
  ~TaskServer();

  const TaskId& task() const;
  std::string address() const;  ///< "host:port".
  uint64_t incarnation() const;
  const std::shared_ptr<Runtime>& runtime() const;

  /// The cluster has taken this task in: `members` is the answer to JOIN_CLUSTER.
  void Joined(const cluster::Message& members);
  /// Takes no new work, gives running steps up to `drain` to end, cancels the others, and leaves
  /// the cluster. Returns within `drain` and a few seconds; DeadlineExceeded if kernels did not
  /// stop.
  absl::Status Stop(std::chrono::milliseconds drain = std::chrono::milliseconds(2000));

 private:
  struct Impl;
  explicit TaskServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// What the names begin with by which clients are known to tasks.
inline constexpr std::string_view kClientTask = "client:";

/// A number for a life of a process that no other one has.
uint64_t NewIncarnation();

}  // namespace troupe

#endif  // TROUPE_NET_SERVER_H_
