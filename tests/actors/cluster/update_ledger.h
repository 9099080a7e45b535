/// Every update of the tasks' variables is made once, or never if nobody was told that it was made.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_UPDATE_LEDGER_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_UPDATE_LEDGER_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "devices/status_macros.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

/// A step adds its own, unique number to the variables of some tasks. Whoever looks at a variable
/// after each job sees which step's update was made, and whether it was made before.
class UpdateLedger {
 public:
  explicit UpdateLedger(Schedule* schedule) : schedule_(schedule) {}

  /// A number for a step that updates these tasks. Sums of a few numbers are no other's.
  int64_t Attempt(const std::vector<int>& tasks) {
    const int64_t number = schedule_->Between(1, int64_t{1} << 40);
    for (int task : tasks) attempts_[number].insert(task);
    return number;
  }
  /// A task has begun a new life, in which the sum is 0.
  void Boot(int task) { sums_[task] = 0; }
  /// The sum after something has been done.
  void Look(int task, int64_t sum) {
    const int64_t number = sum - std::exchange(sums_[task], sum);
    if (number == 0) return;
    auto it = attempts_.find(number);
    if (it == attempts_.end() || it->second.count(task) == 0) {
      schedule_->Violation(StrCat("task ", task, " was changed by ", number,
                                  ", which is no step's update: one was lost or made twice"));
    } else if (!made_[number].insert(task).second) {
      schedule_->Violation(StrCat("update ", number, " of task ", task, " was made twice"));
    }
    ++num_updates_;
  }
  /// The step has succeeded, and this is what it said of a task.
  void Acknowledge(int64_t number, int task, int64_t sum) {
    if (made_[number].count(task) == 0) {
      schedule_->Violation(StrCat("update ", number, " of task ", task, " (sum ", sum,
                                  ") was acknowledged and not made"));
    }
  }
  uint64_t num_updates() const { return num_updates_; }

 private:
  Schedule* const schedule_;
  std::map<int64_t, std::set<int>> attempts_, made_;
  std::map<int, int64_t> sums_;
  uint64_t num_updates_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_UPDATE_LEDGER_H_
