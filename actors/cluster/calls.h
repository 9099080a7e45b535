/// Requests and replies between peers, over links that may lose, repeat and reorder messages.
#ifndef TROUPE_ACTORS_CLUSTER_CALLS_H_
#define TROUPE_ACTORS_CLUSTER_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "graph/protos/cluster.pb.h"

namespace troupe {

/// Somebody to talk to: tasks are numbered as the cluster lists them, clients from `kFirstClient`.
using PeerId = uint64_t;
constexpr PeerId kFirstClient = PeerId{1} << 32;

/// The number of the client of an incarnation, on whatever way its messages come.
constexpr PeerId ClientPeer(uint64_t incarnation) { return incarnation | (PeerId{1} << 63); }

/// Microseconds of a clock that never goes back. Roles are told the time, they have no clock.
using ClusterTime = int64_t;
constexpr ClusterTime kSecond = 1000000;

/// What both ends of a link must agree on.
constexpr uint32_t kProtocolVersion = 1;

/// Where a role's messages go. Never calls back from `Send`.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void Send(PeerId to, cluster::Message message) = 0;
};

/// A request that was taken and is to be answered.
struct Responder {
  PeerId from = 0;
  uint64_t id = 0;
};

/// Both halves of remote calls. Each request is answered once: by its reply, by its deadline, by
/// the loss of the peer, or because the peer says that it does not know of it (a message was lost;
/// asked for every `check_interval`). A request that arrives twice is handled once. Pure:
/// thread-compatible, played by its node.
class Calls {
 public:
  /// Called once. `reply` is empty unless it came from the peer.
  using Done = std::function<void(absl::Status, cluster::Message reply)>;

  struct Options {
    std::string task;  ///< Of this process; empty for a client.
    uint64_t incarnation = 0;
    ClusterTime check_interval = kSecond;
  };
  Calls(Options options, Outbox* outbox) : options_(std::move(options)), outbox_(outbox) {}

  // The side that asks.

  /// `to_incarnation` 0: any life will do. `timeout` 0: as long as it takes.
  uint64_t Call(PeerId to, uint64_t to_incarnation, cluster::Message request, ClusterTime now,
                ClusterTime timeout, Done done);
  void OnReply(PeerId from, cluster::Message reply);
  void OnChecked(PeerId from, const cluster::Message& message);
  /// Fails what waits for a peer.
  void FailPeer(PeerId peer, const absl::Status& status);
  /// Deadlines and checks.
  void Tick(ClusterTime now);
  /// Nobody waits for the answer any more.
  void Forget(uint64_t id) { pending_.erase(id); }

  // The side that answers.

  /// False if the request is known already.
  bool Accept(PeerId from, const cluster::Message& request);
  void Reply(Responder to, const absl::Status& status, cluster::Message reply = {});
  void OnCheck(PeerId from, const cluster::Message& message);
  /// The peer is gone for good, or has begun a new life: its requests are nobody's.
  void ForgetPeer(PeerId peer) { incoming_.erase(peer); }

  /// Sends a message of any kind, signed.
  void Send(PeerId to, cluster::Message message);

  size_t num_pending() const { return pending_.size(); }
  size_t num_unanswered() const;
  /// Requests, answered or not, of which a repetition would be recognized.
  size_t num_remembered() const;
  const Options& options() const { return options_; }

 private:
  struct Pending {
    PeerId to = 0;
    uint64_t to_incarnation = 0;
    ClusterTime sent = 0;
    ClusterTime deadline = 0;
    cluster::Method method = cluster::NO_METHOD;
    // For either way: how often the peer said that it does not know of it, and from which round on
    // that will count again.
    int unknown[2] = {0, 0};
    uint64_t ask_from[2] = {0, 0};
    Done done;
  };
  struct Incoming {
    uint64_t incarnation = 0;
    std::set<uint64_t> open;      ///< Taken and not answered.
    std::set<uint64_t> answered;  ///< The last ones.
    std::deque<uint64_t> order;   ///< The same, oldest first.
  };

  void Finish(uint64_t id, absl::Status status, cluster::Message reply);

  const Options options_;
  Outbox* const outbox_;
  uint64_t next_id_ = 1;
  ClusterTime next_check_ = 0;
  uint64_t check_round_ = 0;
  std::unordered_map<uint64_t, Pending> pending_;
  std::unordered_map<PeerId, Incoming> incoming_;
};

/// The status that a reply carries.
absl::Status StatusOf(const cluster::Message& reply);

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_CALLS_H_
