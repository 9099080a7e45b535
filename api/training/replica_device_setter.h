/// Spreading variables over parameter servers.
#ifndef TROUPE_API_TRAINING_REPLICA_DEVICE_SETTER_H_
#define TROUPE_API_TRAINING_REPLICA_DEVICE_SETTER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"
#include "net/cluster_spec.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Says which parameter server a variable goes to: a number from 0. Called once per variable, in
/// the order in which they are made. May keep state, which copies share.
using PlacementStrategy = std::function<int(const NodeToPlace& variable)>;

/// One after the other.
PlacementStrategy RoundRobin(int num_tasks);
/// To the one that has least so far; the first of several. `load` is what a variable counts,
/// `ByteSize` if none is given.
PlacementStrategy GreedyLoadBalancing(int num_tasks,
                                      std::function<int64_t(const NodeToPlace&)> load = nullptr);
/// The bytes of a variable's value, as far as they are known: sizes that are not count as 1.
int64_t ByteSize(const NodeToPlace& variable);

/// How `ReplicaDeviceSetter` places. A value.
struct ReplicaDeviceOptions {
  int ps_tasks = 0;                           ///< 0: variables are placed like everything else.
  std::string ps_device = "/job:ps";          ///< Of variables; the task is added.
  std::string worker_device = "/job:worker";  ///< Of all other nodes.
  PlacementStrategy strategy;                 ///< None: `RoundRobin`.
  std::vector<std::string> ps_ops;  ///< Ops that are variables; empty: all that there are.
};

/// A device function that puts variables on parameter servers and everything else on a worker:
/// between-graph replication. Every worker builds the same graph, with another `worker_device`; as
/// variables are made in the same order, they all find them at the same place.
///
///     Scope s = Scope::NewRoot().WithDeviceFunction(ReplicaDeviceSetter(
///         {.ps_tasks = 2, .worker_device = "/job:worker/task:1"}));
///
/// What reads or changes a variable is placed with it. A variable in a scope within this one that
/// asks for another job goes there, and does not count for the strategy. Not thread-safe.
DeviceFunction ReplicaDeviceSetter(ReplicaDeviceOptions options);
/// With as many parameter servers as the job "ps" has tasks, for task `worker` of the job "worker".
DeviceFunction ReplicaDeviceSetter(const ClusterSpec& cluster, int worker,
                                   PlacementStrategy strategy = nullptr);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_REPLICA_DEVICE_SETTER_H_
