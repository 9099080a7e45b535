/// The master service of a task: sessions, their signatures and steps over all tasks.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_

#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/calls.h"
#include "actors/cluster/engine.h"
#include "actors/cluster/leftovers.h"
#include "actors/cluster/master_signatures.h"
#include "actors/cluster/master_state.h"
#include "actors/cluster/master_steps.h"

namespace troupe {

/// Sessions of clients: one belongs to the client that made it, and ends with it. Their signatures,
/// steps and partial runs have classes of their own. Pure: thread-compatible, no clock; an event of
/// its node.
class MasterRole {
 public:
  using Task = MasterTasks::Task;
  using Options = MasterOptions;

  MasterRole(Options options, std::vector<Task> tasks, Calls* calls, MasterEngine* engine);

  /// A request of the master service; it is answered now or later.
  void OnRequest(Responder from, cluster::Message request, ClusterTime now);
  /// A task has joined, with a number that is free, or has another address than before.
  void AddTask(PeerId number, const Task& task, ClusterTime now);
  /// A task that is lost has left for good: its number is free.
  void RemoveTask(PeerId number, const absl::Status& why, ClusterTime now);
  /// A task has told of its devices.
  void OnTaskUp(PeerId task, uint64_t incarnation, std::vector<cluster::DeviceInfo> devices,
                ClusterTime now);
  /// A task is gone. Calls to it have been failed already.
  void OnTaskLost(PeerId task, const absl::Status& status);
  /// The steps in which a task took part and that have failed lately: it may not have heard of
  /// that.
  std::vector<uint64_t> FailedStepsWith(PeerId task) const { return steps_.FailedWith(task); }
  /// What a task that is not there says cannot be accepted: another version, another task.
  void OnTaskRefused(PeerId task, const absl::Status& why) { master_.tasks.Refused(task, why); }
  /// A client is gone.
  void OnClientLost(PeerId client, ClusterTime now);
  void Tick(ClusterTime now);
  /// Cancels all steps. No request may come afterwards.
  void Stop(ClusterTime now);

  size_t num_sessions() const { return master_.sessions.size(); }
  size_t num_steps() const { return steps_.size(); }
  size_t num_signatures() const { return signatures_.size(); }
  /// "/job:a/replica:0/task:0 (host:port)".
  std::string Describe(PeerId task) const { return master_.tasks.Describe(task); }

 private:
  struct Waiting {
    Responder client;
    cluster::CreateSessionRequest request;
    ClusterTime deadline = 0;
  };

  /// At once, or when no task is missing any more.
  void CreateSession(Responder from, cluster::CreateSessionRequest request);
  void CreateSessionNow(Responder from, cluster::CreateSessionRequest request);
  /// Creates the sessions that wait for tasks, if none is missing any more.
  void CreateWaiting();
  void ExtendSession(Responder from, cluster::ExtendSessionRequest request);
  void CloseSession(const std::string& name, std::optional<Responder> from);
  void Cancel(Responder from, const cluster::CancelRequest& request);
  void ListDevices(Responder from);
  void Reset(Responder from, const cluster::ResetRequest& request);
  /// True, and `from` has been answered: a task that the session has used is not there any more.
  bool RefuseLost(Responder from, const MasterSession& session);
  void SaveStates(Responder from, const std::string& session);
  void RestoreStates(Responder from, const cluster::RestoreStatesRequest& request);
  void SaveResources(Responder from, const cluster::SaveResourcesRequest& request);
  void RestoreResource(Responder from, cluster::RestoreResourceRequest request);
  std::vector<std::string> Missing(const cluster::SessionConfig& config) const {
    return master_.tasks.Missing(config, master_.now);
  }

  MasterState master_;
  Leftovers leftovers_;
  MasterSignatures signatures_;
  MasterSteps steps_;
  std::vector<Waiting> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_
