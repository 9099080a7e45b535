/// The worker service of a task: graphs that masters register here, and the steps of these.
#ifndef TROUPE_ACTORS_CLUSTER_WORKER_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_WORKER_ROLE_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster/calls.h"
#include "actors/cluster/engine.h"

namespace troupe {

/// Sessions belong to the master that made them; when it is lost, so are they. Values that come
/// before their step are kept, within bounds, and for a bounded time. Pure: thread-compatible, no
/// clock; an event of its node.
class WorkerRole {
 public:
  struct Options {
    /// Of feeds whose step has not come yet.
    int64_t max_early_bytes = int64_t{1} << 30;
    size_t max_early_feeds = 100000;
    /// Feeds of other tasks of the step may need as long.
    ClusterTime early_lifetime = 120 * kSecond;
  };

  WorkerRole(Options options, Calls* calls, WorkerEngine* engine)
      : options_(options), calls_(calls), engine_(engine) {}

  /// A request of the worker service; it is answered now or later.
  void OnRequest(Responder from, cluster::Message request, ClusterTime now);
  /// A task is gone: steps in which it takes part cannot end, sessions that it mastered are over.
  /// Or a client, whose `task` is empty.
  void OnPeerLost(PeerId peer, const std::string& task, const absl::Status& status);
  /// The steps that a task takes part in and that have ended, or are about to end, here.
  std::vector<uint64_t> EndedStepsWith(const std::string& task) const;
  /// Steps that cannot end any more; some may still begin.
  void FailSteps(const std::vector<uint64_t>& ids, const absl::Status& status);
  /// A value could not be brought to its task.
  void OnSendFailed(uint64_t step, const absl::Status& status);
  void Tick(ClusterTime now);
  /// Everything stops.
  void AbortAll(const absl::Status& status);

  size_t num_steps() const { return steps_.size(); }
  size_t num_sessions() const { return sessions_.size(); }
  size_t num_graphs() const;
  size_t num_early_feeds() const { return num_early_; }

 private:
  struct Session {
    PeerId master = 0;
    std::set<std::string> graphs;
    std::set<std::string> compiling;
    uint64_t num_steps = 0;
  };
  struct Step {
    Responder master;
    std::string session;
    std::vector<std::string> tasks;
    absl::Status aborted;
    bool engine_knows = true;  ///< Of that; else the next tick tells it.
    bool derived = false;
    bool tells_costs = false;
    bool traced = false;
    bool sampled = false;  ///< For who traces this task.
  };
  struct Tracing {
    Responder client;
    ClusterTime until = 0;
    size_t max_bytes = 0;
    cluster::TraceReply reply;  ///< RunMetadatas one after the other: that merges them.
  };
  struct Ended {
    uint64_t id = 0;
    ClusterTime when = 0;
    std::vector<std::string> tasks;
  };
  using EarlyFeed = std::pair<Responder, cluster::FeedGraphRequest>;  ///< Of a partial run.
  struct Early {
    ClusterTime since = 0;
    int64_t bytes = 0;
    std::vector<EarlyFeed> feeds;
  };

  void CreateSession(Responder from, const std::string& name);
  void DeleteSession(const std::string& name, const absl::Status& status);
  void Register(Responder from, cluster::RegisterGraphRequest request);
  void Deregister(Responder from, const cluster::DeregisterGraphRequest& request);
  void RememberClosed(const std::string& name);
  /// Tells a master that this task has not, or no longer, what it takes for granted.
  void ReplyUnknown(Responder to, const std::string& what);
  void Run(Responder from, cluster::RunGraphRequest request);
  void Feed(Responder from, cluster::FeedGraphRequest request);
  void RefuseFeed(Responder from, uint64_t step);
  void Trace(Responder from, const cluster::TraceRequest& request);
  void GetStates(Responder from, const std::string& session);
  void SetStates(Responder from, const cluster::SetStatesRequest& request);
  void GetResources(Responder from, const cluster::GetResourcesRequest& request);
  void SetResource(Responder from, cluster::SetResourceRequest request);
  bool IsMastersSession(Responder from, const std::string& session) const;
  void AddTrace(const std::string& trace);
  void EndTracing();
  void OnStepDone(uint64_t id, const absl::Status& status, std::vector<TensorProto> fetches);
  void Abort(uint64_t id, const absl::Status& status, bool derived);
  void TellAbort(uint64_t id, Step* step);
  template <typename Fits>
  void AbortIf(const Fits& fits, const absl::Status& status, bool derived);
  /// Values of the step that come later are dropped.
  void Forget(uint64_t id);
  std::vector<EarlyFeed> TakeEarly(uint64_t id);

  const Options options_;
  Calls* const calls_;
  WorkerEngine* const engine_;
  std::map<std::string, Session> sessions_;
  std::map<uint64_t, Step> steps_;
  std::map<uint64_t, Early> early_;
  int64_t early_bytes_ = 0;
  size_t num_early_ = 0;
  std::set<uint64_t> forgotten_;
  std::deque<uint64_t> forget_order_;
  std::deque<Ended> ended_;  ///< The last steps of several tasks.
  std::map<uint64_t, absl::Status>
      failed_steps_;                ///< Forgotten ones that were lost, not cancelled.
  std::optional<Tracing> tracing_;  ///< The steps of this task are traced for a client.
  ClusterTime now_ = 0;             ///< Of the last event.
  std::set<std::string> closed_;    ///< The last sessions and graphs that their master has deleted.
  std::deque<std::string> closings_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_WORKER_ROLE_H_
