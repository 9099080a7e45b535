/// What kernels of a device with a time of its own find out after their calls have returned.
#ifndef TROUPE_KERNELS_LATE_ERRORS_H_
#define TROUPE_KERNELS_LATE_ERRORS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/tensor.h"
#include "kernels/late_record.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The errors of one executor's work on a device. A kernel that enqueues takes a `Reporter` along
/// with its work. What fails ends the step at the next copy to the host, so that nothing on the
/// host sees what came of it, or at the step's end. Thread-safe but for `Calling`.
///
/// Work that runs on the host tells a `Reporter`. Work that cannot call the host takes a
/// `LateCheck` along and fills in the record that all work of the executor shares.
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

  /// Makes the error from what the device found: `LateRecord::values`.
  using Explain = absl::Status (*)(const int64_t* values);
  /// The same for work that writes to the executor's record, before the stream's next event is
  /// reached. The record is in memory of `pinned`, which the device reaches. ResourceExhausted.
  absl::StatusOr<LateCheck> Check(Allocator* pinned, Explain explain) {
    LateRecord* record = all_->record_.load(std::memory_order_acquire);
    if (record == nullptr) {
      absl::StatusOr<LateRecord*> made = all_->MakeRecord(pinned);
      if (!made.ok()) return made.status();
      record = *made;
    }
    return LateCheck{record, reinterpret_cast<void (*)()>(explain), calling_};
  }

  /// True if something has failed, here or in the step that calls this one.
  bool any() const { return all_->AnyHere() || all_->OuterFailed(); }

  /// `all`: those of all kernels, if this object is for one that may be called at any time.
  explicit LateErrors(LateErrors* all = nullptr) : all_(all != nullptr ? all : this) {}

  /// By the executor, before a kernel is called.
  void Calling(int32_t node) { calling_ = node; }
  /// Those of the step that calls this one, with arguments that it has enqueued, and outlives it;
  /// nullptr: none.
  void set_outer(const LateErrors* outer) { outer_ = outer; }
  /// The node that failed first, and why; -1 if it is a node of the calling step, which knows.
  std::pair<int32_t, absl::Status> first() const {
    if (!AnyHere()) return {-1, absl::CancelledError("what the call was given has failed")};
    if (const LateRecord* record = CompleteRecord()) {
      return {record->node, reinterpret_cast<Explain>(record->explain)(record->values)};
    }
    std::lock_guard<std::mutex> lock(mutex_);
    return {node_, status_};
  }
  /// For the next step; the device has finished with the last one.
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (LateRecord* record = record_.load(std::memory_order_relaxed)) *record = LateRecord();
    any_.store(false, std::memory_order_relaxed);
    status_ = absl::OkStatus();
  }

 private:
  bool AnyHere() const {
    return any_.load(std::memory_order_acquire) || CompleteRecord() != nullptr;
  }
  bool OuterFailed() const { return outer_ != nullptr && outer_->any(); }
  void Report(int32_t node, const absl::Status& status) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status.ok() || any_.load(std::memory_order_relaxed)) return;
    node_ = node;
    status_ = status;
    any_.store(true, std::memory_order_release);
  }

  absl::StatusOr<LateRecord*> MakeRecord(Allocator* pinned) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory_.valid()) return record_.load(std::memory_order_relaxed);
    absl::StatusOr<Tensor> memory =
        Tensor::Allocate(ElementType::kUint8, Shape({sizeof(LateRecord)}), pinned);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    auto* const record = new (memory_.mutable_raw_data()) LateRecord();
    record_.store(record, std::memory_order_release);
    return record;
  }
  /// The record if the device has filled it in.
  const LateRecord* CompleteRecord() const {
    LateRecord* const record = record_.load(std::memory_order_acquire);
    if (record == nullptr) return nullptr;
    const bool complete = std::atomic_ref(record->complete).load(std::memory_order_acquire) != 0;
    return complete ? record : nullptr;
  }

  LateErrors* const all_;
  const LateErrors* outer_ = nullptr;
  int32_t calling_ = -1;
  std::atomic<bool> any_{false};
  std::atomic<LateRecord*> record_{nullptr};
  mutable std::mutex mutex_;
  Tensor memory_;  ///< Of the record.
  int32_t node_ = -1;
  absl::Status status_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_LATE_ERRORS_H_
