/// Sessions: running graphs.
#ifndef TROUPE_API_SESSION_H_
#define TROUPE_API_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "devices/device.h"
#include "devices/device_registry.h"
#include "devices/export.h"
#include "devices/tensor.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class GraphDef;
class PreparedCall;
class Runtime;
class RunMetadata;
class SessionInterface;

/// How a session works. A value.
struct SessionOptions {
  /// Where the master is: "troupe://host:port", any task of a cluster. Empty: everything runs in
  /// this process.
  std::string target;
  /// PEM files for a master that speaks TLS: a certificate for this client, its key, and the
  /// authority's certificate. All or none.
  std::string tls_certificate, tls_key, tls_authority;
  /// A file that only its owner can read, with the secret of the master's cluster (16 to 4096
  /// bytes; a newline at its end does not count). Empty: what `troupe cluster` of the same user has
  /// published for a loopback address is found; else there is none.
  std::string secret_file;
  /// A master that has not been heard for so long is lost: what waits for it fails with
  /// Unavailable. Also how long the creation of a session waits for the master's first answer; for
  /// a second at most if nobody serves at its address. The cluster's own timeout counts if it is
  /// shorter.
  absl::Duration heartbeat_timeout = absl::Seconds(5);
  /// With a target: how long the creation of the session may take altogether. Infinite: as long as
  /// the master is waited for, and the master waits for its workers.
  absl::Duration creation_timeout = absl::InfiniteDuration();
  /// Threads that compute, the caller of `Run` included; 0: one per core. Results are the same bits
  /// for any number.
  int threads = 0;
  /// CPU devices that this process shows.
  int num_cpu_devices = 1;
  /// Devices of other types that it shows, as {{"GPU", {.count = 2, .memory_limit = 8 << 30}}}; an
  /// entry for "CPU" counts in place of `num_cpu_devices`. Without a target.
  DeviceOptionsByType devices = {};
  /// Constant folding, common subexpressions, removal of identities.
  bool optimize = true;
  /// Run a node on the CPU when the device it asks for does not exist, instead of refusing it.
  bool allow_soft_placement = false;
  /// Log, as warnings, on which device each node of a signature is, when it is compiled. With a
  /// target, the master does so, in its own log.
  bool log_device_placement = false;
  /// Of runs whose options have no timeout.
  absl::Duration operation_timeout = absl::InfiniteDuration();
  /// With a target: float32 tensors that go from one task to another lose their low 16 bits on the
  /// way, which halves what is sent. Otherwise only those of nodes with the attribute
  /// `_lossy_16bit` do.
  bool lossy_transfers = false;
  /// With a target: full or partial device names. The session uses no device that fits none of
  /// them, and needs no task that has none: a worker that names itself and the parameter servers
  /// does not depend on other workers. Empty: all devices.
  std::vector<std::string> device_filters;
  /// Threads, devices and containers shared with other sessions; null: a runtime of its own.
  std::shared_ptr<Runtime> runtime;
};

/// How one run works. A value.
struct RunOptions {
  /// The run fails with DeadlineExceeded when this has passed; infinite: the session's
  /// `operation_timeout` counts.
  absl::Duration timeout = absl::InfiniteDuration();
  /// Record every node's times into the metadata's step stats.
  bool trace = false;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using FeedMap = std::vector<std::pair<Output, Tensor>>;
/// Told how an asynchronous run ended.
using RunDone = std::function<void(absl::StatusOr<std::vector<Tensor>>)>;

/// Runs parts of a graph. All members are thread-safe; concurrent runs are independent steps that
/// share variables. The graph may go on growing; it outlives the session. No call throws or aborts;
/// errors name the node, op and device at fault.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<Graph> graph,
                                                         const SessionOptions& options = {});
  /// Closes the session; returns in bounded time.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs what `fetches` and `targets` need and puts the fetched tensors, in order, into `values`
  /// (may be nullptr if there are no fetches). Names are "node:port" or "node" (port 0). A feed
  /// replaces any tensor of the graph. Codes: NotFound unknown names; InvalidArgument duplicate
  /// feeds, a fetch that is fed, type or shape mismatch, nothing to run; DeadlineExceeded;
  /// Cancelled when the session is closed; whatever a kernel reports.
  absl::Status Run(const NamedTensors& feeds, const std::vector<std::string>& fetches,
                   const std::vector<std::string>& targets, std::vector<Tensor>* values);
  absl::Status Run(const RunOptions& options, const NamedTensors& feeds,
                   const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                   std::vector<Tensor>* values, RunMetadata* metadata = nullptr);

  /// The same with tensors of the graph instead of names; the fetched values are the result.
  absl::StatusOr<std::vector<Tensor>> Run(const FeedMap& feeds, absl::Span<const Output> fetches,
                                          absl::Span<Node* const> targets = {},
                                          const RunOptions& options = {},
                                          RunMetadata* metadata = nullptr);
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Output> fetches) {
    return Run(FeedMap{}, fetches);
  }
  /// Runs nodes for their effect.
  absl::Status RunTargets(absl::Span<Node* const> targets, const FeedMap& feeds = {});

  /// Begins a run and returns at once; no thread waits with the run, however long it takes. `done`
  /// is called once, in any case, on a thread of the session's, which other runs share: it must not
  /// wait for any of them. An exception that it throws is logged and dropped.
  /// `metadata` lives until then. The timeout counts from this call. All calls of `done` have
  /// returned when the session has been destroyed, unless one of them does that.
  void RunAsync(NamedTensors feeds, std::vector<std::string> fetches,
                std::vector<std::string> targets, RunDone done);
  void RunAsync(const RunOptions& options, NamedTensors feeds, std::vector<std::string> fetches,
                std::vector<std::string> targets, RunDone done, RunMetadata* metadata = nullptr);
  /// The same with tensors of the graph instead of names.
  void RunAsync(const FeedMap& feeds, absl::Span<const Output> fetches,
                absl::Span<Node* const> targets, RunDone done, const RunOptions& options = {},
                RunMetadata* metadata = nullptr);

  /// Feeds, fetches and targets fixed once, then called with no look-up. Copyable; keeps working
  /// until the session is closed. Thread-safe.
  class Callable {
   public:
    Callable() = default;
    /// As many feeds and fetches as were named, in that order.
    absl::Status operator()(absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                            const RunOptions& options = {}, RunMetadata* metadata = nullptr) const;
    /// Nodes that a call executes.
    int num_nodes() const;

   private:
    friend class Session;
    std::shared_ptr<PreparedCall> call_;
  };
  absl::StatusOr<Callable> MakeCallable(const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const std::vector<std::string>& targets);
  absl::StatusOr<Callable> MakeCallable(absl::Span<const Output> feeds,
                                        absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets = {});

  /// A step in pieces: declare all feeds and fetches, then call `PartialRun` with some of them at a
  /// time; each feed and each fetch once. The step ends when all have been given and made, or with
  /// its first error; the setup's timeout is for the whole of it.
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets,
                                              const RunOptions& options = {});
  /// InvalidArgument, and the step goes on, if a fetch depends on feeds that have not been given.
  /// If the timeout passes, the step ends with DeadlineExceeded.
  absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches, std::vector<Tensor>* values,
                          const RunOptions& options = {});

  /// Adds nodes to the session's graph; their inputs may name nodes that it has already. All or
  /// nothing.
  absl::Status Extend(const GraphDef& def);
  /// Of the whole cluster with a target; Unavailable if the master cannot be reached.
  absl::StatusOr<std::vector<DeviceAttributes>> ListDevices() const;
  /// Empties containers (destroys their variables); none named: the default one.
  absl::Status Reset(const std::vector<std::string>& containers = {});
  /// What is run from now on is placed anew, by what steps have measured so far; what is stateful
  /// stays where it is, and callables keep their places.
  void PlaceAgain();
  /// What steps have left in kernels, beside variables: by node, where its random generator is.
  /// Another session of the same graph that is given it goes on with the same bits, in another
  /// process as well. A file beside a checkpoint holds it (docs/long-training.md). Taken while no
  /// step runs, and given before any has. What does not fit, as the graph has changed, is logged.
  /// With a target, of all tasks that the session has used; Unavailable if one of them is lost.
  /// From then on steps are Aborted that use a task which was lost since, with states or resources.
  using KernelStates = std::map<std::string, std::string>;
  absl::StatusOr<KernelStates> SaveKernelStates() const;
  absl::Status RestoreKernelStates(const KernelStates& states);
  /// Cancels what runs and waits for it, in bounded time; from a callback of `RunAsync` it does not
  /// wait.
  absl::Status Close();

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  /// nullptr with a target.
  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }

 private:
  friend class AsyncCheckpointer;
  friend class HeldQueues;
  friend class QueueRunner;
  Session() = default;

  std::shared_ptr<Graph> graph_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<SessionInterface> impl_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SESSION_H_
