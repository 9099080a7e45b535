/// From a signature to a plan: prune, simplify, place, make kernels, flatten.
#ifndef TROUPE_ACTORS_SESSION_COMPILE_H_
#define TROUPE_ACTORS_SESSION_COMPILE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "actors/executor/plan.h"
#include "actors/runtime.h"
#include "actors/session/partitioned_step.h"
#include "actors/session/step_costs.h"
#include "graph/passes/partition.h"
#include "graph/passes/simplify.h"
#include "graph/step_signature.h"
#include "kernels/kernel.h"
#include "kernels/kernel_state.h"

namespace troupe {

/// Kernels of stateful ops, which keep their state (a random generator's counter) from one
/// signature of a session to the next, and what else the next one should know. Thread-safe.
class StatefulKernels {
 public:
  absl::StatusOr<std::shared_ptr<Kernel>> FindOrCreate(const Node& node, DeviceRole* device);
  /// Where what is stateful was first placed, by node name: there it stays.
  std::unordered_map<std::string, std::string> devices() const;
  void RememberDevices(const Subgraph& placed);
  /// Adds the states of all resumable kernels, with `prefix` before the names; with `of_others`
  /// also what was restored for kernels that have not been made here.
  void SaveStates(const std::string& prefix, KernelStates* states, bool of_others = true) const;
  /// For kernels that are there, and those that are made later. What does not fit is logged.
  void RestoreStates(const std::string& prefix, const KernelStates& states);
  /// Whether a kernel has a state of its own, or makes a queue, a reader, a barrier or the like.
  bool HasStates() const;
  /// Where the kernel of a node is, whose container has what the node names; nullptr: there is none
  /// here.
  DeviceRole* DeviceOf(const std::string& node) const;
  /// Of steps on several devices.
  StepCosts* costs() { return &costs_; }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> devices_;
  struct Placed {
    std::shared_ptr<Kernel> kernel;
    DeviceRole* device = nullptr;
  };
  std::map<std::string, Placed> kernels_;
  KernelStates restored_;  ///< Of kernels that have not been made.
  StepCosts costs_;
};

struct CompileOptions {
  bool simplify = true;  ///< Constant folding, common subexpressions, identities.
  /// A node whose requested device does not exist here runs on the CPU instead of being refused.
  bool soft_placement = false;
  bool log_placement = false;  ///< Says where each node is.
  /// Everything runs on `device` (the body of a function: on its caller's).
  bool one_device = false;
  /// Where what could as well run elsewhere does; nullptr: on the first.
  DeviceRole* device = nullptr;
  /// For the body of a function that has one device, and that one a memory of its own: arguments
  /// are where kernels for any type of device expect them, results are left there. Otherwise they
  /// are on the host.
  bool args_in_place = false, results_in_place = false;
};

/// A compiled signature.
struct CompiledStep {
  std::vector<LocalPartition> partitions;
  int num_fetches = 0;
  int num_nodes = 0;  ///< That a run executes.
  /// What each feed must be.
  std::vector<std::pair<ElementType, PartialShape>> feed_types;
  std::vector<std::string> feed_names;
};

/// A signature, placed on the devices of a runtime and cut into what each of them runs.
struct CutSignature {
  PartitionedGraph parts;
  std::shared_ptr<Graph> lowered;  ///< Holds the nodes if functional ops were lowered.
};

/// `seen` sees the nodes before any is folded away.
absl::StatusOr<CutSignature> CutForDevices(const Graph& graph, const StepSignature& signature,
                                           const CompileOptions& options, const Runtime& runtime,
                                           StatefulKernels* stateful,
                                           absl::FunctionRef<void(const Subgraph&)> seen);

/// Errors carry the node they belong to. NotFound: no kernel; InvalidArgument: devices, references;
/// or what the passes and the kernels' constructors say.
absl::StatusOr<CompiledStep> Compile(const Graph& graph, const StepSignature& signature,
                                     const CompileOptions& options, Runtime* runtime,
                                     StatefulKernels* stateful);

/// The plan of what one device runs. With the `runtime` of the step's devices `_Send` and `_Recv`
/// are edges to other partitions, found by the attribute `tensor_name`; without, they are kernels
/// like others. `fuse`: element-wise kernels are computed together where they can (`FuseKernels`).
/// `body`: whose arguments and results may be in the device's memory; nullptr: feeds and fetches
/// are on the host.
absl::StatusOr<std::shared_ptr<const Plan>> BuildPlan(const Subgraph& subgraph, DeviceRole* device,
                                                      StatefulKernels* stateful,
                                                      const Runtime* runtime, bool fuse,
                                                      const CompileOptions* body = nullptr);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_COMPILE_H_
