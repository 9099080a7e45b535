/// A member of a cluster: a task with its services, or a client.
#ifndef TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster/calls.h"
#include "actors/cluster/failure_detector_role.h"
#include "actors/cluster/master_role.h"
#include "actors/cluster/worker_role.h"

namespace troupe {

/// Joins calls, failure detector, worker and master, and hands each message to whom it concerns.
/// Messages from other versions, from strangers and for an earlier life are refused. A client is a
/// node without engines, whose tasks are the masters that it talks to. Pure: thread-compatible, no
/// clock; a shell or a simulator plays it.
class NodeRole {
 public:
  struct Options {
    std::string task;                     ///< Empty: a client.
    uint64_t incarnation = 0;             ///< Not 0, and different for each life.
    std::vector<MasterRole::Task> tasks;  ///< Peer i is tasks[i].
    FailureDetectorRole::Options health;
    WorkerRole::Options worker;
    MasterRole::Options master;  ///< Number, grace and seed are the node's to set.
    bool joining = false;        ///< Pings nobody until `Joined`.
  };
  /// Told when a task comes up or is lost.
  using Watcher = std::function<void(PeerId, FailureDetectorRole::Change, uint64_t incarnation)>;

  NodeRole(Options options, Outbox* outbox, WorkerEngine* worker_engine,
           MasterEngine* master_engine, ClusterTime now);

  void OnMessage(PeerId from, cluster::Message message, ClusterTime now);
  /// There is a connection to a life of a peer.
  void OnLinkUp(PeerId peer, uint64_t incarnation, ClusterTime now);
  /// There is none, and none can be made: what was sent to the peer is lost, values of these steps
  /// included.
  void OnUnreachable(PeerId peer, const std::vector<uint64_t>& steps, const absl::Status& why,
                     ClusterTime now);
  /// The connection to a peer broke.
  void OnLinkDown(PeerId peer, ClusterTime now);
  void Tick(ClusterTime now);
  /// From now on nothing new is begun: requests that would are refused.
  void Drain() { draining_ = true; }
  /// Ends all sessions and steps; later requests are refused.
  void Stop(ClusterTime now);

  /// A client in this process, which need not be heard to be there; `OnLinkDown` ends it.
  void AddLocalClient(PeerId client) { local_clients_.insert(client); }

  /// For clients: a request to task `to`.
  uint64_t Call(PeerId to, cluster::Message request, ClusterTime now, ClusterTime timeout,
                Calls::Done done);

  /// Answers a message, if it is to be answered, with an error.
  void Refuse(PeerId from, const cluster::Message& message, const absl::Status& why);

  /// Told when a task becomes a member, or has another address.
  using MemberWatcher =
      std::function<void(PeerId, const std::string& name, const std::string& address)>;
  void set_member_watcher(MemberWatcher watcher) { member_watcher_ = std::move(watcher); }
  /// The cluster has taken this task in; the answer to JOIN_CLUSTER says who its members are.
  void Joined(const cluster::Message& members, ClusterTime now);

  /// The task's own number; kFirstClient for a client.
  PeerId self() const { return self_; }
  void set_watcher(Watcher watcher) { watcher_ = std::move(watcher); }
  Calls* calls() { return &calls_; }
  /// Why a task was last not accepted, or did not accept this one.
  const absl::Status& refusal() const { return refusal_; }
  const FailureDetectorRole& detector() const { return detector_; }
  MasterRole* master() { return master_.get(); }
  WorkerRole* worker() { return worker_.get(); }
  const Options& options() const { return options_; }
  /// "/job:worker/replica:0/task:1 (127.0.0.1:7001)".
  std::string Describe(PeerId peer) const;

 private:
  void Handle(const std::vector<FailureDetectorRole::Event>& events, ClusterTime now,
              const std::string& why);
  void Lost(PeerId peer, const std::string& why, ClusterTime now);
  void AskStatus(PeerId peer, uint64_t incarnation);
  // Joining: membership.cc.
  absl::Status CheckNewcomer(const std::string& name, const std::string& address,
                             uint64_t incarnation) const;
  void AddMember(const std::string& name, const std::string& address, ClusterTime now);
  /// Those who are not known yet.
  void AddMembers(const cluster::Message& message, ClusterTime now);
  void ListMembers(cluster::Message* message) const;
  void OnJoin(Responder from, const cluster::Message& request, ClusterTime now);
  /// True if the message may be handled.
  bool Admit(PeerId from, const cluster::Message& message);
  void OnRefused(PeerId from, const absl::Status& why);
  bool IsTask(const std::string& name) const;
  /// Where this task serves; empty for a client.
  std::string Address() const {
    return self_ < options_.tasks.size() ? options_.tasks[self_].address : "";
  }
  void OnRequest(PeerId from, cluster::Message message, ClusterTime now);
  void Serve(Responder responder, cluster::Message message, ClusterTime now);

  Options options_;  ///< Tasks are added.
  PeerId self_ = kFirstClient;
  Calls calls_;
  FailureDetectorRole detector_;
  std::unique_ptr<WorkerRole> worker_;
  std::unique_ptr<MasterRole> master_;
  std::map<PeerId, ClusterTime> clients_;  ///< When each was last heard.
  std::set<PeerId> local_clients_;
  std::set<PeerId> lost_;                 ///< Tasks to which something was lost at some time.
  std::map<PeerId, uint64_t> ask_again_;  ///< Lives that are to be asked for their status.
  absl::Status refusal_;
  Watcher watcher_;
  MemberWatcher member_watcher_;
  ClusterTime now_ = 0;           ///< Of the last event.
  const ClusterTime known_from_;  ///< Who lives by then has been heard.
  Outbox* const outbox_;
  bool draining_ = false;
  bool stopped_ = false;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_
