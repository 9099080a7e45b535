/// A mutex is held by one, and a table keeps what it was given, for as long as its task lives.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SYNCHRONIZATION_LEDGER_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SYNCHRONIZATION_LEDGER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

/// Steps that hold a task's mutex read its counter, send what they have read to another task, and
/// write the sum: each gets a number of its own, and one that is greater than those of steps that
/// were over when it began. Two that held the mutex at once would get the same.
class MutexLedger {
 public:
  explicit MutexLedger(Schedule* schedule) : schedule_(schedule) {}

  /// The task begins a new life, in which the counter is 0.
  void Boot(int task) {
    boots_[task] = schedule_->now();
    counts_[task].clear();
  }
  /// A step begins; its own number.
  int64_t Begin() {
    begins_.push_back(schedule_->now());
    return static_cast<int64_t>(begins_.size()) - 1;
  }
  /// It has succeeded, with this count.
  void End(int task, int64_t step, int64_t count) {
    const ClusterTime begin = begins_[step];
    if (begin <= boots_[task]) return;  // Of which life it tells is not known.
    std::map<int64_t, ClusterTime>& counts = counts_[task];
    if (!counts.emplace(count, schedule_->now()).second) {
      schedule_->Violation(StrCat("two steps have counted ", count, " under task ", task,
                                  "'s mutex: both have held it"));
    }
    for (auto it = counts.upper_bound(count); it != counts.end(); ++it) {
      if (it->second >= begin) continue;
      schedule_->Violation(StrCat("a step has counted ", count, " under task ", task,
                                  "'s mutex, after one that had counted ", it->first));
      break;
    }
    ++num_held_;
  }
  int64_t num_held() const { return num_held_; }

 private:
  Schedule* const schedule_;
  std::vector<ClusterTime> begins_;
  std::map<int, ClusterTime> boots_;
  std::map<int, std::map<int64_t, ClusterTime>> counts_;  ///< When who got one was over.
  int64_t num_held_ = 0;
};

/// Steps put numbers of their own into a task's table, as keys and values, and look them up.
class TableLedger {
 public:
  explicit TableLedger(Schedule* schedule) : schedule_(schedule) {}

  void Boot(int task) { boots_[task] = schedule_->now(); }
  /// A step begins that puts in the number that is returned.
  int64_t Begin(int task) {
    puts_[next_number_] = {task, schedule_->now(), false};
    return next_number_++;
  }
  /// It has succeeded, and found this.
  void End(int64_t number, int64_t found) {
    puts_[number].in = true;
    ++num_found_;
    if (found == number) return;
    schedule_->Violation(StrCat("task ", puts_[number].task, "'s table has ", found, " for ",
                                number, ", which was just put in"));
  }
  /// What the table holds when all steps are over.
  void Left(int task, absl::Span<const int64_t> keys, absl::Span<const int64_t> values) {
    std::map<int64_t, int64_t> entries;
    for (size_t i = 0; i < keys.size(); ++i) entries[keys[i]] = values[i];
    for (const auto& [number, put] : puts_) {
      const auto it = entries.find(number);
      const bool of_this_life = put.task == task && put.begin > boots_[task];
      if (it == entries.end() && of_this_life && put.in) {
        schedule_->Violation(StrCat("task ", task, "'s table has lost ", number));
      }
      if (it == entries.end()) continue;
      if (put.task != task || it->second != number) {
        schedule_->Violation(StrCat("task ", task, "'s table has ", it->second, " for ", number));
      }
      entries.erase(it);
    }
    for (const auto& [key, value] : entries) {
      if (key > 0) schedule_->Violation(StrCat("task ", task, "'s table has ", key));
    }
  }
  int64_t num_found() const { return num_found_; }

 private:
  struct Put {
    int task = 0;
    ClusterTime begin = 0;
    bool in = false;
  };
  Schedule* const schedule_;
  int64_t next_number_ = 1;
  std::map<int64_t, Put> puts_;
  std::map<int, ClusterTime> boots_;
  int64_t num_found_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SYNCHRONIZATION_LEDGER_H_
