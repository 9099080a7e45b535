/// Partition: one subgraph per device, joined by Send and Recv.
#ifndef TROUPE_GRAPH_PASSES_PARTITION_H_
#define TROUPE_GRAPH_PASSES_PARTITION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/passes/subgraph.h"

namespace troupe {

struct PartitionOptions {
  /// The incarnation of a device, for the attribute of Send and Recv; empty: 0.
  std::function<uint64_t(const std::string& device)> incarnation;
  /// float32 tensors that go from one task to another lose their low 16 bits: they travel as
  /// bfloat16, and zeros are put in their place. Otherwise only those of nodes with the attribute
  /// `_lossy_16bit = true` do.
  bool lossy_between_tasks = false;
};

/// What one device runs.
struct DevicePartition {
  std::string device;            ///< Complete name.
  Subgraph subgraph;             ///< As well-formed as the whole: ordered, frames included.
  std::vector<int32_t> feeds;    ///< Per feed of `subgraph`: which feed of the caller it is.
  std::vector<int32_t> fetches;  ///< Per fetch of `subgraph`: which fetch of the caller it is.
};

/// A tensor, or an ordering, that goes from one device to another: `_Send` and `_Recv`.
struct Transfer {
  std::string name;            ///< The attribute `tensor_name` of both ends; unique in the step.
  int32_t from = 0, send = 0;  ///< Partition and node.
  int32_t to = 0, recv = 0;
  bool control = false;  ///< Only orders: the Send's input is a constant without elements.
  bool lossy = false;    ///< Attribute `_lossy_16bit` of both ends.
};

/// Where a feed or fetch of the caller is.
struct PartitionPlace {
  int32_t partition = 0;
  int32_t index = 0;  ///< Into the partition's `subgraph.feeds` or `subgraph.fetches`.
  bool operator==(const PartitionPlace&) const = default;
};

struct PartitionedGraph {
  std::vector<DevicePartition> partitions;  ///< None is empty.
  /// Per feed of the caller: everywhere it is used; nowhere, if no node takes it.
  std::vector<std::vector<PartitionPlace>> feeds;
  std::vector<PartitionPlace> fetches;  ///< Per fetch of the caller.
  std::vector<Transfer> transfers;
  std::shared_ptr<Graph> added;  ///< Owns the nodes that were added; nullptr with one partition.
};

/// Cuts a placed subgraph (`device` of every node is set) into one per device.
///
/// - An edge that crosses becomes a `_Send` at its source and a `_Recv` at its destination, which
///   all consumers there share. A control edge becomes a pair that carries nothing. A Recv outside
///   loops has no inputs.
/// - Feeds, constants that nothing orders, and Enters are copied to every device with a consumer
///   instead: a loop invariant crosses once, not in every iteration.
/// - In every loop that spans devices each partition has a control loop of its own (Enter, Merge,
///   Switch on the loop's received condition, NextIteration), which begins, goes on and ends with
///   the others'. The Recvs inside wait for its Merge by a control edge: they run once in every
///   iteration, dead ones included. A Send passes deadness on. Loops nest.
/// - A value read from a variable's reference for a consumer elsewhere is read after what precedes
///   that consumer and may have changed the variable, as if the consumer read it.
///
/// The names and numbers are the same whenever the subgraph is. Added nodes are stateful in name
/// only: whoever keeps kernels by node name must leave them out.
///
/// InvalidArgument: a node without device; a reference or resource edge that crosses; a loop across
/// devices that repeats without a LoopCond, or what FindFrames refuses. Thread-safe.
absl::StatusOr<PartitionedGraph> Partition(Subgraph subgraph, const PartitionOptions& options);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PARTITION_H_
