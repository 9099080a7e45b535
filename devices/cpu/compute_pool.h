/// The pool of threads that runs kernels.
#ifndef TROUPE_DEVICES_CPU_COMPUTE_POOL_H_
#define TROUPE_DEVICES_CPU_COMPUTE_POOL_H_

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace troupe {

/// A unit of work that is queued without allocation: the owner embeds it and keeps it alive until
/// `Run` has begun.
class PoolTask {
 public:
  virtual ~PoolTask() = default;
  virtual void Run() noexcept = 0;

 private:
  friend class ComputePool;
  PoolTask* next_ = nullptr;
};

/// `threads - 1` worker threads; the thread that calls is the remaining one. Kernel libraries are
/// called single-threaded inside it (OpenMP is told so per thread). Idle workers spin for a moment,
/// then sleep. Thread-safe.
class ComputePool {
 public:
  /// `threads` >= 1 counts the caller; 0: as many as the machine has cores.
  /// Idle workers spin for `spin_microseconds` before they sleep (not at all if there are more
  /// threads than cores). Throws if the threads cannot be made.
  explicit ComputePool(int threads, int spin_microseconds = 30);
  /// Waits for the workers, unless it is one of them that lets go of the pool. Needs no memory.
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return threads_; }

  /// Queues a task, first in first out, and wakes a sleeping worker if there is one. With one
  /// thread (no workers) the task waits until somebody calls `RunOne`.
  void Submit(PoolTask* task);
  /// Queues a task that may take long, such as a whole step: a worker runs it, never a thread that
  /// waits for something else in `RunOne`. With one thread, a worker is started for such tasks. The
  /// task may destroy the pool.
  void SubmitLong(PoolTask* task);
  /// True on a worker of this pool.
  bool OnWorker() const;
  /// Takes the oldest task and runs it here, or if there is none helps a ParallelFor under way with
  /// one range; false if there was nothing to do.
  bool RunOne();
  /// Tasks queued and not yet begun (a hint).
  int queued() const;

  /// An idle worker is awake and would join a ParallelFor at once (a hint).
  bool has_awake_worker() const;

  /// Calls `body(begin, end)` for consecutive ranges that cover [0, total), `grain` apart (the last
  /// may be shorter), from this thread and from idle workers, and returns when all are done. The
  /// ranges depend on `total` and `grain` only, never on the number of threads, so that results are
  /// the same bits everywhere. Runs inline if there is one range or one thread. May be nested. The
  /// first exception out of `body` is rethrown here once all that has begun is over; ranges that
  /// have not begun are left out.
  void ParallelFor(int64_t total, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

 private:
  struct Impl;

  void AddWorker(int index);
  void Stop();

  int threads_;
  std::shared_ptr<Impl> impl_;  ///< Its workers share it.
  std::vector<std::thread> workers_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_COMPUTE_POOL_H_
