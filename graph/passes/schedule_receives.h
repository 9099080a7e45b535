/// Scheduling of Recvs: as late as they can start without delaying the step.
#ifndef TROUPE_GRAPH_PASSES_SCHEDULE_RECEIVES_H_
#define TROUPE_GRAPH_PASSES_SCHEDULE_RECEIVES_H_

#include <cstdint>

#include "graph/passes/cost_model.h"
#include "graph/passes/partition.h"

namespace troupe {

struct ScheduleReceivesOptions {
  /// Smaller tensors are received whenever they come: what they would save is not worth an edge.
  int64_t min_bytes = 64 << 10;
  /// What a transfer is taken to cost.
  double latency_us = 20;
  double bytes_per_us = 1e3;
};

/// Gives Recvs outside loops a control edge from a node of their partition, so that a tensor that
/// is needed late does not fill memory early. As soon and as late as possible times of all nodes
/// follow from the cost model; an edge leads only from what has finished by its latest time to what
/// starts at its latest time, so that the critical path stays as long as it is and no cycle can
/// arise, in one partition or through several. Only nodes that are never dead are waited for, and
/// none that comes after what may wait for other steps (dequeuing, taking a lock): perhaps these
/// wait for what follows from the Recv.
/// Numbers the nodes anew where their order changes. Returns how many Recvs wait now. `costs` may
/// be nullptr: static estimates.
///
/// Whoever bounds the values in flight must not count those that have arrived but whose Recv has
/// not started: it may be waiting for another value.
int ScheduleReceives(const CostModel* costs, const ScheduleReceivesOptions& options,
                     PartitionedGraph* graph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_SCHEDULE_RECEIVES_H_
