/// Iterators of published datasets as resources of graphs.
#ifndef TROUPE_KERNELS_DATASET_ITERATOR_RESOURCE_H_
#define TROUPE_KERNELS_DATASET_ITERATOR_RESOURCE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"
#include "kernels/dataset/published_datasets.h"

namespace troupe {

/// The iterator that steps share; begun by whoever needs it first. Thread-safe.
class IteratorResource final : public Resource {
 public:
  /// `device`, which may be null and outlives the container that has the resource, is where
  /// elements are wanted.
  IteratorResource(std::string dataset, Device* device)
      : dataset_(std::move(dataset)), device_(device) {}
  ~IteratorResource() override { Abandon(); }

  const std::string& dataset() const { return dataset_; }
  Device* device() const { return device_; }
  std::string DebugString() const override { return StrCat("DatasetIterator[", dataset_, "]"); }

  /// Begins if nobody has yet. NotFound: no such dataset.
  absl::StatusOr<std::shared_ptr<ElementIterator>> Get() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (iterator_ == nullptr) TROUPE_RETURN_IF_ERROR(BeginLocked());
    return iterator_;
  }
  /// Begins anew, at a position if there is one. Who waits for an element gets Cancelled.
  absl::Status Begin(const std::string* position) {
    std::shared_ptr<ElementIterator> before;  // Ends without the lock.
    {
      std::lock_guard<std::mutex> lock(mutex_);
      before = std::move(iterator_);
      TROUPE_RETURN_IF_ERROR(BeginLocked());
      if (position != nullptr) TROUPE_RETURN_IF_ERROR(iterator_->Restore(*position));
    }
    if (before != nullptr) before->Cancel();
    return absl::OkStatus();
  }
  /// Of the iterator, if it has begun.
  void AddStatsTo(RunMetadata* metadata) {
    std::shared_ptr<ElementIterator> iterator;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      iterator = iterator_;
    }
    if (iterator != nullptr) iterator->AddStatsTo(metadata);
  }
  /// The container lets go of it.
  void Abandon() {
    std::shared_ptr<ElementIterator> ended;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended = std::move(iterator_);
      abandoned_ = true;
    }
    // A step that holds the iterator may outlive the device, on which elements are.
    if (ended != nullptr) ended->Finish();
  }

 private:
  absl::Status BeginLocked() {
    if (abandoned_) return absl::CancelledError(StrCat(DebugString(), " has been destroyed"));
    TROUPE_ASSIGN_OR_RETURN(const PublishedDatasets::Make make,
                            PublishedDatasets::Global()->Find(dataset_));
    TROUPE_ASSIGN_OR_RETURN(iterator_, make(device_));
    return absl::OkStatus();
  }

  const std::string dataset_;
  Device* const device_;
  std::mutex mutex_;
  std::shared_ptr<ElementIterator> iterator_;
  bool abandoned_ = false;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATASET_ITERATOR_RESOURCE_H_
