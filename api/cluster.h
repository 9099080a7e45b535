/// Clusters: tasks that run graphs together.
#ifndef TROUPE_API_CLUSTER_H_
#define TROUPE_API_CLUSTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/device_registry.h"
#include "devices/export.h"
#include "net/cluster_resolvers.h"
#include "net/cluster_spec.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class ActorHost;
class Runtime;

/// How a task serves. A value.
struct ServerOptions {
  ClusterSpec cluster;
  std::string job;
  int task = 0;
  int threads = 0;          ///< That compute; 0: one per core.
  int num_cpu_devices = 1;  ///< That the task shows.
  /// Devices of other types that it shows; "CPU" in place of `num_cpu_devices`.
  DeviceOptionsByType devices = {};
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration heartbeat_timeout = absl::Seconds(5);
  /// How long the creation of a session waits for tasks that are missing.
  absl::Duration wait_for_workers = absl::Seconds(7.5);
  /// "host:port" of a task of a cluster that runs: this task becomes a member of it. Then only its
  /// own address is taken from `cluster`.
  std::string join;
  /// Serve addresses other than loopback without TLS.
  bool insecure = false;
  /// PEM files: this task's certificate and key, and the authority's. All or none.
  std::string tls_certificate, tls_key, tls_authority;
  /// A file that only its owner can read, with 16 to 4096 bytes that all tasks and clients of the
  /// cluster know (a newline at its end does not count): whoever does not is refused. Empty: there
  /// is no secret, unless the task joins a cluster of `troupe cluster` here, whose secret is found.
  std::string secret_file;
};

/// A task of a cluster in this process: it works, and any session may have it as its master. A
/// process may have several. Thread-safe.
///
///     auto cluster = ClusterSpec::Parse(R"({"worker": ["127.0.0.1:7000", "127.0.0.1:7001"]})");
///     auto server = Server::Start({.cluster = *cluster, .job = "worker", .task = 0});
///     auto session = Session::Create(graph, {.target = (*server)->target()});
class Server {
 public:
  /// Returns when the task serves. InvalidArgument, NotFound: it is not in the cluster, or options
  /// that do not fit; FailedPrecondition: an address that other machines may reach, without TLS and
  /// `insecure`, or a secret that others can read; Unavailable: the port is in use, or nobody is
  /// there whom to join; PermissionDenied: who is there has another secret; AlreadyExists: a task
  /// of that name lives in the cluster that is to be joined.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  /// Stops without draining; returns in bounded time.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "troupe://host:port", for `SessionOptions::target`.
  std::string target() const;
  /// "/job:worker/replica:0/task:0".
  std::string task() const;
  /// Differs from one start of the task to the next.
  uint64_t incarnation() const;
  /// The task's devices and containers: a session that shares them runs in this process alone.
  const std::shared_ptr<Runtime>& runtime() const;

  /// Waits until the server has been stopped.
  void Join();
  /// Waits for SIGTERM or SIGINT and then stops as `Stop` does; OK if another thread has stopped
  /// it. A second SIGINT ends the process. What a program does that serves and nothing else; a
  /// signal that comes before the call is kept if the program has a `TerminationSignals` by then.
  absl::Status JoinUntilSignal(absl::Duration drain = absl::Seconds(2));
  /// Takes nothing new, gives steps that run up to `drain` to end, cancels the others, and leaves
  /// the cluster: whoever needs this task gets Unavailable at once. Returns within `drain` and a
  /// few seconds; DeadlineExceeded if kernels did not stop.
  absl::Status Stop(absl::Duration drain = absl::Seconds(2));
  /// As `Stop`, for good: no member of the cluster waits for this task any more, and its name and
  /// address are free for another one that joins. `RemoveTask` (api/administration.h) does that
  /// from outside, after which `Join` returns. FailedPrecondition, and nothing new is begun: no
  /// other task lives that would know of it.
  absl::Status Leave(absl::Duration drain = absl::Seconds(2));

 private:
  friend class ClusterNode;
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::shared_ptr<ActorHost>& actors() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_CLUSTER_H_
