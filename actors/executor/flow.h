/// What the executor's two loops share, and its state for plans with control flow: frames and
/// iterations.
#ifndef TROUPE_ACTORS_EXECUTOR_FLOW_H_
#define TROUPE_ACTORS_EXECUTOR_FLOW_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/executor/executor_role.h"

namespace troupe {

/// A node that takes longer than this goes to the pool when others are ready: several times what
/// handing it over costs.
inline constexpr uint32_t kOffloadNs = 10000;

/// Uses of a slot whose value stays: constants and loop invariants. Consumers count it down, so it
/// is set anew now and then. Less than Slot::kConstant: invariants change from step to step.
inline constexpr int32_t kForever = Slot::kConstant / 2;
inline constexpr int32_t kLong = kForever / 2;

/// Which inputs, those that `may` be, a node is the last to use: a mask.
template <typename May>
inline uint64_t ExecutorRole::LastUses(const PlanNode& node, const Slot* slots, May may) {
  const int32_t* inputs = input_slots_ + node.first_input;
  uint64_t mask = 0;
  const int n = std::min<int>(node.num_inputs, 64);
  for (int i = 0; i < n; ++i) {
    const Slot& slot = slots[inputs[i]];
    mask |= static_cast<uint64_t>(slot.uses == 1 && may(slot.tensor)) << i;
  }
  return mask;
}

template <bool kTimed>
[[gnu::always_inline]] inline bool ExecutorRole::RunKernel(int32_t node, const PlanNode& plan_node,
                                                           Slot* slots, Iteration* iteration) {
  if (can_offload_ && num_ready_ > 0 && plan_->cost_ns(node) >= kOffloadNs) {
    Offload(node, plan_node, slots, iteration);
    return false;
  }
  KernelContext ctx = MakeContext(plan_node, slots);
  uint64_t start = 0;
  if constexpr (kTimed) start = clock_->NowNs();
  absl::Status status = plan_node.kernel->Compute(ctx);
  if constexpr (kTimed) {
    const uint64_t end = clock_->NowNs();
    plan_->RecordCost(node, end - start);
    plan_->RecordOutputs(node, ctx);
    Trace({node, 0, start, end});
  }
  if (!status.ok()) [[unlikely]] {
    Fail(node, status);
    return false;
  }
  return true;
}

/// One iteration of a loop that is under way: the counts and slots of the frame's nodes. The root
/// frame has one, which is the step. Blocks are kept by the executor and used again.
struct ExecutorRole::Iteration {
  FrameInstance* frame = nullptr;  ///< None: the block belongs to no loop that is under way.
  Iteration* next = nullptr;  ///< The following iteration, or of a free block the next free one.
  /// Says in every partition which iteration of which loops this is; 0 for the root.
  uint64_t tag = 0;
  int32_t outstanding = 0;  ///< Nodes that are ready or run, and frames inside that are not over.
  Slot* slots = nullptr;
  const int32_t* uses = nullptr;  ///< How many consumers each slot has.
  std::unique_ptr<Slot[]> owned_slots;
  std::unique_ptr<NodeState[]> states;
  std::unique_ptr<FrameInstance*[]> children;  ///< Per child of the frame: its instance, if any.
  bool has_invariants = false;                 ///< The slots of the loop's invariants are filled.
};

/// A loop under way: one instance of a frame for each iteration of the frame around it that enters.
struct ExecutorRole::FrameInstance {
  /// A value that waits for its iteration: see `parallel_iterations`.
  struct Waiting {
    int32_t node;  ///< The NextIteration.
    Slot value;
  };
  /// A loop invariant.
  struct Invariant {
    int32_t node;  ///< The Enter.
    Slot value;
    bool dead;
  };

  int32_t frame = 0;       ///< Index in the plan.
  int32_t child = 0;       ///< Which child of the iteration around it.
  int32_t live_index = 0;  ///< In `Flow::live`.
  Iteration* parent = nullptr;
  Iteration* first = nullptr;  ///< The oldest iteration that is not over.
  Iteration* last = nullptr;
  int32_t num_iterations = 0;  ///< Under way.
  uint64_t tag = 0;            ///< Of the loop; the next iteration's is that and
  uint64_t next_number = 0;    ///< its number.
  int32_t enters_to_come = 0;
  std::vector<Invariant> invariants;
  /// What a node's state is at the start of an iteration when all invariants are there, and which
  /// nodes are ready then; empty until all have come.
  std::vector<NodeState> start;
  std::vector<std::pair<int32_t, bool>> start_ready;  ///< Node, dead.
  std::vector<Waiting> waiting;
  /// With other partitions: NextIterations that were dead in the last iteration so far.
  std::vector<int32_t> dead_nexts;
  std::vector<int32_t> dead_exits;  ///< Exits that were dead in the last iteration so far.
  Iteration* free = nullptr;        ///< Blocks that hold this loop's invariants.
};

struct ExecutorRole::Flow {
  struct Ready {
    int32_t node;
    bool dead;
    Iteration* iteration;
  };

  Flow(const Plan& plan, Slot* root_slots);
  Iteration* root() { return &root_iteration; }

  const Plan& plan;
  const FlowNode* const nodes;
  const FlowEdge* const edges;
  std::vector<uint64_t> frame_hashes;  ///< Of the names of the plan's frames.
  std::vector<Ready> ready;            ///< The first `num_ready_` are a stack.
  Iteration root_iteration;
  FrameInstance root_frame;
  std::vector<Iteration*> free_blocks;  ///< Per frame of the plan.
  std::vector<FrameInstance*> free_instances;
  std::vector<FrameInstance*> live;  ///< Those under way (in no order).
  std::vector<std::unique_ptr<Iteration>> all_blocks;
  std::vector<std::unique_ptr<FrameInstance>> all_instances;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_FLOW_H_
