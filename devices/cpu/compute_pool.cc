#include "devices/cpu/compute_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/cpu/block_signals.h"
#include "devices/cpu/flush_denormals.h"

namespace troupe {
namespace {

void FutexWait(std::atomic<uint32_t>* word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr,
          0);
}

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int Cores() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Calls `ready` until it is true or `limit` has passed; says whether it became true.
template <typename Ready>
bool SpinUntil(std::chrono::microseconds limit, const Ready& ready) {
  if (ready()) return true;
  if (limit.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      Pause();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The pool that the thread belongs to, if any.
constinit thread_local const void* pool_of_worker = nullptr;

/// A ParallelFor under way. It lives on its caller's stack: threads join and leave under the pool's
/// lock or through `helpers`, and the caller leaves when the loop is unlinked and nobody is inside.
/// It shares no cache line with the rest of the stack, nor what all threads write with what they
/// read.
struct alignas(64) Loop {
  int64_t total;
  int64_t grain;
  int64_t chunks;
  absl::FunctionRef<void(int64_t, int64_t)> body;
  alignas(64) std::atomic<int64_t> taken{0};
  std::atomic<int64_t> taken_in_front{0};
  std::atomic<int64_t> taken_behind{0};
  std::atomic<uint32_t> helpers{0};
  std::atomic<bool> failed{false};
  std::exception_ptr exception;  ///< Written by whoever set `failed`.
  bool linked = true;
  Loop* previous_loop = nullptr;
  Loop* next_loop = nullptr;

  bool exhausted() const { return taken.load(std::memory_order_relaxed) >= chunks; }
  /// Workers take ranges from the back and others from the front: with the same loop in the next
  /// step most ranges come to the core that holds their data.
  bool RunChunk() noexcept {
    if (taken.fetch_add(1, std::memory_order_relaxed) >= chunks) return false;
    const int64_t chunk = pool_of_worker != nullptr
                              ? chunks - 1 - taken_behind.fetch_add(1, std::memory_order_relaxed)
                              : taken_in_front.fetch_add(1, std::memory_order_relaxed);
    const int64_t begin = chunk * grain;
    if (failed.load(std::memory_order_relaxed)) return true;
    try {
      body(begin, std::min(grain, total - begin) + begin);
    } catch (...) {
      if (!failed.exchange(true)) exception = std::current_exception();
    }
    return true;
  }
};

/// First in, first out. The pool's lock is held by whoever changes it.
struct TaskQueue {
  PoolTask* head = nullptr;
  PoolTask** tail = &head;
  std::atomic<int> size{0};
};

}  // namespace

struct ComputePool::Impl {
  std::chrono::microseconds spin{0};

  std::mutex mutex;
  TaskQueue tasks, long_tasks;
  Loop* loops = nullptr;  // newest first, so that nested loops finish before outer ones go on

  std::atomic<int> open_loops{0};
  std::atomic<int> spinners{0};
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> epoch{0};
  std::atomic<bool> stopping{false};

  bool HasWork() const {
    return tasks.size.load() > 0 || open_loops.load() > 0 || long_tasks.size.load() > 0;
  }

  /// Wakes sleepers for `items` new pieces of work that no spinning worker will see. A worker that
  /// stops spinning looks for work once more after it has said so (all of this is sequentially
  /// consistent), therefore no piece is overlooked.
  void Wake(int items) {
    const int wanted = items - spinners.load();
    if (wanted <= 0 || sleepers.load() == 0) return;
    epoch.fetch_add(1);
    FutexWake(&epoch, wanted);
  }

  /// With the lock held.
  static void Push(TaskQueue* queue, PoolTask* task) {
    task->next_ = nullptr;
    *queue->tail = task;
    queue->tail = &task->next_;
    queue->size.fetch_add(1);
  }

  PoolTask* Pop(TaskQueue* queue) {
    if (queue->size.load() == 0) return nullptr;
    std::lock_guard lock(mutex);
    PoolTask* task = queue->head;
    if (task == nullptr) return nullptr;
    queue->head = task->next_;
    if (queue->head == nullptr) queue->tail = &queue->head;
    queue->size.fetch_sub(1);
    return task;
  }

  void Unlink(Loop* loop) {
    if (!loop->linked) return;
    loop->linked = false;
    if (loop->previous_loop != nullptr) {
      loop->previous_loop->next_loop = loop->next_loop;
    } else {
      loops = loop->next_loop;
    }
    if (loop->next_loop != nullptr) loop->next_loop->previous_loop = loop->previous_loop;
    open_loops.fetch_sub(1);
  }

  /// Joins a loop that has ranges left, for one range or for all; false if there is none.
  bool HelpLoop(bool one_chunk) {
    if (open_loops.load() == 0) return false;
    Loop* loop;
    {
      std::lock_guard lock(mutex);
      while (loops != nullptr && loops->exhausted()) Unlink(loops);
      loop = loops;
      if (loop == nullptr) return false;
      loop->helpers.fetch_add(1, std::memory_order_relaxed);
    }
    bool ran = loop->RunChunk();
    if (!one_chunk) {
      while (loop->RunChunk()) {
      }
    }
    // Nothing of `loop` may be read after this; waking an address that is no longer a loop is
    // harmless.
    if (loop->helpers.fetch_sub(1) == 1) FutexWake(&loop->helpers, INT_MAX);
    return ran;
  }

  void WorkerMain(int index) {
    char name[16];
    std::snprintf(name, sizeof(name), "troupe-cpu-%d", index);
    pthread_setname_np(pthread_self(), name);
    const ScopedFlushDenormals flush;
    pool_of_worker = this;
    while (true) {
      if (PoolTask* task = Pop(&tasks)) {
        task->Run();
        continue;
      }
      if (HelpLoop(/*one_chunk=*/false)) continue;
      if (PoolTask* task = Pop(&long_tasks)) {
        task->Run();
        continue;
      }
      if (stopping.load()) return;
      const auto ready = [this] { return HasWork() || stopping.load(); };
      spinners.fetch_add(1);
      const bool found = SpinUntil(spin, ready);
      spinners.fetch_sub(1);
      if (found) continue;
      sleepers.fetch_add(1);
      const uint32_t seen = epoch.load();
      if (!ready()) FutexWait(&epoch, seen);
      sleepers.fetch_sub(1);
    }
  }
};

ComputePool::ComputePool(int threads, int spin_microseconds)
    : threads_(threads > 0 ? threads : Cores()), impl_(std::make_shared<Impl>()) {
  // With fewer cores than threads, a spinning thread would take the time of one that has work.
  if (threads_ <= Cores()) impl_->spin = std::chrono::microseconds(std::max(0, spin_microseconds));
  try {
    for (int i = 1; i < threads_; ++i) AddWorker(i);
  } catch (...) {
    Stop();
    throw;
  }
}

void ComputePool::AddWorker(int index) {
  const ScopedBlockSignals blocked;
  workers_.emplace_back([impl = impl_, index] { impl->WorkerMain(index); });
}

ComputePool::~ComputePool() { Stop(); }

void ComputePool::Stop() {
  const bool on_worker = OnWorker();
  impl_->stopping.store(true);
  impl_->epoch.fetch_add(1);
  FutexWake(&impl_->epoch, INT_MAX);
  for (std::thread& worker : workers_) on_worker ? worker.detach() : worker.join();
}

void ComputePool::Submit(PoolTask* task) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->Push(&impl_->tasks, task);
  }
  impl_->Wake(queued());
}

void ComputePool::SubmitLong(PoolTask* task) {
  // All of it under the lock: the task may let go of the pool.
  std::lock_guard lock(impl_->mutex);
  if (workers_.empty()) AddWorker(1);
  impl_->Push(&impl_->long_tasks, task);
  impl_->Wake(impl_->long_tasks.size.load());
}

bool ComputePool::OnWorker() const { return pool_of_worker == impl_.get(); }

bool ComputePool::RunOne() {
  if (PoolTask* task = impl_->Pop(&impl_->tasks)) {
    const ScopedFlushDenormals flush;
    task->Run();
    return true;
  }
  if (impl_->open_loops.load() == 0) return false;
  const ScopedFlushDenormals flush;
  return impl_->HelpLoop(/*one_chunk=*/true);
}

int ComputePool::queued() const { return impl_->tasks.size.load(std::memory_order_relaxed); }

bool ComputePool::has_awake_worker() const {
  return impl_->spinners.load(std::memory_order_relaxed) > 0;
}

void ComputePool::ParallelFor(int64_t total, int64_t grain,
                              absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return;
  grain = std::clamp<int64_t>(grain, 1, total);
  const int64_t chunks = (total - 1) / grain + 1;
  if (chunks == 1 || threads_ == 1) {
    for (int64_t i = 0; i < chunks; ++i) {
      const int64_t begin = i * grain;
      body(begin, std::min(grain, total - begin) + begin);
    }
    return;
  }
  Loop loop{total, grain, chunks, body};
  {
    std::lock_guard lock(impl_->mutex);
    loop.next_loop = impl_->loops;
    if (impl_->loops != nullptr) impl_->loops->previous_loop = &loop;
    impl_->loops = &loop;
    impl_->open_loops.fetch_add(1);
  }
  impl_->Wake(static_cast<int>(std::min<int64_t>(chunks, threads_) - 1));
  while (loop.RunChunk()) {
  }
  {
    std::lock_guard lock(impl_->mutex);
    impl_->Unlink(&loop);
  }
  // Nobody can join any more; those inside are running ranges that they took.
  const auto alone = [&loop] { return loop.helpers.load(std::memory_order_acquire) == 0; };
  while (!SpinUntil(impl_->spin, alone)) {
    const uint32_t inside = loop.helpers.load(std::memory_order_acquire);
    if (inside != 0) FutexWait(&loop.helpers, inside);
  }
  if (loop.exception) std::rethrow_exception(loop.exception);
}

}  // namespace troupe
