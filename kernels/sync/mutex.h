/// Mutual exclusion of steps.
#ifndef TROUPE_KERNELS_SYNC_MUTEX_H_
#define TROUPE_KERNELS_SYNC_MUTEX_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

class Mutex;

struct MutexOptions {
  using Machine = Mutex;
};

/// Held by one at a time. Those who ask get it in the order in which they came; whoever has it is
/// asked for nothing: it is given back when the last copy of the `MutexHold` goes, as at the end of
/// a step that was cancelled. Thread-safe.
class Mutex : public WaitingResource {
 public:
  static constexpr char kKind[] = "mutex";

  class LockCall : public Call {
   public:
    explicit LockCall(Mutex* mutex) : Call(mutex, 0) {}

   protected:
    /// Output 0: a variant that holds a `MutexHold`.
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::StatusOr<Progress> Serve() override;
    void Withdraw() override;

    /// Given back by a call that ends before it has been concluded.
    std::shared_ptr<const class MutexHold> hold_;
  };

  Mutex(std::string name, const MutexOptions&) : WaitingResource(std::move(name)) {}

  std::string DebugString() const override { return StrCat("mutex '", name(), "'"); }
  bool held() const { return held_.load(std::memory_order_acquire); }

  /// `done` gets one variant, which holds a `std::shared_ptr<const MutexHold>`.
  void Lock(CancellationToken* token, Done done) {
    Submit(std::make_unique<CallbackCall<LockCall>>(this, token, 1, std::move(done)));
  }

 private:
  friend class MutexHold;
  std::atomic<bool> held_{false};
};

/// Who has one holds the mutex until it is destroyed.
class MutexHold {
 public:
  explicit MutexHold(RefPtr<Mutex> mutex) : mutex_(std::move(mutex)) {}
  MutexHold(const MutexHold&) = delete;
  MutexHold& operator=(const MutexHold&) = delete;
  /// The next one who waits gets the mutex, on this thread.
  ~MutexHold() {
    mutex_->held_.store(false, std::memory_order_release);
    mutex_->LookAgain();
  }
  const std::string& name() const { return mutex_->name(); }

 private:
  const RefPtr<Mutex> mutex_;
};

/// What a variant holds that is a lock.
using MutexLockValue = std::shared_ptr<const MutexHold>;

}  // namespace troupe

#endif  // TROUPE_KERNELS_SYNC_MUTEX_H_
