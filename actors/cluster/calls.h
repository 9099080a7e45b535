/// Requests and replies between peers, over links that lose nothing as long as they last.
#ifndef TROUPE_ACTORS_CLUSTER_CALLS_H_
#define TROUPE_ACTORS_CLUSTER_CALLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "graph/protos/cluster.pb.h"
#include "kernels/kernel_state.h"

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
constexpr uint32_t kProtocolVersion = 2;

/// The keys of what fits in a map, in their order: for loops in the course of which the map
/// changes.
template <typename Key, typename Value, typename Fits>
std::vector<Key> KeysIf(const std::map<Key, Value>& map, const Fits& fits) {
  std::vector<Key> keys;
  for (const auto& [key, value] : map) {
    if (fits(value)) keys.push_back(key);
  }
  return keys;
}

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
  uint64_t incarnation = 0;  ///< Of who asked; a later life is not answered. 0: any.
};

/// Both halves of remote calls. Each request is answered once: by its reply, by its deadline, or by
/// the loss of the link to the peer. Pure: thread-compatible, played by its node.
class Calls {
 public:
  /// Called once. `reply` is empty unless it came from the peer. If it has not the memory for what
  /// it does (bad_alloc), it is called again, by the next tick, with ResourceExhausted.
  using Done = std::function<void(absl::Status, cluster::Message reply)>;

  /// `self`: who sends.
  Calls(cluster::Sender self, Outbox* outbox) : self_(std::move(self)), outbox_(outbox) {}

  // The side that asks.

  /// `to_incarnation` 0: any life will do. `timeout` 0: as long as it takes. Never calls `done`
  /// itself: what there is no memory to send is answered by the next tick. Throws where there is
  /// none to enter the call; then there is none.
  uint64_t Call(PeerId to, uint64_t to_incarnation, cluster::Message request, ClusterTime now,
                ClusterTime timeout, Done done);
  void OnReply(PeerId from, cluster::Message reply);
  /// A request to this node's own task, or its answer, could not be handled: the next tick fails
  /// the call with ResourceExhausted.
  void Break(uint64_t id) noexcept;
  /// Fails what waits for a peer.
  void FailPeer(PeerId peer, const absl::Status& status);
  /// Deadlines, and what there was no memory for.
  void Tick(ClusterTime now);
  /// Nobody waits for the answer any more.
  void Forget(uint64_t id) { pending_.erase(id); }

  // The side that answers.

  /// False if a request of this number is being worked on.
  bool Accept(PeerId from, const cluster::Message& request);
  /// With an error, nothing of `reply` is sent but its status. What there is no memory to send is
  /// answered with ResourceExhausted by the next tick.
  void Reply(Responder to, const absl::Status& status, cluster::Message reply = {});
  /// The peer is gone for good, or has begun a new life: its requests are nobody's.
  void ForgetPeer(PeerId peer) { incoming_.erase(peer); }

  /// Sends a message of any kind, signed.
  void Send(PeerId to, cluster::Message message);

  size_t num_pending() const { return pending_.size(); }
  size_t num_unanswered() const;

 private:
  struct Pending {
    PeerId to = 0;
    ClusterTime sent = 0;
    ClusterTime deadline = 0;
    cluster::Message::BodyCase request = cluster::Message::BODY_NOT_SET;
    Done done;
    absl::Status failed;  ///< Could not be sent, or told.
  };
  struct Incoming {
    uint64_t incarnation = 0;
    std::map<uint64_t, bool> open;  ///< Taken and not answered; whether an answer was unsent.
  };

  /// Those of now, though `f` may end them and begin others. What it throws for one stops no other.
  template <typename F>
  void ForEachPending(const F& f);
  void Finish(uint64_t id, absl::Status status, cluster::Message reply);

  const cluster::Sender self_;
  Outbox* const outbox_;
  uint64_t next_id_ = 1;
  bool any_unsent_ = false;  ///< Answers.
  std::map<uint64_t, Pending> pending_;
  std::unordered_map<PeerId, Incoming> incoming_;
};

/// False for replies, and for Ping and Pong.
bool IsRequest(const cluster::Message& message);
/// "run_graph", for example.
std::string NameOf(cluster::Message::BodyCase body);
absl::Status StatusOf(const cluster::Status& status);
/// As messages have them.
using KernelStateList = google::protobuf::RepeatedPtrField<cluster::KernelState>;
KernelStates StatesOf(const KernelStateList& list);
void AddStates(const KernelStates& states, KernelStateList* list);
/// Sets code and error.
void SetStatus(const absl::Status& status, cluster::Message* reply);

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_CALLS_H_
