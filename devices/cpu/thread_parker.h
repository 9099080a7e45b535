/// How a thread waits for what others do.
#ifndef TROUPE_DEVICES_CPU_THREAD_PARKER_H_
#define TROUPE_DEVICES_CPU_THREAD_PARKER_H_

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"

namespace troupe {

class ComputePool;

/// One waiting thread, at most one waker at a time. The waker may go on touching the parker after
/// the waiter has been told, so a parker belongs to its thread, not to what is waited for.
class ThreadParker {
 public:
  enum class Word {
    kNone,
    kOver,  ///< What was waited for is over.
    kPlay,  ///< The waiter holds the token now and is to play.
  };

  /// The calling thread's parker.
  static ThreadParker* OfThisThread() {
    thread_local ThreadParker parker;
    return &parker;
  }

  /// Has another thread run.
  static void Yield();

  void Wake(Word word) {
    std::lock_guard<std::mutex> lock(mutex_);
    word_ = word;
    condition_.notify_one();
  }
  /// Before it blocks: does a piece of the pool's work if there is some (`pool` may be nullptr), or
  /// waits a moment for what is to come. False: nothing has been done, and nothing came.
  static bool HelpOrSpin(ComputePool* pool, absl::FunctionRef<bool()> come,
                         uint64_t spin_ns = kSpinNs);
  /// About as long as waking a thread takes.
  static constexpr uint64_t kSpinNs = 30'000;
  /// For who polls a device: as long as a short step takes there.
  static constexpr uint64_t kPollNs = 1'000'000;
  /// Blocks until woken, and takes the word.
  Word Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [this] { return word_ != Word::kNone; });
    return std::exchange(word_, Word::kNone);
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  Word word_ = Word::kNone;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_THREAD_PARKER_H_
