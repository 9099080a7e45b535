/// Placement: which device runs each node of a subgraph.
#ifndef TROUPE_GRAPH_PASSES_PLACE_H_
#define TROUPE_GRAPH_PASSES_PLACE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "devices/device_figures.h"
#include "devices/device_name.h"
#include "graph/passes/cost_model.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// A device that nodes may be placed on.
struct PlacementDevice {
  std::string name;   ///< Complete: "/job:worker/replica:0/task:0/device:CPU:0".
  DeviceName parsed;  ///< `name`, parsed.
  /// How fast it is, compared with one CPU core.
  double speed = 1;
  /// Devices with the same number from 0 on share a processor: the simulation does not expect two
  /// of them to compute at once. -1: a processor of its own.
  int processor = -1;
  /// Of a device with a memory of its own; nullopt: it is as fast as `speed` says.
  std::optional<DeviceFigures> figures;
  /// Bytes that it has; 0: as many as anyone wants.
  int64_t memory = 0;
};

/// What moving a tensor is taken to cost.
struct TransferCost {
  double latency_us = 0;    ///< From the end of the producer to the start of the consumer.
  double overhead_us = 0;   ///< Work that it makes for the devices at both ends.
  double bytes_per_us = 0;  ///< 0: the bytes cost nothing (shared memory).
};

/// What a placement depends on.
struct PlacementInput {
  std::vector<PlacementDevice> devices;  ///< At least one, in order of preference.
  /// Full or partial name of the device for what could as well run elsewhere; "": the first.
  std::string default_device;
  /// A request that no device meets loses its type and index instead of being refused: the node
  /// goes to a device of the requested task that has a kernel, a CPU if it can be.
  bool allow_soft_placement = false;
  /// Why devices of this type ("CPU", "GPU") are out of the question: the node that they have no
  /// kernel for, which may be one that must be with `node` in other steps; nullptr: nothing lacks.
  /// Empty: all have all kernels. Not asked for control flow and NoOp, nor if there is only one
  /// type of device.
  std::function<const Node*(const Node& node, const std::string& device_type)> lacks_kernel;
  /// For messages: which kernels there are for such a node. May be empty.
  std::function<std::string(const Node& node, const std::string& device_type)> explain_lack;
  /// Node name to complete device name: nodes that must stay where earlier steps of the session
  /// placed them. May be nullptr.
  const std::unordered_map<std::string, std::string>* fixed = nullptr;
  const CostModel* costs = nullptr;  ///< nullptr: static estimates only.
  /// For tests of everything across devices: devices named in the graph do not count (colocation
  /// does), and each group goes to a device drawn by this number and the name of its first node.
  std::optional<uint64_t> spread_seed;
  TransferCost within_process{1.0, 0.5, 0};
  /// Devices of one task, of different types; for those with figures it is what they say.
  TransferCost between_types{10.0, 1.0, 1e4};
  TransferCost between_tasks{60.0, 10.0, 1e3};
};

/// Why each node is where it is.
struct PlacementReport {
  struct Entry {
    std::string node, op, device;
    std::string reason;
    double cost_us = 0;
  };
  std::vector<Entry> entries;  ///< In the order of the subgraph's nodes.
  double predicted_us = 0;     ///< Of the whole step, by the simulation; 0 with one device.
  /// A table, one line a node.
  std::string ToString() const;
};

/// Sets `device` of every node.
///
/// Nodes that must be together form groups: `_class: loc:@node`, a requested device "@node",
/// reference edges, edges that carry resource handles, and the ends of a loop's back edge. A group
/// may be where all its members' requests, kernels and earlier placements allow. Where that leaves
/// a choice: state goes to the default device; what only passes values on goes with its input; a
/// loop goes to one device; the others are placed by a simulation of the step in which each group
/// is put where it would finish first, transfers included, and where the memory has room for it by
/// what is placed there and still needed then. Constants and feeds go with their first
/// consumer (`Partition` copies them to the others).
///
/// InvalidArgument: a group for which no device remains, or a malformed or unknown device name; the
/// message lists the group's members with each one's constraint, and the devices. Unavailable: a
/// fixed device that is not among the devices any more. Deterministic; thread-safe.
absl::Status Place(const PlacementInput& input, Subgraph* subgraph,
                   PlacementReport* report = nullptr);

/// The same errors, without placing: for a subgraph that is to be simplified first.
absl::Status CheckPlacement(const PlacementInput& input, const Subgraph& subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PLACE_H_
