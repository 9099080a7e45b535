/// Deadlines.
#ifndef TROUPE_DEVICES_CPU_DEADLINE_TIMER_H_
#define TROUPE_DEVICES_CPU_DEADLINE_TIMER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace troupe {

/// One thread that calls functions when their time has come; started by the first deadline.
/// Thread-safe.
class DeadlineTimer {
 public:
  DeadlineTimer() = default;
  /// Deadlines that have not come are dropped.
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  /// Has `expired` called when `timeout` is over, on the timer's thread; it must be short and must
  /// not throw. The result identifies it.
  uint64_t Add(absl::Duration timeout, std::function<void()> expired);
  /// Afterwards `expired` is not running, unless it calls this itself, and will not run.
  void Remove(uint64_t id);

 private:
  using Clock = std::chrono::steady_clock;

  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Clock::time_point, uint64_t>, std::function<void()>> deadlines_;
  std::map<uint64_t, Clock::time_point> by_id_;
  uint64_t next_id_ = 1;
  uint64_t running_ = 0;  ///< The one being called.
  bool stopping_ = false;
  std::thread thread_;
};

/// Calls a function when a time is over, unless it is cleared or destroyed before. For one thread.
class ScopedDeadline {
 public:
  ScopedDeadline() = default;
  ~ScopedDeadline() { Clear(); }
  ScopedDeadline(const ScopedDeadline&) = delete;
  ScopedDeadline& operator=(const ScopedDeadline&) = delete;

  /// Infinite: never; not positive: now, on this thread.
  void Set(DeadlineTimer* timer, absl::Duration timeout, std::function<void()> expired);
  /// Afterwards the function is not running and will not run.
  void Clear();

 private:
  DeadlineTimer* timer_ = nullptr;
  uint64_t id_ = 0;
};

/// Waits until `over` is true, which is looked at with `mutex` held and when `changed` is notified;
/// false if it is not true after `patience`, of which `timer` tells. Without memory for a deadline
/// it waits as long as it takes.
bool WaitWithin(DeadlineTimer* timer, absl::Duration patience, std::mutex* mutex,
                std::condition_variable* changed, absl::FunctionRef<bool()> over);

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_DEADLINE_TIMER_H_
