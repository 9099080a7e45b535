/// Telling everything that belongs to a step to stop.
#ifndef TROUPE_KERNELS_CANCELLATION_H_
#define TROUPE_KERNELS_CANCELLATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "absl/status/status.h"

namespace troupe {

/// Shared by all that works on one step. Cancelled at most once; the first reason wins.
/// Thread-safe.
class CancellationToken {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  /// OK while not cancelled.
  absl::Status status() const;
  /// Runs the registered callbacks on this thread. Later calls do nothing.
  void Cancel(absl::Status reason) noexcept;
  /// `callback` will run when the token is cancelled, unless deregistered before; it must not
  /// throw, for it runs when memory has run out. Returns false (and registers nothing) if it is
  /// cancelled already.
  bool Register(std::function<void()> callback, uint64_t* id);
  /// True if the callback was removed before it ran; false if it ran or is running now.
  bool Deregister(uint64_t id);
  /// Makes the token as new; nobody may be using it.
  void Reset();

 private:
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  absl::Status reason_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::function<void()>> callbacks_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_CANCELLATION_H_
