/// What tasks are to delete.
#ifndef TROUPE_ACTORS_CLUSTER_LEFTOVERS_H_
#define TROUPE_ACTORS_CLUSTER_LEFTOVERS_H_

#include <compare>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "actors/cluster/master_state.h"

namespace troupe {

/// What tasks may still have although nobody wants it. A task that cannot be reached is told later,
/// in the same life. Pure: a part of a master.
class Leftovers {
 public:
  /// A graph of a session; without handle: all of the session.
  struct Leftover {
    std::string session, handle;
    auto operator<=>(const Leftover&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  explicit Leftovers(MasterState* master) : master_(master) {}

  /// For later.
  void Add(PeerId task, const Leftover& leftover) { by_task_[task].insert(leftover); }
  /// Has the task delete it, now and later until it has said that it is gone; `tried` is called
  /// after the first time.
  void Delete(PeerId task, const Leftover& leftover, std::function<void()> tried = {});
  /// The life of a task has ended, and with it what it had.
  void Forget(PeerId task) { by_task_.erase(task); }
  void Tick();

 private:
  MasterState* const master_;
  std::map<PeerId, std::set<Leftover>> by_task_;
  ClusterTime next_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_LEFTOVERS_H_
