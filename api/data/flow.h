/// What the stages of one iterator share, and the actors among them.
#ifndef TROUPE_API_DATA_FLOW_H_
#define TROUPE_API_DATA_FLOW_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "devices/cpu/compute_pool.h"
#include "devices/time_source.h"

namespace troupe::data {

class Activity;
class Meter;

/// Threads, and the means to make all actors of an iterator stop for a while or for good.
/// Thread-safe.
class Flow {
 public:
  /// So many threads play actors; they start with the first task.
  Flow(int threads, TimeSource* clock) : threads_(threads), clock_(clock) {}
  /// `Stop` has been called.
  ~Flow();

  int threads() const { return threads_; }
  TimeSource* clock() const { return clock_; }

  /// For who has entered, as an activity that plays has: one more who plays.
  void Enter();
  void Leave();
  /// Queues a task; dropped when `Stop` has returned.
  void Submit(PoolTask* task);

  /// Nobody plays when this has returned, until `Resume`, which wakes all. Not for who plays.
  void Pause();
  void Resume();
  /// For good. The first half lets go of those who wait, the second waits for those who play.
  void BeginStop();
  void Stop();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  /// True on a thread of the flow's own.
  bool OnOwnThread();

  /// Meters in the order in which the stages were made: each before those that it pulls.
  void Add(Meter* meter);
  void Remove(Meter* meter);
  template <typename F>
  void ForEachMeter(F f) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Meter* meter : meters_) f(meter);
  }

 private:
  friend class Activity;
  /// An activity begins to play; false, and it is idle: not now, as the flow is paused or stopped.
  bool Enter(Activity* activity);

  const int threads_;
  TimeSource* const clock_;
  std::mutex mutex_;
  std::condition_variable nobody_plays_;
  int playing_ = 0;
  int pauses_ = 0;
  bool closed_ = false;  ///< There will be no threads any more.
  std::atomic<bool> stopped_{false};
  std::unique_ptr<ComputePool> pool_;
  std::set<Activity*> activities_;
  std::vector<Meter*> meters_;
};

/// An actor without a queue: all that it can be told is to look again at what it shares with
/// others. Played by one thread at a time, a thread of the flow unless it says otherwise.
class Activity : public PoolTask {
 public:
  explicit Activity(Flow* flow);
  ~Activity() override;

  /// It plays soon, or once more if it plays now. Any thread; must not hold what `Play` locks.
  void Wake();
  /// Nobody plays or is about to. Once true it remains so until somebody wakes it.
  bool idle() const { return state_.load(std::memory_order_acquire) == State::kIdle; }
  /// What is pulled just now is timed.
  bool measuring() const { return measuring_; }

  Flow* flow() const { return flow_; }

 protected:
  /// Goes on as far as it can. Does not wait, but for files and functions of the application.
  virtual void Play() noexcept = 0;
  /// Before each pull: some are timed.
  void Tick();
  /// Somebody must call `Run`.
  virtual void Schedule() { flow_->Submit(this); }
  /// Plays on this thread if nobody does; else whoever plays will look again.
  void PlayHere();
  void Run() noexcept override;

 private:
  friend class Flow;
  enum class State : uint8_t { kIdle, kScheduled, kPlays, kPlaysAgain };

  /// True: it was idle, and must be scheduled by the caller.
  bool Mark();

  Flow* const flow_;
  std::atomic<State> state_{State::kIdle};
  bool measuring_ = false;
  uint32_t ticks_ = 0;
};

/// What is counted of a stage. Thread-safe.
class Meter {
 public:
  static constexpr int kEvery = 16;  ///< One of so many pulls is timed.

  /// `player` pulls the stage; `parent` is the stage that does, which may be nullptr.
  Meter(Activity* player, Meter* parent, std::string name);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void AddElements(int64_t n) { Add(&elements_, n); }
  void AddNanoseconds(int64_t ns) { Add(&ns_, ns); }
  void AddStarved() { Add(&starved_, 1); }
  /// Elements of this stage, and so of those after it, come in another order each time.
  void SetUnordered() {
    for (Meter* meter = this; meter != nullptr; meter = meter->parent_) {
      meter->unordered_.store(true, std::memory_order_relaxed);
    }
  }
  void SetBad(int64_t n) { bad_.store(n, std::memory_order_relaxed); }
  void SetFullness(int64_t held, int64_t capacity, int parallel = 0) {
    held_.store(held, std::memory_order_relaxed);
    capacity_.store(capacity, std::memory_order_relaxed);
    parallel_.store(parallel, std::memory_order_relaxed);
  }

  const std::string& name() const { return name_; }
  Activity* player() const { return player_; }
  Meter* parent() const { return parent_; }
  int64_t elements() const { return elements_.load(std::memory_order_relaxed); }
  int64_t ns() const { return ns_.load(std::memory_order_relaxed); }
  int64_t starved() const { return starved_.load(std::memory_order_relaxed); }
  int64_t bad() const { return bad_.load(std::memory_order_relaxed); }
  int64_t held() const { return held_.load(std::memory_order_relaxed); }
  int64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  bool unordered() const { return unordered_.load(std::memory_order_relaxed); }
  int parallel() const { return parallel_.load(std::memory_order_relaxed); }

 private:
  static void Add(std::atomic<int64_t>* to, int64_t n) {
    to->fetch_add(n, std::memory_order_relaxed);
  }

  Activity* const player_;
  Meter* const parent_;
  const std::string name_;
  std::atomic<int64_t> elements_{0}, ns_{0}, starved_{0}, bad_{0}, held_{0}, capacity_{0};
  std::atomic<int> parallel_{0};
  std::atomic<bool> unordered_{false};
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_FLOW_H_
