/// Who is alive: heartbeats, suspicion, incarnations.
#ifndef TROUPE_ACTORS_CLUSTER_FAILURE_DETECTOR_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_FAILURE_DETECTOR_ROLE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "actors/cluster/calls.h"

namespace troupe {

/// Watches peers: each is pinged every `interval`, suspected when nothing has been heard for two
/// intervals and a half, and lost when nothing has been heard for `timeout` or its link is down. A
/// peer that is heard again is back. When this process itself stood still (SIGSTOP, a debugger),
/// nobody is blamed for the time in which nobody listened. Pure: thread-compatible, no clock.
class FailureDetectorRole {
 public:
  struct Options {
    ClusterTime interval = kSecond;
    ClusterTime timeout = 5 * kSecond;
  };
  enum class Health { kUnknown, kAlive, kSuspected, kLost };
  enum class Change {
    kPing,       ///< Ping it now.
    kSuspected,  ///< For whoever wants to know.
    kLost,
    kUp,  ///< Heard for the first time, again after it was lost, or in a new life.
  };
  struct Event {
    PeerId peer = 0;
    Change change = Change::kPing;
    uint64_t incarnation = 0;
  };

  explicit FailureDetectorRole(Options options) : options_(options) {}

  void Add(PeerId peer, ClusterTime now);
  void Remove(PeerId peer) { peers_.erase(peer); }

  /// Something has come from the peer. A message from an earlier life than the known one changes
  /// nothing.
  std::vector<Event> Heard(PeerId peer, uint64_t incarnation, ClusterTime now);
  /// The connection to the peer broke. A process that ends breaks its connections at once.
  std::vector<Event> LinkDown(PeerId peer, ClusterTime now);
  std::vector<Event> Tick(ClusterTime now);

  Health health(PeerId peer) const;
  bool alive(PeerId peer) const {
    const Health h = health(peer);
    return h == Health::kAlive || h == Health::kSuspected;
  }
  /// 0 if it was never heard.
  uint64_t incarnation(PeerId peer) const;
  /// True if the peer is known to have lived under this number, and lives no more.
  bool IsEarlierLife(PeerId peer, uint64_t incarnation) const;
  const Options& options() const { return options_; }
  void set_options(Options options) { options_ = options; }

 private:
  struct Peer {
    Health health = Health::kUnknown;
    uint64_t incarnation = 0;
    std::vector<uint64_t> earlier;  ///< The last lives.
    ClusterTime heard = 0;
    ClusterTime next_ping = 0;
  };

  Options options_;
  ClusterTime last_tick_ = 0;
  std::map<PeerId, Peer> peers_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_FAILURE_DETECTOR_ROLE_H_
