/// The tasks of a cluster, as a master sees them.
#ifndef TROUPE_ACTORS_CLUSTER_MASTER_TASKS_H_
#define TROUPE_ACTORS_CLUSTER_MASTER_TASKS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/calls.h"
#include "graph/protos/cluster.pb.h"

namespace troupe {

/// Which tasks are members, which of them are there, and their devices. Pure: thread-compatible.
class MasterTasks {
 public:
  struct Task {
    std::string name;     ///< "/job:worker/replica:0/task:0".
    std::string address;  ///< For messages.
    uint64_t epoch = 0;   ///< How many tasks of this name have left before it.
  };
  struct State {
    Task task;
    uint64_t incarnation = 0;  ///< 0: not there.
    uint64_t last_incarnation = 0;
    std::vector<cluster::DeviceInfo> devices;
    absl::Status lost;  ///< Why it is not there, once it has been.
    /// Not 0: it was not there from the beginning. Then sessions can do without it, once it has had
    /// time to come up.
    ClusterTime joined = 0;
  };

  /// `self`: the task whose devices come first. `time_to_come_up`: of those that join.
  MasterTasks(std::vector<Task> tasks, PeerId self, ClusterTime time_to_come_up);

  void Add(PeerId number, const Task& task, ClusterTime now);
  void Remove(PeerId number, const absl::Status& why);
  /// True if that is another life than the last one.
  bool Up(PeerId task, uint64_t incarnation, std::vector<cluster::DeviceInfo> devices);
  void Lost(PeerId task, const absl::Status& why);
  /// What a task that is not there says cannot be accepted.
  void Refused(PeerId task, const absl::Status& why);

  size_t size() const { return tasks_.size(); }
  const State& at(PeerId task) const { return tasks_[task]; }
  /// The life of a task that is there; 0: it is not.
  uint64_t life(PeerId task) const { return tasks_[task].incarnation; }
  /// Nothing: it has left the cluster.
  std::optional<PeerId> Find(const std::string& name) const;
  /// "/job:a/replica:0/task:0 (host:port)".
  std::string Describe(PeerId task) const;
  /// Whom a session has to wait for.
  std::vector<std::string> Missing(const cluster::SessionConfig& config, ClusterTime now) const;
  std::vector<cluster::DeviceInfo> DevicesFor(const cluster::SessionConfig& config) const;

 private:
  const PeerId self_;
  const ClusterTime time_to_come_up_;
  std::vector<State> tasks_;
  std::map<std::string, PeerId> by_name_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_MASTER_TASKS_H_
