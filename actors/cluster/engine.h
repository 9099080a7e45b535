/// What the cluster's roles have done for them: compiling and running. Roles only say what and
/// when.
#ifndef TROUPE_ACTORS_CLUSTER_ENGINE_H_
#define TROUPE_ACTORS_CLUSTER_ENGINE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/cluster/calls.h"
#include "devices/tensor.h"
#include "graph/protos/cluster.pb.h"
#include "kernels/kernel.h"
#include "kernels/kernel_state.h"

namespace troupe {

/// Runs partitions on the devices of this task. No function calls back before it has returned;
/// `done` is called once, as an event of the node.
class WorkerEngine {
 public:
  using Done = std::function<void(absl::Status)>;
  using StepDone = std::function<void(absl::Status, std::vector<TensorProto> fetches)>;

  virtual ~WorkerEngine() = default;

  virtual std::vector<cluster::DeviceInfo> Devices() = 0;
  /// Compiles partitions.
  virtual void Register(cluster::RegisterGraphRequest request, Done done) = 0;
  /// Steps that run keep what they need.
  virtual void Deregister(const std::string& session, const std::string& handle) = 0;
  virtual void DeleteSession(const std::string& session) = 0;
  /// Runs a step of a registered graph.
  virtual void Start(cluster::RunGraphRequest request, StepDone done) = 0;
  /// Brings feeds to a step of a partial run, and asks for fetches of it. False: there is no such
  /// step here.
  virtual bool Feed(cluster::FeedGraphRequest, StepDone) { return false; }
  /// The RunMetadata of a traced step, once, when it is over.
  virtual std::string TakeTrace(uint64_t) { return ""; }
  /// Values of a step that is over, or was never begun, are not wanted any more.
  virtual void Forget(uint64_t) {}
  /// Told all the time: values whose step has not come for so long are dropped, and those of steps
  /// whose master has no session here any more. Returns these steps.
  virtual std::vector<uint64_t> DropEarly(ClusterTime, ClusterTime) { return {}; }
  /// Cancels a step; its `done` will be called soon.
  virtual void Abort(uint64_t step, const absl::Status& status) = 0;
  /// Adds what the nodes of a session have cost so far.
  virtual void AddCosts(const std::string&, cluster::RunGraphReply*) {}
  using StatesDone = std::function<void(absl::Status, const KernelStates&)>;
  /// What steps of a session have left in its kernels. It may take as long as a function of a
  /// dataset does.
  virtual void States(const std::string& session, StatesDone done) = 0;
  virtual void SetStates(const std::string&, const KernelStates&) {}
  /// Whether there are any, those in bodies of functions not counted.
  virtual bool HasStates(const std::string&) { return false; }
  using ResourcesDone = std::function<void(absl::Status, cluster::GetResourcesReply)>;
  /// What the nodes of a session have in containers.
  virtual void GetResources(const cluster::GetResourcesRequest&, ResourcesDone) = 0;
  virtual void SetResource(cluster::SetResourceRequest request, Done done) = 0;
  /// Empties containers; none named: the default one.
  virtual void ResetContainers(const std::vector<std::string>& containers) = 0;
};

/// A signature, cut into what each task does.
struct BuiltStep {
  struct Part {
    std::string task;
    std::vector<cluster::Partition> partitions;
    std::vector<int> feeds;    ///< Per feed of the task: which feed of the step it is.
    std::vector<int> fetches;  ///< Per fetch of the task: which fetch of the step it is.
    int64_t num_nodes = 0;
  };
  std::vector<Part> parts;
  int num_fetches = 0;
  /// Of partial runs. Per fetch: the feeds that it depends on.
  std::vector<std::vector<int>> needs;
};

/// Holds the graphs of a master's sessions, and places and cuts signatures. No function calls back
/// before it has returned; `done` is called once, as an event of the node.
class MasterEngine {
 public:
  using Done = std::function<void(absl::Status)>;
  using BuildDone = std::function<void(absl::StatusOr<BuiltStep>)>;

  virtual ~MasterEngine() = default;

  virtual void CreateGraph(const std::string& session, cluster::CreateSessionRequest request,
                           Done done) = 0;
  virtual void ExtendGraph(const std::string& session, cluster::ExtendSessionRequest request,
                           Done done) = 0;
  virtual void DeleteGraph(const std::string& session) = 0;
  virtual void Build(const std::string& session, cluster::Signature signature,
                     std::vector<cluster::DeviceInfo> devices, BuildDone done) = 0;
  /// Costs of a session's nodes, for signatures that are built later.
  virtual void Learn(const std::string&, const cluster::RunGraphReply&) {}
};

/// What the engines of a task need from the shell that plays its node. All functions are
/// thread-safe, and none waits.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  /// False: there is one thread for all, and steps must not be handed to a pool.
  virtual bool has_threads() const { return true; }
  /// Runs `job` soon on a thread of the actor system.
  virtual void Post(std::function<void()> job) = 0;
  /// From within an event: what the thread that handles it may play.
  virtual Player event_player() const { return Player::kQuick; }
  /// From within an event: runs `job` on this thread when the event is over.
  virtual void Defer(std::function<void()> job) = 0;
  /// Handles `event` as the node: one at a time, with what roles want sent being sent afterwards.
  /// Not from within an event.
  virtual void Enter(absl::FunctionRef<void()> event) = 0;
  /// Runs `job`; what it has sent goes out when it returns, in as few pieces as possible.
  virtual void Together(absl::FunctionRef<void()> job) = 0;
  /// Brings a value to a task. If that fails, the step is told.
  virtual void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag,
                          bool dead, Tensor value) = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_ENGINE_H_
