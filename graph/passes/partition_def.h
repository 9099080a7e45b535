/// Partitions as messages: a subgraph becomes a GraphDef on the master, and a subgraph again on the
/// worker.
#ifndef TROUPE_GRAPH_PASSES_PARTITION_DEF_H_
#define TROUPE_GRAPH_PASSES_PARTITION_DEF_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/passes/partition.h"
#include "graph/protos/cluster.pb.h"

namespace troupe {

/// `graph` is where the subgraph comes from: version and functions. Feeds become placeholders,
/// folded constants Consts. Feeds and fetches have the numbers of the whole step.
/// `partial`: feeds become Recvs and fetches Sends, from and to the client of a partial run.
/// Unimplemented: a folded constant that has no wire form.
absl::StatusOr<cluster::Partition> PartitionToDef(const Graph& graph,
                                                  const DevicePartition& partition,
                                                  bool partial = false);

/// The task of the client in the names of those edges.
inline constexpr char kClientDevice[] = "/job:client/replica:0/task:0/device:CPU:0";

/// A partition that came from a master.
struct ReceivedPartition {
  std::shared_ptr<Graph> graph;
  Subgraph subgraph;
  std::vector<std::pair<ElementType, PartialShape>> feed_types;
  /// Of a partial run: the names of the edges by which feeds come and fetches go.
  std::vector<std::string> feed_edges, fetch_edges;
};

/// Everything is checked; InvalidArgument, NotFound.
absl::StatusOr<ReceivedPartition> PartitionFromDef(const cluster::Partition& def);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PARTITION_DEF_H_
