/// What kernels of a device with a time of its own find out after their calls have returned.
#ifndef TROUPE_KERNELS_LATE_ERRORS_H_
#define TROUPE_KERNELS_LATE_ERRORS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The errors of one executor's work on a device. A kernel that enqueues takes a `Reporter` along
/// with its work. What fails ends the step at the next copy to the host, so that nothing on the
/// host sees what came of it, or at the step's end. Thread-safe but for `Calling`.
class LateErrors {
 public:
  /// Says that a node has failed. Copyable; used before the stream's next event is reached.
  class Reporter {
   public:
    void operator()(const absl::Status& status) const noexcept { errors_->Report(node_, status); }

   private:
    friend class LateErrors;
    Reporter(LateErrors* errors, int32_t node) : errors_(errors), node_(node) {}
    LateErrors* errors_;
    int32_t node_;
  };

  /// Of the call that is being made: for its kernel.
  Reporter reporter() { return Reporter(all_, calling_); }
  /// True if something has failed.
  bool any() const { return all_->any_.load(std::memory_order_acquire); }

  /// `all`: those of all kernels, if this object is for one that may be called at any time.
  explicit LateErrors(LateErrors* all = nullptr) : all_(all != nullptr ? all : this) {}

  /// By the executor, before a kernel is called.
  void Calling(int32_t node) { calling_ = node; }
  /// The node that failed first, and why.
  std::pair<int32_t, absl::Status> first() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return {node_, status_};
  }
  /// For the next step.
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    status_ = absl::OkStatus();
  }

 private:
  void Report(int32_t node, const absl::Status& status) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status.ok() || any_.load(std::memory_order_relaxed)) return;
    node_ = node;
    status_ = status;
    any_.store(true, std::memory_order_release);
  }

  LateErrors* const all_;
  int32_t calling_ = -1;
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  int32_t node_ = -1;
  absl::Status status_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_LATE_ERRORS_H_
