/// A member of a cluster: a task with its services, or a client.
#ifndef TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_

#include <deque>
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
    bool follows = false;        ///< A client that hears of tasks which join and leave.
  };
  /// Told when a task comes up or is lost; of a task also when nothing is heard of a client.
  using Watcher = std::function<void(PeerId, FailureDetectorRole::Change, uint64_t incarnation)>;

  NodeRole(Options options, Outbox* outbox, WorkerEngine* worker_engine,
           MasterEngine* master_engine, ClusterTime now);

  void OnMessage(PeerId from, cluster::Message message, ClusterTime now);
  /// One that this task's roles have sent to themselves: no link ends if it cannot be handled, so
  /// the call that it is of gets ResourceExhausted.
  void OnOwnMessage(cluster::Message message, ClusterTime now) noexcept;
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
  /// Ends all sessions and steps; later requests are refused, and it neither sends nor answers
  /// pings: who does not hear of it by then loses it.
  void Stop(ClusterTime now);

  /// A client in this process, which need not be heard to be there; `OnLinkDown` ends it.
  void AddLocalClient(PeerId client) { local_clients_.insert(client); }

  /// For clients: a request to task `to`.
  uint64_t Call(PeerId to, cluster::Message request, ClusterTime now, ClusterTime timeout,
                Calls::Done done);

  /// Answers a message, if it is to be answered, with an error.
  void Refuse(PeerId from, const cluster::Message& message, const absl::Status& why);

  /// Told when a task becomes a member, or has another address; with an empty name when it has
  /// left: the number is another one's later. This node's own number: it has left itself, and is
  /// stopped.
  using MemberWatcher =
      std::function<void(PeerId, const std::string& name, const std::string& address)>;
  void set_member_watcher(MemberWatcher watcher) { member_watcher_ = std::move(watcher); }
  /// Has a member leave for good, which may be this node, also one that is dead. `done` is called
  /// when all members that live have heard of it. OK if it has left before; NotFound: there is no
  /// such task; FailedPrecondition: nobody lives who would know of this node's leave.
  void Leave(const std::string& task, ClusterTime now,
             std::function<void(const absl::Status&)> done);
  /// The cluster has taken this task in; `members`: the answer to JoinClusterRequest.
  void Joined(const cluster::JoinClusterReply& members, ClusterTime now);

  /// Asks a task of the cluster who its members are.
  void AskMembers(PeerId task, ClusterTime now);

  /// The task's own number; kFirstClient for a client.
  PeerId self() const { return self_; }
  void set_watcher(Watcher watcher) { watcher_ = std::move(watcher); }
  Calls* calls() { return &calls_; }
  /// Told why a task is not accepted, cannot be reached, or does not accept this one.
  using RefusalWatcher = std::function<void(const absl::Status& why)>;
  void set_refusal_watcher(RefusalWatcher watcher) { refusal_watcher_ = std::move(watcher); }
  const FailureDetectorRole& detector() const { return detector_; }
  MasterRole* master() { return master_.get(); }
  WorkerRole* worker() { return worker_.get(); }
  const Options& options() const { return options_; }
  /// "/job:worker/replica:0/task:1 (127.0.0.1:7001)".
  std::string Describe(PeerId peer) const;

 private:
  void Handle(const std::vector<FailureDetectorRole::Event>& events, ClusterTime now,
              const std::string& why);
  void Lost(PeerId peer, const absl::Status& status, ClusterTime now);
  void AskStatus(PeerId peer, uint64_t incarnation);
  // Joining and leaving: membership.cc.
  using Tasks = google::protobuf::RepeatedPtrField<cluster::Task>;
  absl::Status CheckNewcomer(const cluster::Task& newcomer) const;
  void AddMember(const cluster::Task& member, ClusterTime now);
  /// Takes over what is newer than what is known.
  void AddMembers(const Tasks& members, ClusterTime now);
  void ListMembers(Tasks* members) const;
  /// Of the members, in any order; not 0.
  uint64_t HashMembers();
  /// The number of a member of that name; `tasks.size()` if there is none.
  PeerId FindMember(const std::string& name) const;
  /// Of the next task of that name.
  uint64_t NextEpoch(const std::string& name) const;
  /// Unless it is known: forgets the member, and tells the others.
  void Remove(const cluster::Task& gone, ClusterTime now);
  /// Sends a request to all members that live, but one. `told` is called when they have answered,
  /// with an error if one of them knows better.
  void Tell(const cluster::Message& news, const std::string& but,
            std::function<void(const absl::Status&)> told);
  void OnLeave(Responder from, const cluster::Task& gone, ClusterTime now);
  void OnJoin(Responder from, cluster::Task newcomer, ClusterTime now);
  void OnAddTask(Responder from, const cluster::Task& newcomer, ClusterTime now);
  bool KnowsMembers() const { return !options_.task.empty() || options_.follows; }
  bool HasLeft(PeerId peer) const {
    return KnowsMembers() && peer < options_.tasks.size() && options_.tasks[peer].name.empty();
  }
  /// True if the message may be handled.
  bool Admit(PeerId from, const cluster::Message& message);
  void OnRefused(PeerId from, const absl::Status& why);
  bool IsTask(const std::string& name) const { return FindMember(name) < options_.tasks.size(); }
  void OnRequest(PeerId from, cluster::Message message, ClusterTime now);
  void Serve(Responder responder, cluster::Message message, ClusterTime now);
  void OnGetStatus(Responder from, const cluster::GetStatusRequest& request);
  void OnGetLog(Responder from, const cluster::GetLogRequest& request);
  void OnPong(PeerId from, const cluster::Pong& pong);

  Options options_;  ///< Tasks are added; those that have left have no name.
  /// Numbers of tasks that have left, and since when. Messages of such a task may still come, so
  /// that another one gets its number later.
  std::deque<std::pair<PeerId, ClusterTime>> free_numbers_;
  std::deque<cluster::Task> gone_;  ///< Tasks that have left, the oldest first.
  uint64_t members_hash_ = 0;       ///< 0: to be computed again.
  bool asking_members_ = false;     ///< Because a pong had another hash.
  PeerId self_ = kFirstClient;
  Calls calls_;
  FailureDetectorRole detector_;
  std::unique_ptr<WorkerRole> worker_;
  std::unique_ptr<MasterRole> master_;
  std::map<PeerId, ClusterTime> clients_;  ///< When each was last heard.
  std::set<PeerId> local_clients_;
  std::set<PeerId> lost_;                 ///< Tasks to which something was lost at some time.
  std::map<PeerId, uint64_t> ask_again_;  ///< Lives that are to be asked for their status.
  RefusalWatcher refusal_watcher_;
  Watcher watcher_;
  MemberWatcher member_watcher_;
  ClusterTime now_ = 0;           ///< Of the last event.
  const ClusterTime known_from_;  ///< Who lives by then has been heard.
  WorkerEngine* const worker_engine_;
  bool draining_ = false;
  bool stopped_ = false;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_NODE_ROLE_H_
