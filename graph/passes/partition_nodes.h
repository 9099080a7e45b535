/// The nodes that partitioning adds. For the sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_PARTITION_NODES_H_
#define TROUPE_GRAPH_PASSES_PARTITION_NODES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/passes/frames.h"
#include "graph/passes/partition.h"

namespace troupe {

/// Makes nodes in a graph of their own. They are templates: the wiring is that of the subgraphs.
class PartitionNodes {
 public:
  explicit PartitionNodes(const PartitionOptions& options);

  /// What both ends of a transfer say.
  struct Ends {
    std::string tensor_name;
    std::string node_prefix;
    std::string from, to;                      ///< Devices.
    ElementType type = ElementType::kInvalid;  ///< On the way.
    PartialShape shape;
    bool lossy = false;
  };
  absl::StatusOr<const Node*> Send(const Ends& ends);
  absl::StatusOr<const Node*> Recv(const Ends& ends);
  /// Before the Send and behind the Recv of a lossy transfer: float32 to its upper 16 bits, and
  /// back with zeros.
  absl::StatusOr<const Node*> Shorten(const Ends& ends);
  absl::StatusOr<const Node*> Lengthen(const Ends& ends);

  /// A constant without elements; one suffices.
  absl::StatusOr<const Node*> Nothing();
  static Tensor NoElements();

  /// The nodes of the control loop of a frame; the same for all devices.
  struct Loop {
    const Node* enter = nullptr;
    const Node* merge = nullptr;
    const Node* switch_node = nullptr;
    const Node* next = nullptr;
  };
  absl::StatusOr<Loop> ControlLoop(const FrameInfo& frame);

  std::shared_ptr<Graph> graph() const { return graph_; }

 private:
  absl::StatusOr<const Node*> Cast(const Ends& ends, const char* name, const std::string& device,
                                   ElementType from, ElementType to);
  /// Something of a type, for nodes that need an input while they are made.
  absl::StatusOr<Node*> Source(ElementType type);

  const PartitionOptions& options_;
  const std::shared_ptr<Graph> graph_;
  std::map<ElementType, Node*> sources_;
  const Node* nothing_ = nullptr;
  std::map<std::string, Loop> loops_;
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PARTITION_NODES_H_
