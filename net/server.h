/// A task of a cluster in this process.
#ifndef TROUPE_NET_SERVER_H_
#define TROUPE_NET_SERVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/runtime.h"
#include "graph/protos/cluster.pb.h"
#include "net/cluster_spec.h"

namespace troupe {

class Links;

struct TaskServerOptions {
  ClusterSpec cluster;
  TaskId task;
  int threads = 0;  ///< That compute; 0: one per core.
  int num_cpu_devices = 1;
  DeviceOptionsByType devices;
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
  std::string secret;  ///< Whoever connects must know it; empty: nobody may have one.
  /// Called with the links before anything connects.
  std::function<void(Links* links, uint64_t incarnation, const std::shared_ptr<Runtime>& runtime)>
      before_listening;
  /// The task has left the cluster, by `Leave` or because somebody wished it, and serves nobody any
  /// more. Called once, on any thread, which it must not hold.
  std::function<void()> left;
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

  /// The cluster has taken this task in: `members` is the answer to JoinClusterRequest.
  void Joined(const cluster::JoinClusterReply& members);
  /// Takes no new work, gives running steps up to `drain` to end, cancels the others, and is not to
  /// be found any more: its port is free and its connections are closed, the heartbeat timeout
  /// after that at the latest. Returns within `drain` and a few seconds; DeadlineExceeded if
  /// kernels did not stop, which then go on for nobody.
  absl::Status Stop(std::chrono::milliseconds drain = std::chrono::milliseconds(2000));
  /// As `Stop`, for good: the others forget this task. FailedPrecondition, and it goes on serving
  /// what runs: no other task lives.
  absl::Status Leave(std::chrono::milliseconds drain);

 private:
  struct Impl;
  explicit TaskServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_NET_SERVER_H_
