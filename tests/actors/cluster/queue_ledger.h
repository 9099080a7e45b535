/// What clients put into the tasks' queues comes out once, in order, or not at all.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_QUEUE_LEDGER_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_QUEUE_LEDGER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

/// Every task has a queue of numbers, which is lost with its life. A step that puts in a number of
/// its own may have done so although it failed, and a step that takes some may have lost them. All
/// else is wrong: a number that comes twice, or that nobody put in; one that was in before another
/// one was begun, and comes after it; one that is gone although nobody can have taken it.
class QueueLedger {
 public:
  explicit QueueLedger(Schedule* schedule) : schedule_(schedule) {}

  /// The task begins a new life, in which its queue is empty.
  void Boot(int task) { boots_[task] = schedule_->now(); }

  /// A step begins that puts in the number that is returned.
  int64_t BeginPut(int task) {
    const int64_t number = next_number_++;
    puts_[number] = {task, schedule_->now(), std::nullopt, false};
    return number;
  }
  /// It has succeeded.
  void EndPut(int64_t number) { puts_[number].in = schedule_->now(); }

  /// A step begins that takes up to `count` numbers; the step's own number.
  int64_t BeginTake(int task, int count) {
    takes_.push_back({task, count, schedule_->now(), std::nullopt, false, newest_[task]});
    return static_cast<int64_t>(takes_.size()) - 1;
  }
  void TakeFailed(int64_t take) { takes_[take].end = schedule_->now(); }
  void EndTake(int64_t take, absl::Span<const int64_t> numbers) {
    Take& step = takes_[take];
    step.end = schedule_->now();
    step.succeeded = true;
    ClusterTime newest = step.newest;
    for (int64_t number : numbers) newest = std::max(newest, Out(number, step, newest));
    newest_[step.task] = std::max(newest_[step.task], newest);
    num_taken_ += numbers.size();
  }

  /// What is left in the queue when all steps are over.
  void Left(int task, absl::Span<const int64_t> numbers) {
    EndTake(BeginTake(task, static_cast<int>(numbers.size())), numbers);
    int64_t missing = 0;
    for (const auto& [number, put] : puts_) {
      missing += put.task == task && put.begin > boots_[task] && put.in && !put.out;
    }
    num_missing_ += missing;
    // Steps that failed in this life, or of which nobody knows, may have taken some.
    for (const Take& take : takes_) {
      if (take.task == task && !take.succeeded && take.end.value_or(INT64_MAX) >= boots_[task]) {
        missing -= take.count;
      }
    }
    if (missing > 0) {
      schedule_->Violation(StrCat(missing, " elements of task ", task, "'s queue have vanished"));
    }
  }
  uint64_t num_taken() const { return num_taken_; }
  /// Elements that were in and are nowhere.
  int64_t num_missing() const { return num_missing_; }

 private:
  struct Put {
    int task;
    ClusterTime begin;
    std::optional<ClusterTime> in;  ///< Known to have succeeded, from then on.
    bool out;
  };
  struct Take {
    int task, count;
    ClusterTime begin;
    std::optional<ClusterTime> end;
    bool succeeded;
    /// Of the numbers that were out before: when the last one was begun.
    ClusterTime newest;
  };

  /// A number came out, after one that was begun at `newest`; when it was begun itself.
  ClusterTime Out(int64_t number, const Take& take, ClusterTime newest) {
    const auto wrong = [&](const auto&... what) {
      schedule_->Violation(StrCat("task ", take.task, "'s queue gave ", number, what...));
    };
    auto it = puts_.find(number);
    if (it == puts_.end() || it->second.task != take.task) {
      wrong(", which nobody put in");
      return 0;
    }
    Put& put = it->second;
    if (std::exchange(put.out, true)) wrong(" twice");
    if (put.in && *put.in < newest) wrong(" after one that was put in later");
    if (put.in && *put.in < boots_[take.task] && take.begin > boots_[take.task]) {
      wrong(", which was lost with an earlier life");
    }
    return put.begin;
  }

  Schedule* const schedule_;
  int64_t next_number_ = 1;
  std::map<int64_t, Put> puts_;
  std::vector<Take> takes_;
  std::map<int, ClusterTime> boots_, newest_;
  uint64_t num_taken_ = 0;
  int64_t num_missing_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_QUEUE_LEDGER_H_
