/// The tasks of a cluster as one of its processes knows them.
#ifndef TROUPE_NET_TASK_TABLE_H_
#define TROUPE_NET_TASK_TABLE_H_

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cluster/calls.h"

namespace troupe {

/// Names and control addresses by number. Tasks are added and never removed; each process has its
/// own numbers. Thread-safe.
class TaskTable {
 public:
  struct Task {
    std::string name;  ///< Empty: whoever serves at the address.
    std::string address;
  };

  /// The next number, or another address for a task that is there.
  void Set(PeerId task, const std::string& name, const std::string& address) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (task >= tasks_.size()) tasks_.resize(task + 1);
    tasks_[task] = {name, address};
    if (!name.empty()) by_name_[name] = task;
  }
  std::optional<PeerId> Find(const std::string& name) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = by_name_.find(name);
    return it == by_name_.end() ? std::nullopt : std::optional<PeerId>(it->second);
  }
  std::optional<Task> Get(PeerId task) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return task < tasks_.size() ? std::optional<Task>(tasks_[task]) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::unordered_map<std::string, PeerId> by_name_;
};

/// Which one of two tasks makes the connection between them: two that dialled each other at once
/// would close each other's.
inline bool Dials(const std::string& self, const std::string& other) { return self < other; }

}  // namespace troupe

#endif  // TROUPE_NET_TASK_TABLE_H_
