/// Runs the partitions that masters register with this task.
#ifndef TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_
#define TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/cluster/engine.h"
#include "actors/runtime.h"
#include "actors/session/partial_fetches.h"
#include "actors/state/resource_state.h"

namespace troupe {

/// The worker's engine on the devices of a runtime. A step that has been found to be quick is
/// played by whoever brings what it waits for (the I/O thread, mostly), and so is every step by a
/// client that waits for it in this process; others by threads of the actor system. Thread-safe.
/// Must outlive its host's jobs.
class PartitionEngine final : public WorkerEngine {
 public:
  PartitionEngine(std::shared_ptr<Runtime> runtime, EngineHost* host);
  ~PartitionEngine() override;

  std::vector<cluster::DeviceInfo> Devices() override;
  void Register(cluster::RegisterGraphRequest request, Done done) override;
  void Deregister(const std::string& session, const std::string& handle) override;
  void DeleteSession(const std::string& session) override;
  void Start(cluster::RunGraphRequest request, StepDone done) override;
  bool Feed(cluster::FeedGraphRequest request, StepDone done) override;
  void Abort(uint64_t step, const absl::Status& status) override;
  void AddCosts(const std::string& session, cluster::RunGraphReply* reply) override;
  void States(const std::string& session, StatesDone done) override;
  void SetStates(const std::string& session, const KernelStates& states) override;
  bool HasStates(const std::string& session) override;
  void GetResources(const cluster::GetResourcesRequest& request, ResourcesDone done) override;
  void SetResource(cluster::SetResourceRequest request, Done done) override;
  void ResetContainers(const std::vector<std::string>& containers) override;

  std::string TakeTrace(uint64_t step) override;
  void Forget(uint64_t step) override;
  std::vector<uint64_t> DropEarly(ClusterTime now, ClusterTime older_than) override;

  /// A value that came from a task; kept if its step has not come yet. `credit` is let go
  /// of when the value has found its step, or is dropped.
  void Arrive(uint64_t step, uint64_t key, uint64_t tag, bool dead, Tensor value,
              std::shared_ptr<void> credit);
  struct Counts {
    size_t sessions = 0, graphs = 0, steps = 0;
    size_t early = 0;    ///< Steps that have not come, of which values have.
    size_t resting = 0;  ///< Executors that are kept for later steps of the registered graphs.
  };
  Counts counts();
  /// True if no step runs.
  bool idle() { return counts().steps == 0; }

 private:
  struct Session;
  struct RegisteredGraph;
  struct RunningStep;

  absl::StatusOr<std::shared_ptr<RegisteredGraph>> Compile(
      Session* session, const cluster::RegisterGraphRequest& request);
  struct EarlyValue {
    uint64_t key, tag;
    bool dead;
    Tensor value;
    std::shared_ptr<void> credit;
  };
  struct Early {
    std::optional<ClusterTime> since;  ///< The first time that was told after its first value.
    std::vector<EarlyValue> values;
  };

  /// Where jobs are posted by who may outlive the engine: resources that answer.
  struct Outlet {
    std::mutex mutex;
    EngineHost* host = nullptr;  ///< None any more once the engine has gone.
    void Post(std::function<void()> job);
  };

  std::shared_ptr<Session> FindSession(const std::string& name);
  void TellStates(const std::shared_ptr<Session>& session);
  void TellResources(absl::StatusOr<std::vector<KeptResource>> kept, int64_t first,
                     int64_t max_bytes, const ResourcesDone& done);
  /// Part of a state that comes to a session; `*whole` once it was the last one.
  absl::Status TakePart(const std::string& session, ResourceStateDef* part,
                        std::optional<KeptResource>* whole);
  void MarkForgotten(uint64_t step);  ///< With the mutex held.
  std::shared_ptr<RunningStep> FindStep(uint64_t id);
  /// Has `play`, which plays the step, called by this thread, if that may, or another.
  void Run(const std::shared_ptr<RunningStep>& step, Player player, bool within_event,
           std::function<void()> play);
  void Play(std::shared_ptr<RunningStep> step, cluster::RunGraphRequest* request) noexcept;
  /// Not OK: nothing has begun.
  absl::Status Begin(const std::shared_ptr<RunningStep>& step, cluster::RunGraphRequest* request);
  /// Hands a value to a step; without memory for it the step fails.
  static void Deliver(RunningStep* step, uint64_t key, uint64_t tag, bool dead,
                      Tensor value) noexcept;
  void Over(const std::shared_ptr<RunningStep>& step, const absl::Status& status);
  void End(const std::shared_ptr<RunningStep>& step, const absl::Status& status);
  /// Of a partial run. Calls nobody back at once.
  void Give(PartialFetches::Answers answers);
  static std::string Describe(RunningStep* step);
  void EndPartial(const std::shared_ptr<RunningStep>& step);
  static absl::Status TakeFeeds(RunningStep* step, const cluster::FeedGraphRequest& request,
                                std::vector<std::pair<uint64_t, Tensor>>* values);

  const std::shared_ptr<Runtime> runtime_;
  EngineHost* const host_;
  const std::shared_ptr<Outlet> outlet_ = std::make_shared<Outlet>();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  /// States of resources of which parts have come, by session and place.
  std::map<std::pair<std::string, std::string>, JoinedResource> coming_;
  std::unordered_map<uint64_t, std::shared_ptr<RunningStep>> steps_;
  std::unordered_map<uint64_t, std::string> traces_;  ///< Of steps that have just ended.
  std::unordered_map<uint64_t, Early> early_;
  std::unordered_set<uint64_t> forgotten_;  ///< Steps whose values come too late.
  std::deque<uint64_t> forget_order_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_
