/// The pass `Partition` while it is at work. For the sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_PARTITIONER_H_
#define TROUPE_GRAPH_PASSES_PARTITIONER_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/partition.h"
#include "graph/passes/partition_nodes.h"
#include "graph/passes/partition_reads.h"

namespace troupe {

/// Cuts one subgraph. Used once.
class Partitioner {
 public:
  Partitioner(Subgraph subgraph, const PartitionOptions& options)
      : subgraph_(std::move(subgraph)),
        nodes_(subgraph_.nodes),
        options_(options),
        added_(options) {}

  absl::StatusOr<PartitionedGraph> Run();

 private:
  struct BackEdge {
    int32_t partition, node, input, from;
  };
  /// The control loop of a frame in a partition.
  struct ControlLoop {
    int32_t merge = -1;
    bool complete = false;
  };
  using TransferKey = std::tuple<int32_t, int32_t, int32_t, std::vector<int32_t>>;

  std::vector<SubNode>& NodesOf(int32_t partition) {
    return result_.partitions[partition].subgraph.nodes;
  }
  const std::string& DeviceOf(int32_t partition) const {
    return result_.partitions[partition].device;
  }
  std::string Describe(int32_t i) const {
    return StrCat("node '", nodes_[i].original->name(), "' (op ", nodes_[i].original->op(), ")");
  }
  FlowOp Flow(int32_t i) const { return FlowOpOf(nodes_[i]); }

  // Who is where, and the ends: partition.cc.

  absl::Status FindHomes();
  void Whole();
  /// A value for the next iteration would have no partner in the first one: a back edge must not
  /// cross, so NextIteration goes with its Merge.
  absl::Status KeepBackEdges();
  /// True for nodes that are copied to where they are needed instead of being sent.
  bool IsCopied(int32_t i) const;
  void FindPlaces();
  void EmitEnds();
  /// A device whose constants are all needed elsewhere has nothing to do.
  void DropEmpty();

  // Loops that span devices: partition_loops.cc.

  /// Which partitions take part in each loop.
  absl::Status FindLoops();
  /// The node that begins each iteration of a frame in a partition: the Merge of its control loop.
  absl::StatusOr<int32_t> BeginLoop(int32_t frame, int32_t q);
  absl::Status CompleteLoop(int32_t frame, int32_t q);
  /// Where the condition itself is computed a control loop is needed only for Recvs and inner
  /// loops, which have asked for it, or if nothing else there would begin an iteration.
  absl::Status EndLoops();
  /// The frame in which the outputs of a node are.
  int32_t OutputFrame(int32_t i) const;

  // Nodes, and what they have instead of inputs from elsewhere: partition_edges.cc.

  int32_t Add(int32_t q, const Node* original, std::vector<SubOutput> inputs,
              std::vector<int32_t> control_inputs = {});
  /// A constant without elements in a partition.
  absl::StatusOr<int32_t> Nothing(int32_t q);
  /// Node i in a partition; -1 if it is not there (yet).
  int32_t At(int32_t i, int32_t q) const;
  absl::Status EmitEverywhere(int32_t i);
  absl::Status Emit(int32_t i, int32_t q);
  absl::Status CheckCrosses(int32_t i, int k) const;
  /// What enters the first iteration only would have a partner waiting in all the others.
  absl::Status CheckEnter(int32_t i) const;
  /// What to wait for in partition q instead of node i.
  absl::StatusOr<int32_t> Order(int32_t i, int32_t q);
  /// The Recv in partition q of an output of node i, sent once the nodes `waits` have finished.
  absl::StatusOr<int32_t> Receive(int32_t i, int32_t port, int32_t q, std::vector<int32_t> waits);
  PartitionNodes::Ends EndsOf(int32_t i, int32_t port, int32_t p, int32_t q) const;

  Subgraph subgraph_;
  std::vector<SubNode>& nodes_;
  const PartitionOptions& options_;
  PartitionNodes added_;
  PartitionedGraph result_;
  std::vector<int32_t> homes_;  // Per node: its partition.
  Frames frames_;
  std::map<SubInput, std::vector<int32_t>> read_order_;
  std::vector<char> copied_;
  std::vector<std::vector<int32_t>> places_;   // Per node: the partitions that have it.
  std::vector<std::vector<int32_t>> members_;  // Per frame: the partitions that take part.
  std::vector<int32_t> loop_conds_;            // Per frame; -1: none.
  std::vector<char> repeats_;                  // Per frame: it has a NextIteration.
  std::vector<int32_t> at_;                    // Per node: where it is in its home; -1: not yet.
  std::map<std::pair<int32_t, int32_t>, int32_t> copies_;
  std::map<std::pair<int32_t, int32_t>, ControlLoop> loops_;  // By frame and partition.
  std::map<TransferKey, int32_t> recvs_;
  std::vector<int32_t> nothing_;  // Per partition.
  std::vector<BackEdge> back_edges_;
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PARTITIONER_H_
