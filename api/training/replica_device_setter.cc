#include "api/training/replica_device_setter.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

const std::vector<std::string>& VariableOps() {
  static const auto* ops = new std::vector<std::string>{"AutoReloadVariable",
                                                        "MutableHashTable",
                                                        "MutableHashTableV2",
                                                        "MutableDenseHashTable",
                                                        "MutableDenseHashTableV2",
                                                        "MutableHashTableOfTensors",
                                                        "MutableHashTableOfTensorsV2",
                                                        "BoostedTreesEnsembleResourceHandleOp",
                                                        "VarHandleOp",
                                                        "Variable",
                                                        "VariableV2"};
  return *ops;
}

}  // namespace

PlacementStrategy RoundRobin(int num_tasks) {
  auto next = std::make_shared<int>(0);
  return [next, num_tasks](const NodeToPlace&) {
    const int task = *next;
    *next = (task + 1) % std::max(1, num_tasks);
    return task;
  };
}

PlacementStrategy GreedyLoadBalancing(int num_tasks,
                                      std::function<int64_t(const NodeToPlace&)> load) {
  auto loads = std::make_shared<std::vector<int64_t>>(std::max(1, num_tasks));
  if (!load) load = ByteSize;
  return [loads, load = std::move(load)](const NodeToPlace& variable) {
    const auto least = std::min_element(loads->begin(), loads->end());
    *least += load(variable);
    return static_cast<int>(least - loads->begin());
  };
}

int64_t ByteSize(const NodeToPlace& variable) {
  const ElementType type = RemoveRef(variable.type);
  if (type == ElementType::kInvalid) return 0;
  int64_t bytes = std::max<int64_t>(1, static_cast<int64_t>(ElementSize(type)));
  if (variable.shape.unknown_rank()) return bytes;
  for (const int64_t size : variable.shape.dims()) bytes *= size < 0 ? 1 : size;
  return bytes;
}

DeviceFunction ReplicaDeviceSetter(ReplicaDeviceOptions options) {
  if (options.ps_ops.empty()) options.ps_ops = VariableOps();
  if (!options.strategy) options.strategy = RoundRobin(options.ps_tasks);
  return [options = std::move(options)](const NodeToPlace& node) {
    const bool variable =
        options.ps_tasks > 0 &&
        std::find(options.ps_ops.begin(), options.ps_ops.end(), node.op) != options.ps_ops.end();
    if (!variable) return options.worker_device;
    absl::StatusOr<DeviceName> ps = DeviceName::Parse(options.ps_device);
    if (!ps.ok()) return options.ps_device;  // The scope says what is wrong with it.
    absl::StatusOr<DeviceName> asked = DeviceName::Parse(node.device);
    if (asked.ok() && asked->job && asked->job != ps->job) return std::string(node.device);
    ps->task = options.strategy(node);
    return ps->ToString();
  };
}

DeviceFunction ReplicaDeviceSetter(const ClusterSpec& cluster, int worker,
                                   PlacementStrategy strategy) {
  return ReplicaDeviceSetter({.ps_tasks = cluster.num_tasks("ps"),
                              .worker_device = StrCat("/job:worker/task:", worker),
                              .strategy = std::move(strategy),
                              .ps_ops = {}});
}

}  // namespace troupe
