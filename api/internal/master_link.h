/// How a session's requests get to its master and the answers back. Not public.
#ifndef TROUPE_API_INTERNAL_MASTER_LINK_H_
#define TROUPE_API_INTERNAL_MASTER_LINK_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/cluster/calls.h"
#include "api/session.h"
#include "kernels/kernel.h"

namespace troupe {

/// A client's link to its master. If the master is in this process, that is a call of a function;
/// else messages go over a connection of its own.
/// Thread-safe.
class MasterLink {
 public:
  /// `options.target` is "troupe://host:port". Waits for the first answer for the heartbeat
  /// timeout or, if that is shorter, the creation timeout; Unavailable if none comes, after a
  /// second if attempts to connect have failed for so long; at once PermissionDenied or
  /// FailedPrecondition if the master refuses this client, or this client the master;
  /// InvalidArgument for options that cannot be; what `ReadSecret` and `TlsContext::Create` say of
  /// files.
  static absl::StatusOr<std::unique_ptr<MasterLink>> Create(const SessionOptions& options);
  virtual ~MasterLink() = default;

  /// `done` is called once, from any thread, which it must not hold. Unavailable, naming the
  /// target, if the master is gone; Cancelled after `Shut`. `timeout` 0: as long as it takes. A
  /// master in this process is played by this thread, and by `player` its part of a step.
  virtual void Call(cluster::Message request, ClusterTime timeout, Calls::Done done,
                    Player player = Player::kQuick) = 0;
  /// The same, waiting, so that this thread plays; `reply` may be nullptr.
  absl::Status CallAndWait(cluster::Message request, ClusterTime timeout, cluster::Message* reply);
  /// Fails what is under way, and whatever comes later, with Cancelled.
  virtual void Shut() = 0;
  /// Runs `job` soon on a thread of an actor system.
  virtual void Post(std::function<void()> job) = 0;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_MASTER_LINK_H_
