/// Threads for what may take long: plans that are built, steps that are played, callbacks of users.
#ifndef TROUPE_DEVICES_CPU_JOB_THREADS_H_
#define TROUPE_DEVICES_CPU_JOB_THREADS_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/cpu/compute_pool.h"
#include "devices/exceptions.h"

namespace troupe {

/// Thread-safe.
class JobThreads {
 public:
  explicit JobThreads(int threads) : state_(std::make_shared<State>(threads)) {}
  /// Lets go of threads that are still at work.
  ~JobThreads() { Finish(std::chrono::milliseconds(0)); }

  /// Runs `job` soon. After `Finish` it is dropped.
  void Post(std::function<void()> job) {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->pool == nullptr) return;
    state_->pool->SubmitLong(new Job(state_, std::move(job)));
    ++state_->left;
  }
  /// Waits for the jobs that were posted. False if some are still at work after `patience`: what
  /// they use is to be kept.
  bool Finish(std::chrono::milliseconds patience) {
    std::unique_lock<std::mutex> lock(state_->mutex);
    const bool idle =
        state_->changed.wait_for(lock, patience, [this] { return state_->left == 0; });
    // A worker that lets go of the pool, after the last job, does not wait for itself.
    std::shared_ptr<ComputePool> pool = std::exchange(state_->pool, nullptr);
    lock.unlock();
    return idle;
  }

 private:
  struct State {
    explicit State(int threads) : pool(std::make_shared<ComputePool>(threads + 1, 0)) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::shared_ptr<ComputePool> pool;  ///< Null at the end.
    size_t left = 0;
  };
  struct Job final : PoolTask {
    Job(std::shared_ptr<State> s, std::function<void()> r)
        : state(std::move(s)), pool(state->pool), run(std::move(r)) {}
    void Run() noexcept override {
      KeepGoing(std::exchange(run, nullptr));
      {
        std::lock_guard<std::mutex> lock(state->mutex);
        --state->left;
        state->changed.notify_all();
      }
      delete this;
    }
    const std::shared_ptr<State> state;
    const std::shared_ptr<ComputePool> pool;
    std::function<void()> run;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_JOB_THREADS_H_
