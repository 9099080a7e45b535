/// The master service of a task: sessions, their signatures and steps over all tasks.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/cluster/calls.h"
#include "actors/cluster/engine.h"

namespace troupe {

/// A session belongs to the client that made it, and ends with it. A signature is built once, and
/// registered on each of its tasks once per life of the task; a step sends each of its tasks one
/// RunGraph. One that is not used for long is given up, and built anew by the next step that wants
/// it. The first error that does not follow from another one is the step's. Pure:
/// thread-compatible, no clock; an event of its node.
class MasterRole {
 public:
  struct Task {
    std::string name;     ///< "/job:worker/replica:0/task:0".
    std::string address;  ///< For messages.
    uint64_t epoch = 0;   ///< How many tasks of this name have left before it.
  };
  struct Options {
    PeerId self = 0;  ///< Its own task, whose devices come first.
    /// How long the creation of a session waits for tasks that are missing.
    ClusterTime wait_for_workers = 10 * kSecond;
    /// How long a failed step waits for its tasks to stop.
    ClusterTime grace = 2 * kSecond;
    ClusterTime register_timeout = 60 * kSecond;
    /// A session keeps so many signatures besides those that are in use, each for so long.
    size_t max_signatures = 1000;
    ClusterTime signature_lifetime = 1800 * kSecond;
    /// Makes step ids of several masters differ.
    uint64_t seed = 0;
  };

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
  std::vector<uint64_t> FailedStepsWith(PeerId task) const;
  /// What a task that is not there says cannot be accepted: another version, another task.
  void OnTaskRefused(PeerId task, const absl::Status& why);
  /// A client is gone.
  void OnClientLost(PeerId client, ClusterTime now);
  void Tick(ClusterTime now);
  /// Cancels all steps. No request may come afterwards.
  void Stop(ClusterTime now);

  size_t num_sessions() const { return sessions_.size(); }
  size_t num_steps() const { return steps_.size(); }
  size_t num_signatures() const;
  /// "/job:a/replica:0/task:0 (host:port)".
  std::string Describe(PeerId task) const;

 private:
  struct TaskState {
    Task task;
    uint64_t incarnation = 0;  ///< 0: not there.
    uint64_t last_incarnation = 0;
    std::vector<cluster::DeviceInfo> devices;
    absl::Status lost;  ///< Why it is not there, once it has been.
    /// Not 0: it was not there from the beginning. Then sessions can do without it, once it has had
    /// time to come up.
    ClusterTime joined = 0;
  };
  /// A signature on a task.
  struct Registration {
    uint64_t incarnation = 0;
    bool ready = false;
    std::string handle;
  };
  struct Signature {
    cluster::Signature names;
    bool building = true;
    std::optional<BuiltStep> built;
    std::vector<PeerId> tasks;  ///< Per part.
    std::map<PeerId, Registration> registrations;
    std::vector<uint64_t> waiting;  ///< Steps, until it has been built and registered.
    std::vector<Responder> makers;  ///< Of callables, until it has been built.
    size_t num_steps = 0;           ///< That have not ended.
    ClusterTime last_used = 0;

    bool Uses(PeerId task) const { return std::count(tasks.begin(), tasks.end(), task) > 0; }
  };
  struct SessionState {
    PeerId client = 0;
    std::map<std::string, std::shared_ptr<Signature>> signatures;  ///< By what is asked for.
    std::map<std::string, std::shared_ptr<Signature>> callables;   ///< Some may be given up.
    std::map<PeerId, uint64_t> opened;   ///< The life in which the task has the session.
    std::map<PeerId, uint64_t> opening;  ///< The same, asked for.
    uint64_t version = 0;                ///< Of the graph.
    cluster::SessionConfig config;
    std::set<PeerId> touched;                             ///< Tasks that may know of the session.
    std::map<std::string, uint64_t> partial_runs;         ///< Their steps.
    std::map<std::string, absl::Status> failed_partials;  ///< Those of which nobody was told.
  };
  /// A step that is fed and fetched in pieces, one piece at a time.
  struct PartialRun {
    struct Piece {
      Responder client;
      cluster::PartialRunRequest request;
      std::vector<TensorProto> values;
      int calls = 0;  ///< FEED_GRAPHs without an answer.
      ClusterTime deadline = 0;
      absl::Status refusal;
    };
    std::string handle;
    std::map<std::string, int> feeds, fetches;  ///< What is still to come.
    std::vector<bool> fed;
    std::deque<Piece> pieces;  ///< The first one is at work, or has been done, if `at_work`.
    bool at_work = false;
  };
  struct Step {
    Responder client;
    std::shared_ptr<PartialRun> partial;
    std::string session;
    std::shared_ptr<Signature> signature;
    std::vector<TensorProto> feeds, fetches;
    bool trace = false;
    std::string metadata;  ///< RunMetadatas one after the other: that merges them.
    ClusterTime deadline = 0;
    bool running = false;
    std::map<PeerId, uint64_t> calls;  ///< RUN_GRAPHs without an answer.
    absl::Status status;
    bool derived = false;
    ClusterTime give_up = 0;  ///< When a failed step stops waiting for its tasks.

    /// Its time is up, or that of a piece of it.
    bool Late(ClusterTime now) const;
  };
  /// What a task may still have although nobody wants it: a graph of a session, or all of it.
  struct Leftover {
    std::string session, handle;
    auto operator<=>(const Leftover&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Waiting {
    Responder client;
    cluster::CreateSessionRequest request;
    ClusterTime deadline = 0;
  };

  /// At once, or when no task is missing any more.
  void CreateSession(Responder from, cluster::CreateSessionRequest request);
  void CreateSessionNow(Responder from, cluster::CreateSessionRequest request);
  void ExtendSession(Responder from, cluster::ExtendSessionRequest request);
  void RunStep(Responder from, cluster::RunStepRequest request);
  void MakeCallable(Responder from, const cluster::MakeCallableRequest& request);
  void Cancel(Responder from, const cluster::CancelRequest& request);
  // Partial runs: partial_runs.cc.
  void PartialRunSetup(Responder from, cluster::PartialRunSetupRequest request);
  void PartialRunPiece(Responder from, cluster::PartialRunRequest request);
  void OnPartialBegun(Step* step);
  void NextPiece(uint64_t step_id);
  bool TakeNames(PartialRun* run, PartialRun::Piece* piece, std::vector<int>* fetches);
  void SendPiece(uint64_t step_id, Step* step, const std::vector<int>& fetches);
  void OnPieceDone(uint64_t step_id, const absl::Status& status, cluster::Message reply,
                   const std::vector<int>& places);
  void AnswerPiece(PartialRun::Piece* piece, const absl::Status& status);
  /// Goes on to the next piece, or finishes the step.
  void FinishPiece(uint64_t step_id);
  void EndPartial(Step* step);
  void CloseSession(const std::string& name, std::optional<Responder> from);
  /// Creates the sessions that wait for tasks, if none is missing any more.
  void CreateWaiting();
  void ListDevices(Responder from);
  void Reset(Responder from, const cluster::ResetRequest& request);

  std::shared_ptr<Signature> FindOrBuild(const std::string& name, SessionState* session,
                                         const cluster::Signature& names);
  void OnBuilt(const std::string& session, std::shared_ptr<Signature> signature,
               absl::StatusOr<BuiltStep> built);
  void AnswerMakers(SessionState* session, const std::shared_ptr<Signature>& signature);
  uint64_t AddStep(Responder from, const std::string& session,
                   const std::shared_ptr<Signature>& signature);
  /// Has the step wait if its signature is being built.
  void BeginStep(uint64_t id);
  /// Gives up the signature used least recently as long as there are too many.
  void TrimSignatures(const std::string& name, SessionState* session);
  /// Gives up the signatures of all sessions that have not been used for long.
  void DropOldSignatures();
  static bool Idle(const Signature& signature);
  void GiveUp(const std::string& name, SessionState* session, const std::string& key);
  /// Registers what is missing, and runs the step when nothing is.
  void Advance(uint64_t step_id);
  void AdvanceAll(Signature* signature);
  void FailAll(Signature* signature, const absl::Status& status);
  void Register(const std::string& session, const std::shared_ptr<Signature>& signature,
                size_t part);
  void OnRegistered(Signature* signature, PeerId task, const Leftover& graph,
                    const absl::Status& status, bool forgotten);
  void DropRegistrations(const std::string& name, SessionState* session, PeerId task);
  /// A task does not know of the session, or of a graph, any more.
  absl::Status Forgotten(const std::string& session, PeerId task);
  /// Has the task delete it, now and later until it has said that it is gone; `tried` is called
  /// after the first time.
  void Delete(PeerId task, const Leftover& leftover, std::function<void()> tried = {});
  bool EnsureOpen(const std::string& name, SessionState* session, PeerId task);
  void OnOpened(const std::string& name, PeerId task, uint64_t life, const absl::Status& status);
  void SendRuns(uint64_t step_id, Step* step);
  void OnRunDone(uint64_t step_id, PeerId task, size_t part, const absl::Status& status,
                 cluster::Message reply);
  void Fail(uint64_t step_id, const absl::Status& status, bool derived = false);
  void Finish(uint64_t step_id);
  std::vector<std::string> MissingTasks(const cluster::SessionConfig& config) const;
  std::vector<cluster::DeviceInfo> DevicesFor(const cluster::SessionConfig& config) const;
  static absl::Status ClosedError();
  SessionState* FindSession(Responder from, const std::string& name);

  const Options options_;
  Calls* const calls_;
  MasterEngine* const engine_;
  std::vector<TaskState> tasks_;
  std::map<std::string, PeerId> task_by_name_;
  std::map<std::string, std::shared_ptr<SessionState>> sessions_;
  std::map<uint64_t, Step> steps_;
  std::vector<Waiting> waiting_;
  std::map<PeerId, std::set<Leftover>> leftovers_;
  struct FailedStep {
    uint64_t id = 0;
    ClusterTime when = 0;
    std::vector<PeerId> tasks;
  };
  static constexpr size_t kMostFailedSteps = 10000;
  static constexpr ClusterTime kFailedStepLifetime = 120 * kSecond;
  std::deque<FailedStep> failed_steps_;  ///< The last ones.
  ClusterTime next_leftovers_ = 0;
  ClusterTime next_old_signatures_ = 0;
  ClusterTime now_ = 0;  ///< Of the event that is being handled.
  uint64_t next_step_ = 1;
  uint64_t next_name_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_ROLE_H_
