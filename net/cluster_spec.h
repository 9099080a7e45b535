/// Which jobs a cluster has, which tasks a job, and where each task listens.
#ifndef TROUPE_NET_CLUSTER_SPEC_H_
#define TROUPE_NET_CLUSTER_SPEC_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A task by name: `/job:J/replica:0/task:N`. A value; thread-compatible.
struct TaskId {
  std::string job;
  int task = 0;

  /// "/job:worker/replica:0/task:1".
  std::string ToString() const;
  /// The task that a device, or a task, is named after: job and task must be given, and the replica
  /// be 0 if it is given. InvalidArgument.
  static absl::StatusOr<TaskId> FromDeviceName(std::string_view name);
  auto operator<=>(const TaskId&) const = default;
};

/// The jobs of a cluster and their tasks' control addresses (`host:port`). Tasks are numbered from
/// 0 without gaps; no two share an address. A value; thread-compatible.
class ClusterSpec {
 public:
  /// What a description may have: more is a mistake or an attack.
  static constexpr size_t kMaxJsonBytes = 4 << 20;
  static constexpr int kMaxTasks = 100000;

  ClusterSpec() = default;

  /// InvalidArgument, naming job and task, for job names that device names cannot have, empty jobs,
  /// bad addresses, and addresses that two tasks have.
  static absl::StatusOr<ClusterSpec> Create(
      const std::map<std::string, std::vector<std::string>>& jobs);

  /// Reads `{"ps": ["127.0.0.1:7000"], "worker": [...]}`, or the same as the value of "cluster". A
  /// job may also be an object, `{"0": "host:port", ...}`, whose numbers have no gaps. Strict:
  /// InvalidArgument for anything else, keys given twice included.
  static absl::StatusOr<ClusterSpec> Parse(std::string_view json);
  /// NotFound if there is no such file; errors name the file.
  static absl::StatusOr<ClusterSpec> ReadFile(const std::string& file);

  bool empty() const { return jobs_.empty(); }
  /// In alphabetical order.
  const std::map<std::string, std::vector<std::string>>& jobs() const { return jobs_; }
  /// 0 if there is no such job.
  int num_tasks(const std::string& job) const;
  /// In the order of jobs and numbers.
  std::vector<TaskId> tasks() const;
  /// NotFound lists what there is.
  absl::StatusOr<std::string> Address(const TaskId& task) const;
  /// What `Parse` reads.
  std::string ToJson() const;
  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, std::vector<std::string>> jobs_;
};

/// What TensorFlow's environment variable TF_CONFIG says.
struct TfConfig {
  ClusterSpec cluster;
  TaskId task;  ///< Of this process.
};

/// Reads `{"cluster": {...}, "task": {"type": "worker", "index": 0}}`; other members are ignored.
/// InvalidArgument, also if the task is not in the cluster.
absl::StatusOr<TfConfig> ParseTfConfig(std::string_view json);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_NET_CLUSTER_SPEC_H_
