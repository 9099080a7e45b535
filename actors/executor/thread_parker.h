/// How a thread waits for an executor that others play.
#ifndef TROUPE_ACTORS_EXECUTOR_THREAD_PARKER_H_
#define TROUPE_ACTORS_EXECUTOR_THREAD_PARKER_H_

#include <condition_variable>
#include <mutex>
#include <utility>

namespace troupe {

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

  void Wake(Word word) {
    std::lock_guard<std::mutex> lock(mutex_);
    word_ = word;
    condition_.notify_one();
  }
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

#endif  // TROUPE_ACTORS_EXECUTOR_THREAD_PARKER_H_
