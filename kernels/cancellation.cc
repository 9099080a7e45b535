#include "kernels/cancellation.h"

#include <utility>
#include <vector>

namespace troupe {

absl::Status CancellationToken::status() const {
  if (!cancelled()) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

void CancellationToken::Cancel(absl::Status reason) noexcept {
  std::map<uint64_t, std::function<void()>> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_.load(std::memory_order_relaxed)) return;
    reason_ = reason.ok() ? absl::Status(absl::StatusCode::kCancelled, "") : std::move(reason);
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  // Without the lock: a callback may well ask for `status` or finish the step.
  for (auto& [id, callback] : callbacks) callback();
}

bool CancellationToken::Register(std::function<void()> callback, uint64_t* id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled_.load(std::memory_order_relaxed)) return false;
  *id = next_id_++;
  callbacks_.emplace_hint(callbacks_.end(), *id, std::move(callback));
  return true;
}

bool CancellationToken::Deregister(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  return callbacks_.erase(id) > 0;
}

void CancellationToken::Reset() {
  std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.clear();
  reason_ = absl::OkStatus();
  cancelled_.store(false, std::memory_order_release);
}

}  // namespace troupe
