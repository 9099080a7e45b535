#include "kernels/sync/mutex.h"

#include <utility>

namespace troupe {

absl::StatusOr<WaitingResource::Call::Progress> Mutex::LockCall::Serve() {
  auto* mutex = static_cast<Mutex*>(resource());
  // It would give the mutex back at once, within its own answer, to the next one that is cancelled.
  if (cancellation != nullptr && cancellation->cancelled()) return cancellation->status();
  if (mutex->held_.load(std::memory_order_acquire)) return Progress::kNone;
  // Room first: whoever has the mutex can give it back.
  auto hold = std::make_unique<MutexHold>(RefPtr<Mutex>::Share(mutex));
  mutex->held_.store(true, std::memory_order_relaxed);
  hold_ = std::move(hold);
  return Progress::kOver;
}

void Mutex::LockCall::Withdraw() { hold_.reset(); }

absl::Status Mutex::LockCall::Conclude(KernelContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(Variant(MutexLockValue(std::move(hold_)))));
  return absl::OkStatus();
}

}  // namespace troupe
