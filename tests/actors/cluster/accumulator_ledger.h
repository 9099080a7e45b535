/// Gradients that clients apply to the tasks' accumulators come out once, all that are in together,
/// or not at all.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_ACCUMULATOR_LEDGER_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_ACCUMULATOR_LEDGER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

/// Every task has an accumulator of sparse gradients, which is lost with its life. A gradient has a
/// number of its own, which is the value of its two rows, 0 and the number. So the rows that are
/// taken say which gradients there are, and row 0, which all of them have, is their mean. A step
/// that applies one may have done so although it failed, and a step that takes some may have lost
/// them. All else is wrong: a gradient that comes twice, or that nobody applied; a mean of others
/// than come with it; fewer than were required; one that was in before a take was begun, and comes
/// with a later one; a stale one; one that is gone although nobody can have taken it.
class AccumulatorLedger {
 public:
  explicit AccumulatorLedger(Schedule* schedule) : schedule_(schedule) {}

  /// Nothing delays a step for longer: a take that fails although it could have been served since
  /// is wrong from now on.
  void ExpectPromptly(ClusterTime delay) { delay_ = delay; }
  /// The task begins a new life, in which its accumulator is empty.
  void Boot(int task) {
    boots_[task] = schedule_->now();
    stale_since_.erase(task);
  }

  /// A step begins that applies the gradient whose number is returned; of the oldest step (`old`),
  /// so that it is stale when anything has been taken, or of one that never is.
  int64_t BeginApply(int task, bool old) {
    const int64_t number = next_number_++;
    gradients_[number] = {task, old, schedule_->now(), std::nullopt, std::nullopt};
    return number;
  }
  /// It has succeeded.
  void EndApply(int64_t number) {
    Gradient& gradient = *Find(number);
    gradient.in = schedule_->now();
    if (!gradient.out && IsStale(gradient)) gone_.insert(gradients_.extract(number));
  }

  /// A step begins that takes at least `required` gradients; the step's own number.
  int64_t BeginTake(int task, int64_t required) {
    takes_.push_back({task, required, schedule_->now(), passed_[task]});
    ++under_way_[task];
    return static_cast<int64_t>(takes_.size()) - 1;
  }
  void TakeFailed(int64_t take) {
    const Take& step = takes_[take];
    --under_way_[step.task];
    failed_[step.task] = schedule_->now();
    const ClusterTime since = schedule_->now() - delay_.value_or(schedule_->now());
    if (step.begin < since && NumIn(step.task, since) >= step.required) {
      schedule_->Violation(StrCat("task ", step.task, "'s accumulator had enough since ", since,
                                  ", and did not give it to a take of ", step.begin));
    }
  }
  void EndTake(int64_t take, absl::Span<const int64_t> rows, absl::Span<const double> values) {
    const Take& step = takes_[take];
    --under_way_[step.task];
    passed_[step.task] = std::max(passed_[step.task], step.begin);
    double sum = 0;
    for (size_t i = 1; i < rows.size(); ++i) {
      sum += static_cast<double>(rows[i]);
      Out(rows[i], values[i], step);
    }
    Stale(step.task, step.begin);
    const auto count = static_cast<int64_t>(rows.size()) - 1;
    num_taken_ += count;
    if (count < step.required || rows[0] != 0 || values[0] != sum / static_cast<double>(count)) {
      schedule_->Violation(StrCat("task ", step.task, "'s accumulator gave ", count,
                                  " gradients of sum ", sum, ", mean ", count < 0 ? 0 : values[0],
                                  ", where ", step.required, " were required"));
    }
  }

  /// A step begins that makes old gradients stale; its number.
  ClusterTime BeginAdvance() const { return schedule_->now(); }
  void EndAdvance(int task, ClusterTime begin) { Stale(task, begin); }

  /// A step begins that counts the gradients; its number.
  ClusterTime BeginCount() const { return schedule_->now(); }
  void EndCount(int task, ClusterTime begin, int64_t count) {
    if (begin <= boots_[task]) return;
    int64_t most = 0;
    const auto may_be_in = [&](const Gradient& gradient) {
      return gradient.task == task && gradient.in.value_or(INT64_MAX) > boots_[task];
    };
    for (const auto& [number, gradient] : gradients_) most += may_be_in(gradient);
    for (auto out = taken_.rbegin(); out != taken_.rend(); ++out) {
      const Gradient& gradient = gone_.at(*out);
      if (*gradient.out <= begin) break;
      most += may_be_in(gradient);
    }
    const int64_t least = MayHaveLost(task) ? 0 : NumIn(task, begin);
    if (count < least || count > most) {
      schedule_->Violation(StrCat("task ", task, "'s accumulator says that it has ", count,
                                  " gradients, not ", least, " to ", most));
    }
  }

  /// What is left when all steps are over, of which there are `count`; no rows if none.
  void Left(int task, int64_t count, absl::Span<const int64_t> rows,
            absl::Span<const double> values) {
    EndCount(task, BeginCount(), count);
    if (count > 0) EndTake(BeginTake(task, count), rows, values);
    const int64_t missing = NumIn(task, schedule_->now());
    num_missing_ += missing;
    if (missing > 0 && !MayHaveLost(task)) {
      schedule_->Violation(
          StrCat(missing, " gradients of task ", task, "'s accumulator have vanished"));
    }
  }
  int64_t num_taken() const { return num_taken_; }
  /// Gradients that were in and are nowhere.
  int64_t num_missing() const { return num_missing_; }

 private:
  struct Gradient {
    int task;
    bool old;
    ClusterTime begin;
    std::optional<ClusterTime> in;   ///< Known to have succeeded, from then on.
    std::optional<ClusterTime> out;  ///< Known to have been taken, from then on.
  };
  struct Take {
    int task;
    int64_t required;
    ClusterTime begin;
    /// Of those that had succeeded before: when the last one was begun.
    ClusterTime passed;
  };

  void Out(int64_t number, double value, const Take& take) {
    const auto wrong = [&](const auto&... what) {
      schedule_->Violation(StrCat("task ", take.task, "'s accumulator gave ", number, what...));
    };
    Gradient* const found = Find(number);
    if (found == nullptr || found->task != take.task) return wrong(", which nobody applied");
    Gradient& gradient = *found;
    if (gradient.out) wrong(" twice");
    gradient.out = schedule_->now();
    if (gradients_.count(number) != 0) gone_.insert(gradients_.extract(number));
    taken_.push_back(number);
    if (value != static_cast<double>(number)) wrong(" as ", value);
    if (gradient.in && *gradient.in < take.passed) wrong(", which an earlier take passed over");
    if (gradient.in && *gradient.in < boots_[take.task] && take.begin > boots_[take.task]) {
      wrong(", which was lost with an earlier life");
    }
    if (IsStale(gradient)) wrong(", which was stale");
  }
  /// nullptr: there is none of that number.
  Gradient* Find(int64_t number) {
    for (std::map<int64_t, Gradient>* some : {&gradients_, &gone_}) {
      if (auto it = some->find(number); it != some->end()) return &it->second;
    }
    return nullptr;
  }
  /// Nobody can take it.
  bool IsStale(const Gradient& gradient) const {
    const auto stale = stale_since_.find(gradient.task);
    return gradient.old && stale != stale_since_.end() && gradient.begin > stale->second;
  }
  /// A step that was begun then has made gradients of the oldest step stale.
  void Stale(int task, ClusterTime begin) {
    if (begin > boots_[task]) stale_since_.emplace(task, schedule_->now());
  }
  /// Gradients that nobody can call stale, and that were in at that time and are not known to have
  /// been taken since.
  int64_t NumIn(int task, ClusterTime at) {
    int64_t count = 0;
    for (const auto& [number, gradient] : gradients_) {
      count += gradient.task == task && !gradient.old && gradient.begin > boots_[task] &&
               gradient.in.value_or(INT64_MAX) <= at;
    }
    return count;
  }
  /// A step that failed in this life, or of which nobody knows, may have taken something.
  bool MayHaveLost(int task) {
    const auto failed = failed_.find(task);
    return under_way_[task] > 0 || (failed != failed_.end() && failed->second >= boots_[task]);
  }

  Schedule* const schedule_;
  std::optional<ClusterTime> delay_;
  int64_t next_number_ = 1, num_taken_ = 0, num_missing_ = 0;
  std::map<int64_t, Gradient> gradients_;  ///< That may be in, or get in.
  std::map<int64_t, Gradient> gone_;       ///< That have been taken, or were stale.
  std::vector<int64_t> taken_;             ///< In the order in which they came out.
  std::vector<Take> takes_;
  std::map<int, ClusterTime> boots_, passed_, stale_since_;
  std::map<int, int64_t> under_way_;   ///< Takes of which nobody knows whether they succeed.
  std::map<int, ClusterTime> failed_;  ///< When the last one did.
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_ACCUMULATOR_LEDGER_H_
