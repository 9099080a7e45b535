/// Plans: partitions of graphs compiled for execution.
#ifndef TROUPE_ACTORS_EXECUTOR_PLAN_H_
#define TROUPE_ACTORS_EXECUTOR_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/executor/rendezvous.h"
#include "devices/time_source.h"
#include "graph/passes/frames.h"
#include "kernels/argument_spaces.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace troupe {

/// What a plan is built from: nodes with their kernels, how they are joined, what goes in and comes
/// out.
struct PlanSpec {
  struct Input {
    int node;
    int port;
    /// The producer's output is a reference, and this consumer wants the value that the variable
    /// has when it starts.
    bool snapshot = false;
    /// The consumer wants the reference itself.
    bool reference = false;
  };
  struct Node {
    std::string name;  ///< For messages and traces.
    std::string op;
    std::shared_ptr<Kernel> kernel;  ///< nullptr: nothing to compute (NoOp, constants, feeds).
    KernelCost cost = KernelCost::kBySize;
    std::vector<Input> inputs;
    std::vector<int> control_inputs;  ///< Each predecessor once.
    int num_outputs = 0;
    FlowOp flow = FlowOp::kNone;  ///< Other than kNone: played by the executor, no kernel.
    int frame = 0;                ///< Index into `frames`.
    int edge = -1;                ///< kSend, kRecv: index into `edges`.
    /// kSend, kRecv: the device at the other end, if it is connected with this one. The value
    /// travels in whatever memory it is in.
    Device* peer = nullptr;
    int enters = 0;  ///< Enter: the frame that it leads into.
    /// Outputs known beforehand (then no kernel, and no inputs of any kind).
    std::vector<Tensor> constants;
    ArgumentSpaces spaces;  ///< Where inputs are wanted, and outputs left.
  };
  std::vector<Node> nodes;
  std::vector<FrameInfo> frames;  ///< Empty: no control flow, everything is in the root.
  std::vector<RendezvousEdge> edges;
  std::vector<int> feeds;      ///< Per feed: a node with one output, no inputs and no kernel.
  std::vector<Input> fetches;  ///< Per fetch: where the value comes from.
  /// Per fetch: where it is wanted. Empty: all on the host.
  std::vector<MemorySpace> fetch_spaces;
  std::string device_name;  ///< For messages.
  /// By which steps are measured and traced; nullptr: they are not.
  TimeSource* clock = nullptr;
};

/// A node as the executor's loop sees it. Ranges point into the plan's flat arrays; slots are
/// counted from the beginning of a frame's own, inputs in the frame where the node runs, outputs in
/// the frame where they are consumed.
struct PlanNode {
  enum Kind : uint8_t {
    kNothing,      ///< Only orders others.
    kSync,         ///< Kernel::Compute.
    kAsync,        ///< AsyncKernel::ComputeAsync.
    kPassThrough,  ///< Output 0 is input 0 (a fetch of a reference).
    kFlow,         ///< Played by the executor: see FlowNode.
    kOnDevice,     ///< Kernel::Compute, which enqueues on the device's stream.
  };
  Kernel* kernel = nullptr;
  int32_t first_input = 0;
  int32_t first_output = 0;  ///< Slot of output 0; the others follow.
  int32_t first_consumer = 0;
  int32_t num_consumers = 0;
  uint16_t num_inputs = 0;
  uint16_t num_outputs = 0;
  Kind kind = kNothing;
  bool has_snapshots = false;
  bool on_device = false;  ///< Its kernel has arguments in the device's memory.
};

/// What is more to a node in a plan with control flow.
struct FlowNode {
  FlowOp op = FlowOp::kNone;
  int32_t local = 0;       ///< Its number there.
  int32_t enters = 0;      ///< Enter: the frame that it leads into,
  int32_t child = 0;       ///< and which of its parent's children that is.
  int32_t edge = -1;       ///< Send, Recv: in `edges`.
  int32_t first_edge = 0;  ///< In `flow_edges`.
  int32_t num_edges = 0;
};

/// An edge to a consumer in a plan with control flow.
struct FlowEdge {
  int32_t node;      ///< The consumer.
  int32_t local;     ///< Its number in its frame.
  int32_t src_slot;  ///< The slot that it carries, in the block of the consumer; -1: control.
  int32_t input;     ///< Which input of the consumer it is.
  bool to_merge;
};

/// How far a node is from running in an iteration.
struct NodeState {
  /// Edges that must still arrive. A Merge: twice the control edges, and 1 until an input is alive.
  int32_t pending;
  /// Not zero: some input was dead. A Merge: how many data inputs were dead, or, from the first
  /// live one on, -1 minus its number.
  int32_t dead;
};

/// A frame's part of a plan: nodes and slots are numbered by frames.
struct PlanFrame {
  int32_t parent = -1;
  int32_t num_nodes = 0;
  int32_t num_slots = 0;
  int32_t num_children = 0;
  int32_t num_enters = 0;
  int32_t parallel_iterations = 1;
  std::vector<NodeState> initial;  ///< By local number.
  std::vector<int32_t> sends;      ///< The nodes that send to other partitions.
  std::vector<std::pair<int32_t, Tensor>> constants;
};

/// A partition compiled into flat arrays: no maps, strings or locks on the path of a node. Made by
/// `Build` and then immutable, but for the measured costs (relaxed atomics); shared by all steps
/// that run it. Thread-safe.
struct Plan {
  /// A value that is read from a variable when a node starts.
  struct Snapshot {
    int32_t node;
    int32_t ref_slot;
    int32_t value_slot;
  };

  /// Internal if the specification is not well-formed (a bug of the compiler of plans).
  static absl::StatusOr<std::shared_ptr<const Plan>> Build(PlanSpec spec);

  int num_nodes() const { return static_cast<int>(nodes.size()); }
  const std::string& name(int node) const { return spec.nodes[node].name; }
  const std::string& op(int node) const { return spec.nodes[node].op; }
  /// "node a/b (MatMul)".
  std::string NodeText(int node) const;
  /// True: the executor keeps frames and iterations, and dead tensors may occur.
  bool has_flow() const { return !flow_nodes.empty(); }
  /// The node that fills a slot of a frame; -1: a constant's of another frame.
  int ProducerOf(int frame, int32_t slot) const;
  const Snapshot* SnapshotsOf(int node) const;
  /// Where an output is left.
  MemorySpace output_space(int node, int port) const {
    return spec.nodes[node].spaces.output(port);
  }

  /// Running estimate of a node's time in nanoseconds.
  uint32_t cost_ns(int node) const { return costs_[node].load(std::memory_order_relaxed); }
  void RecordCost(int node, uint64_t nanoseconds) const;
  /// Bytes of an output when it was last measured; -1: it never was.
  int64_t output_bytes(int node, int port) const {
    return output_bytes_[first_bytes_[node] + port].load(std::memory_order_relaxed);
  }
  /// Of a kernel that has just computed, in a run that measures.
  void RecordOutputs(int node, KernelContext& ctx) const;
  /// True if the node's time has been measured.
  bool measured(int node) const;
  /// Counts runs; tells which of them measure: the second, third and fourth, and then every 64th.
  bool NextRunMeasures() const {
    const uint64_t run = runs_.fetch_add(1, std::memory_order_relaxed);
    return (run >= 1 && run <= 3) || run % 64 == 0;
  }

  PlanSpec spec;  ///< With the nodes in the plan's order.
  std::vector<PlanNode> nodes;
  std::vector<int32_t> input_slots, consumers, initial_pending;
  std::vector<int32_t> slot_uses;    ///< How many consumers a slot has, fetches included.
  std::vector<int32_t> roots;        ///< Nodes that are ready when a step starts.
  std::vector<int32_t> fetch_slots;  ///< Slot of each fetch.
  std::vector<std::pair<int32_t, Tensor>> constants;
  std::vector<Snapshot> snapshots;  ///< Sorted by node.
  std::vector<FlowNode> flow_nodes;
  std::vector<FlowEdge> flow_edges;
  std::vector<PlanFrame> frames;
  std::vector<int32_t> frame_uses;  ///< Index into `slot_uses` of the first slot of each frame.
  /// `NodeText` of all nodes, for what they allocate; only of a plan that uses the device.
  std::shared_ptr<const std::vector<std::string>> node_texts;
  int num_slots = 0;         ///< Of the root frame, without control flow all there are.
  int num_executed = 0;      ///< Nodes that have a kernel or order others.
  bool uses_device = false;  ///< Some nodes are `on_device`.

 private:
  class Builder;

  std::unique_ptr<std::atomic<uint32_t>[]> costs_;
  mutable std::atomic<uint64_t> runs_{0};
  std::vector<int32_t> first_bytes_;  // Per node: of its first output in `output_bytes_`.
  std::unique_ptr<std::atomic<int64_t>[]> output_bytes_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_PLAN_H_
