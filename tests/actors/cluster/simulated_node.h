/// One life of a simulated process: a task of the cluster, or a client.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_NODE_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_NODE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/engine.h"
#include "actors/cluster/graph_engine.h"
#include "actors/cluster/node_role.h"
#include "actors/cluster/partition_engine.h"
#include "net/links.h"
#include "tests/actors/cluster/simulated_application.h"
#include "tests/actors/cluster/simulated_streams.h"

namespace troupe {

/// What `NodeShell` and `TaskServer` do in a process, done by the schedule: events of the node one
/// after the other, jobs of the engines a little later. A task has one device and on it a variable
/// `v` of two numbers: the task's life, and a sum; and a queue and an accumulator if steps have
/// made them.
class SimulatedNode final : public EngineHost,
                            public Outbox,
                            public TimeSource,
                            public std::enable_shared_from_this<SimulatedNode> {
 public:
  struct Options {
    NodeRole::Options role;
    bool client = false;
    bool member = false;   ///< A client that knows all tasks, and that others connect to.
    int number = 0;        ///< Of the task, or of the client.
    double slow_jobs = 0;  ///< How probably an engine's job waits for up to a second.
    const double* no_memory = nullptr;  ///< How probably there is none to send a message.
    uint64_t windows[2] = {8 << 10, 256 << 10};
    /// Processes: its own, and those of the tasks that it knows.
    int process = 0;
    std::vector<int> processes;
  };
  struct Network {
    Schedule* schedule = nullptr;
    /// A task's engine has done something.
    std::function<void(SimulatedNode*)> ran;
    /// A task has been told that it has left.
    std::function<void(SimulatedNode*)> left;
    SimulatedApplications* applications = nullptr;  ///< If there are any.
    SimulatedTransport::Network streams;
  };

  static std::shared_ptr<SimulatedNode> Boot(const Options& options, Network* network);
  ~SimulatedNode() override;

  /// Dies: what it was about to do is not done. `silently`: its connections do not break.
  void Die(bool silently);
  bool alive() const { return alive_; }
  /// Stands still until then, as if stopped by a signal.
  void Pause(ClusterTime until) { paused_until_ = until; }

  /// Runs an event of this life, when it does not stand still.
  void Later(ClusterTime when, Schedule::Event event);
  /// Handles an event of the node.
  void Enter(absl::FunctionRef<void()> event) override;
  bool has_threads() const override { return false; }
  void Post(std::function<void()> job) override;
  void Defer(std::function<void()> job) override { deferred_.push_back(std::move(job)); }
  void Together(absl::FunctionRef<void()> job) override;
  /// Of what jobs take: a clock of its own.
  uint64_t NowNs() override;
  int64_t UnixNs() override { return static_cast<int64_t>(NowNs()); }
  void SendTensor(const std::string& task, uint64_t step, uint64_t key, uint64_t tag, bool dead,
                  Tensor value) override;
  void OnMessage(PeerId from, cluster::Message message);

  const Options& options() const { return options_; }
  std::string name() const {
    return (options_.client ? "client " : "task ") + std::to_string(options_.number);
  }
  /// As others know it.
  std::string links_name() const {
    return options_.client ? "client:" + std::to_string(options_.number) : options_.role.task;
  }
  NodeRole* role() { return role_.get(); }
  SimulatedTransport* transport() { return transport_.get(); }
  Links* links() { return links_.get(); }
  const std::shared_ptr<Runtime>& runtime() { return runtime_; }
  SimulatedApplication* application() { return application_.get(); }
  ClusterTime now() const { return network_->schedule->now(); }
  /// The variable's sum.
  int64_t sum();
  /// Steps of which values have come, and nothing else.
  size_t num_early_steps() { return worker_->counts().early; }
  void CheckNoGraphs();
  void CheckNothingLeft();
  /// What is left in the queue, at which nobody may be waiting.
  std::vector<int64_t> EmptyQueue();
  /// The same of the staging area, and of the barrier: what is complete.
  std::vector<int64_t> EmptyStage();
  std::vector<int64_t> EmptyBarrier();
  /// A violation if the mutex is held, or waited for.
  void CheckNobodyLocks();
  /// What the table holds.
  struct Entries {
    std::vector<int64_t> keys, values;
  };
  Entries TableEntries();
  /// The same of the accumulator: how many, and their rows.
  struct Gradients {
    int64_t count = 0;
    std::vector<int64_t> rows;
    std::vector<double> values;
  };
  Gradients EmptyAccumulator();
  /// All but the variable.
  void DropResources() { runtime_->devices()[0]->containers.ResetAll(); }

 private:
  SimulatedNode(const Options& options, Network* network) : options_(options), network_(network) {}
  void Start();
  void MakeLinks();
  void Send(PeerId to, cluster::Message message) override;  // Of the role, within an event.
  void Tick();
  void RunJob(uint64_t number);
  /// Does something as this process.
  void Play(absl::FunctionRef<void()> event);
  /// The resource of this kind and name; nullptr: nobody has made it.
  template <typename T>
  RefPtr<T> Find(const char* kind);
  /// A violation unless `count` is 0.
  void CheckNone(size_t count, const char* what);

  const Options options_;
  Network* const network_;
  bool alive_ = true, in_event_ = false;
  ClusterTime paused_until_ = 0;
  std::deque<cluster::Message> to_self_;
  std::vector<std::pair<PeerId, cluster::Message>> outgoing_;
  std::vector<std::function<void()>> deferred_;
  ClusterTime busy_ = 0;  ///< What jobs have taken, of their own clock.
  std::map<uint64_t, std::function<void()>> jobs_;
  uint64_t next_job_ = 1;
  std::shared_ptr<Runtime> runtime_;
  RefPtr<Variable> variable_;
  std::unique_ptr<PartitionEngine> worker_;
  std::unique_ptr<GraphEngine> master_;
  std::unique_ptr<SimulatedTransport> transport_;
  std::unique_ptr<Links> links_;
  std::unique_ptr<NodeRole> role_;
  std::unique_ptr<SimulatedApplication> application_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_NODE_H_
