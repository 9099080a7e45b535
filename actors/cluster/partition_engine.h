/// Runs the partitions that masters register with this task.
#ifndef TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_
#define TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/cluster/engine.h"
#include "actors/cluster/engine_host.h"
#include "actors/runtime.h"

namespace troupe {

/// The worker's engine on the devices of a runtime. Steps are played by threads of the actor
/// system, never by the one that brings a message. Thread-safe. Must outlive its host's jobs.
class PartitionEngine final : public WorkerEngine {
 public:
  PartitionEngine(std::shared_ptr<Runtime> runtime, EngineHost* host);
  ~PartitionEngine() override;

  std::vector<cluster::DeviceInfo> Devices() override;
  void Register(cluster::Message request, Done done) override;
  void Deregister(const std::string& session, const std::string& handle) override;
  void DeleteSession(const std::string& session) override;
  void Start(cluster::Message request, StepDone done) override;
  void Deliver(uint64_t step, cluster::CrossingTensor value) override;
  void Abort(uint64_t step, const absl::Status& status) override;
  void ResetContainers(const std::vector<std::string>& containers) override;

  /// A value that came as it is. False: no such step runs.
  bool Deliver(uint64_t step, uint64_t key, uint64_t tag, bool dead, Tensor value);
  /// True if no step runs.
  bool idle();

 private:
  struct Session;
  struct RegisteredGraph;
  struct RunningStep;

  absl::StatusOr<std::shared_ptr<RegisteredGraph>> Compile(Session* session,
                                                           const cluster::Message& request);
  std::shared_ptr<RunningStep> FindStep(uint64_t id);
  void Play(std::shared_ptr<RunningStep> step, const cluster::Message& request);
  void Over(const std::shared_ptr<RunningStep>& step, const absl::Status& status);

  const std::shared_ptr<Runtime> runtime_;
  EngineHost* const host_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::unordered_map<uint64_t, std::shared_ptr<RunningStep>> steps_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_PARTITION_ENGINE_H_
