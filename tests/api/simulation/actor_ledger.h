/// What becomes of what is asked and told of actors, and who hears of their ends.
#ifndef TROUPE_TESTS_API_SIMULATION_ACTOR_LEDGER_H_
#define TROUPE_TESTS_API_SIMULATION_ACTOR_LEDGER_H_

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "devices/status_macros.h"
#include "tests/actors/cluster/schedule.h"

namespace troupe {

/// Actors, those who ask them and those who watch them have numbers of their own, whatever CAF
/// calls them. Each ask is answered once, by the actor that was asked, or fails with an error that
/// says why, and is handled once at most. What one tells another comes once at most, and in order.
/// Who watches an actor hears of its end once. A life that is over, its actors with it, says
/// nothing and is told nothing any more.
class ActorLedger {
 public:
  /// `losses`: connections break.
  ActorLedger(Schedule* schedule, bool losses) : schedule_(schedule), losses_(losses) {}

  // ---- Actors ----

  int64_t Begin(uint64_t life) {
    actors_.push_back({life, std::nullopt, {}});
    return static_cast<int64_t>(actors_.size());
  }
  void End(int64_t actor, const caf::error& reason) {
    Actor& it = At(actor);
    if (!it.ended) it.ended = schedule_->now();
    it.reason = reason;
  }
  void EndLife(uint64_t life) {
    lives_over_.insert(life);
    for (Actor& actor : actors_) {
      if (actor.life == life && !actor.ended) {
        actor.ended = schedule_->now();
        actor.reason = caf::exit_reason::remote_link_unreachable;
      }
    }
  }
  bool over(uint64_t life) const { return lives_over_.count(life) != 0; }

  // ---- Asks ----

  /// `life`: of who asks; 0: a graph, whose step says what came of it. `actor`: who is asked; 0:
  /// whoever has a name.
  int64_t Ask(uint64_t life, int64_t actor) {
    asks_[next_] = {life, actor, schedule_->now(), 0, 0, false};
    return next_++;
  }
  void Handled(int64_t ask, int64_t by) {
    const auto it = asks_.find(ask);
    if (it == asks_.end()) return Wrong("ask ", ask, " was handled, which nobody made");
    if (it->second.handled_by != 0) Wrong("ask ", ask, " was handled twice");
    it->second.handled_by = by;
    CheckAddressee(StrCat("ask ", ask), it->second.actor, by, it->second.begin);
    schedule_->Mark(static_cast<uint64_t>(ask));
  }
  /// An answer: to `of`, by an actor.
  void Answered(int64_t ask, int64_t of, int64_t by) {
    const AskOf& it = asks_[ask];
    Settle(ask);
    if (of != ask) Wrong("ask ", ask, " got the answer to ", of);
    if (by != it.handled_by) {
      Wrong("ask ", ask, " was handled by ", it.handled_by, " and answered by ", by);
    }
    ++num_answered_;
  }
  void Failed(int64_t ask, const absl::Status& why) {
    Settle(ask);
    ++num_failed_[why.code()];
    // A graph whose task has left cannot be placed.
    const bool placed = asks_[ask].life != 0 || !absl::IsInvalidArgument(why);
    const bool clear = !placed || absl::IsUnavailable(why) || absl::IsNotFound(why) ||
                       absl::IsAborted(why) || absl::IsDeadlineExceeded(why) ||
                       absl::IsCancelled(why) || absl::IsOutOfRange(why) ||
                       absl::IsResourceExhausted(why);
    if (!clear || why.message().empty()) Wrong("ask ", ask, " failed: ", why.ToString());
  }

  // ---- Tells ----

  /// `from` tells in the order of the calls; `actor` as above.
  int64_t Tell(int64_t from, int64_t actor) {
    tells_[next_] = {from, actor, schedule_->now(), false};
    return next_++;
  }
  void Told(int64_t tell, int64_t by) {
    const auto it = tells_.find(tell);
    if (it == tells_.end()) return Wrong("actor ", by, " was told ", tell, ", which nobody did");
    TellOf& told = it->second;
    if (std::exchange(told.told, true)) Wrong("tell ", tell, " came twice");
    CheckAddressee(StrCat("tell ", tell), told.actor, by, told.begin);
    int64_t& last = last_told_[{told.from, by}];
    if (told.from != 0 && last > tell) Wrong("tell ", tell, " came after ", last);
    last = std::max(last, tell);
    ++num_told_;
    schedule_->Mark(static_cast<uint64_t>(tell));
  }

  // ---- Monitors and links ----

  /// `watcher`, itself an actor, monitors or links itself with `actor`.
  int64_t Watch(int64_t watcher, int64_t actor, bool link) {
    watches_[next_] = {watcher, actor, link, false, 0};
    return next_++;
  }
  void Unwatch(int64_t watch) { watches_[watch].dropped = true; }
  void Fired(int64_t watch, const caf::error& reason) {
    WatchOf& it = watches_[watch];
    if (++it.fired > 1) Wrong("watch ", watch, " of ", it.actor, " fired twice");
    CheckReason(StrCat("watch ", watch), it.actor, reason);
    ++(reason == caf::exit_reason::remote_link_unreachable ? num_losses_ : num_fired_);
    schedule_->Mark(static_cast<uint64_t>(watch));
  }
  /// `actor` hears of the end of a watcher that was linked with it.
  void Heard(int64_t actor, int64_t watcher, const caf::error& reason) {
    if (!heard_.insert({actor, watcher}).second) {
      Wrong("actor ", actor, " heard twice of the end of ", watcher);
    }
    const bool lost = reason == caf::exit_reason::remote_link_unreachable;
    const bool linked = std::any_of(watches_.begin(), watches_.end(), [&](const auto& entry) {
      const WatchOf& watch = entry.second;
      return watch.watcher == watcher && watch.actor == actor && watch.link &&
             (!watch.dropped || lost);
    });
    if (!linked) Wrong("actor ", actor, " heard of the end of ", watcher, ", no link of its");
    CheckReason(StrCat("actor ", actor), watcher, reason);
    ++num_heard_;
    schedule_->Mark(static_cast<uint64_t>(watcher));
  }

  /// Everything is said, and has arrived.
  void CheckAllSaid() {
    for (const auto& [number, ask] : asks_) {
      if (ask.life != 0 && !over(ask.life) && ask.settled != 1) {
        Wrong("ask ", number, " of ", ask.begin, " us has had ", ask.settled, " answers");
      }
    }
    for (const auto& [number, watch] : watches_) {
      const Actor &watcher = At(watch.watcher), &actor = At(watch.actor);
      if (watch.dropped || over(watcher.life)) continue;
      const std::string what = StrCat("watch ", number, " of ", watch.actor, " by ", watch.watcher);
      if (!watcher.ended && actor.ended && watch.fired == 0) Wrong(what, " never fired");
      // Both hear, or a lost connection has ended it.
      const bool told = heard_.count({watch.actor, watch.watcher}) != 0;
      if (watch.link && !losses_ && watcher.ended && !actor.ended && !told) {
        Wrong(what, ": the other one has heard nothing");
      }
    }
  }

  int64_t num_answered() const { return num_answered_; }
  int64_t num_told() const { return num_told_; }
  int64_t num_fired() const { return num_fired_; }
  int64_t num_losses() const { return num_losses_; }
  int64_t num_heard() const { return num_heard_; }
  const std::map<absl::StatusCode, int64_t>& num_failed() const { return num_failed_; }

 private:
  struct Actor {
    uint64_t life;
    std::optional<ClusterTime> ended;
    caf::error reason;
  };
  struct AskOf {
    uint64_t life = 0;
    int64_t actor = 0;
    ClusterTime begin = 0;
    int64_t handled_by = 0;
    int settled = 0;
    bool wrong = false;
  };
  struct TellOf {
    int64_t from, actor;
    ClusterTime begin;
    bool told;
  };
  struct WatchOf {
    int64_t watcher = 0, actor = 0;
    bool link = false, dropped = false;
    int fired = 0;
  };

  Actor& At(int64_t actor) { return actors_[static_cast<size_t>(actor) - 1]; }
  void Settle(int64_t ask) {
    if (++asks_[ask].settled > 1) Wrong("ask ", ask, " was answered twice");
    schedule_->Mark(static_cast<uint64_t>(ask));
  }
  void CheckAddressee(const std::string& what, int64_t asked, int64_t by, ClusterTime begin) {
    if (asked != 0 && by != asked) Wrong(what, " was for ", asked, " and came to ", by);
    const std::optional<ClusterTime> ended = At(by).ended;
    if (ended && *ended < begin) Wrong(what, " came to ", by, ", which had ended before");
    if (over(At(by).life)) Wrong(what, " came to ", by, ", whose life is over");
  }
  /// Reasons are those with which it ended, or what is said of a process that is lost.
  void CheckReason(const std::string& what, int64_t actor, const caf::error& reason) {
    const Actor& it = At(actor);
    const bool lost = reason == caf::exit_reason::remote_link_unreachable;
    if (lost && (losses_ || over(it.life))) return;
    // Who asks for an actor that nobody knows any more is told no more than that.
    const bool unknown = reason == caf::exit_reason::unknown;
    if (it.ended && (reason == it.reason || unknown)) return;
    Wrong(what, " was told that ", actor, it.ended ? " has ended with " : " (which lives) ended, ",
          caf::to_string(reason), " instead of ", caf::to_string(it.reason));
  }
  template <typename... T>
  void Wrong(const T&... what) {
    schedule_->Violation(StrCat(what...));
  }

  Schedule* const schedule_;
  const bool losses_;
  int64_t next_ = 1;
  std::vector<Actor> actors_;
  std::set<uint64_t> lives_over_;
  std::map<int64_t, AskOf> asks_;
  std::map<int64_t, TellOf> tells_;
  std::map<int64_t, WatchOf> watches_;
  std::map<std::pair<int64_t, int64_t>, int64_t> last_told_;  ///< By whom and to whom.
  std::set<std::pair<int64_t, int64_t>> heard_;
  int64_t num_answered_ = 0, num_told_ = 0, num_fired_ = 0, num_losses_ = 0, num_heard_ = 0;
  std::map<absl::StatusCode, int64_t> num_failed_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_SIMULATION_ACTOR_LEDGER_H_
