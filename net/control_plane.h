/// The control plane: CAF's actors, and its middleman between processes.
#ifndef TROUPE_NET_CONTROL_PLANE_H_
#define TROUPE_NET_CONTROL_PLANE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/cluster/calls.h"
#include "net/task_table.h"

namespace troupe {

/// Told what the control plane hears, by one actor: one call at a time.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  virtual void OnMessage(PeerId from, cluster::Message message) = 0;
  virtual void OnLinkDown(PeerId peer) = 0;
  virtual void OnTick() = 0;
};

struct ControlOptions {
  std::string task;                ///< Of this process; empty: a client.
  std::vector<std::string> tasks;  ///< Names, as peers are numbered; may be empty for a client.
  std::vector<std::string> addresses;
  int threads = 4;
  std::chrono::milliseconds tick{20};
  // PEM files; all or none. Read once.
  std::string tls_certificate, tls_key, tls_authority;
};

/// An actor system with one actor that speaks for this process. It is published at the task's port;
/// messages are protobuf bytes. Links are made when they are first needed, by the task that comes
/// first in the cluster; clients make theirs. Thread-safe. Only shells include CAF: this header
/// does not.
class ControlPlane final : public Outbox {
 public:
  /// Larger messages are refused before they are sent: CAF holds several copies of each, and cuts
  /// lengths at 4 GiB.
  static constexpr size_t kMaxBytes = size_t{1} << 30;

  /// NotFound, InvalidArgument: certificates that cannot be used.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Create(const ControlOptions& options);
  ~ControlPlane() override;

  /// The tasks that there are; those of a cluster may be added to.
  TaskTable* tasks() { return tasks_.get(); }
  /// Messages go to `handler` from now on. It must live until `Stop` has returned true.
  void Start(ControlHandler* handler);
  /// Accepts peers at `host:port`; 0: any port. The result is the port. Unavailable if it is in
  /// use.
  absl::StatusOr<int> Listen(const std::string& host, int port);
  /// Never waits. What cannot be sent is lost, as on any link.
  void Send(PeerId to, cluster::Message message) override;
  /// Runs `job` soon, on a thread of the actor system.
  void Post(std::function<void()> job);
  /// Ends the actor and its system; afterwards the handler is not called any more. Jobs that were
  /// posted have run. Takes milliseconds, whatever is being connected to or written, unless there
  /// is more to write than a peer takes over: then 0.2 s, and what is left is lost. False after a
  /// second: a job, the handler, or CAF with a very large message, is still at work. What they use
  /// is to be kept for good.
  bool Stop();

 private:
  struct Impl;
  explicit ControlPlane(std::unique_ptr<Impl> impl);
  std::shared_ptr<TaskTable> tasks_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_NET_CONTROL_PLANE_H_
