/// Datasets as kernels see them: what makes iterators, by name.
#ifndef TROUPE_KERNELS_DATASET_PUBLISHED_DATASETS_H_
#define TROUPE_KERNELS_DATASET_PUBLISHED_DATASETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

class Device;
class RunMetadata;

/// Elements, one after another; a `DatasetIterator`. Thread-safe.
class ElementIterator {
 public:
  /// False: there is no element any more.
  using Done = std::function<void(absl::StatusOr<bool> more, std::vector<Tensor> element)>;

  virtual ~ElementIterator() = default;
  /// `done` is called once, perhaps before this returns; it must not wait. The result identifies
  /// the request.
  virtual uint64_t NextAsync(Done done) = 0;
  /// True: `done` is not called any more, and no element is lost. False: it was, or is just being.
  virtual bool Forget(uint64_t request) = 0;
  /// Requests that wait, and those to come, end with Cancelled.
  virtual void Cancel() = 0;
  /// `Cancel`, and nobody is at work for it any more, nor are elements kept, when this has
  /// returned; but if it is called by one of the iterator's own threads or callbacks.
  virtual void Finish() = 0;
  /// Both wait for what is being pulled.
  virtual absl::StatusOr<std::string> Save() = 0;
  virtual absl::Status Restore(std::string_view position) = 0;
  virtual void AddStatsTo(RunMetadata* metadata) = 0;
};

/// The datasets of this process. Thread-safe.
class PublishedDatasets {
 public:
  /// An iterator for kernels of a device, which outlives it, or null. If that has a memory of its
  /// own, elements are there before they are asked for.
  using Make = std::function<absl::StatusOr<std::shared_ptr<ElementIterator>>(Device*)>;

  static PublishedDatasets* Global();

  /// AlreadyExists, InvalidArgument if the name is empty.
  absl::Status Add(const std::string& name, Make make);
  void Remove(const std::string& name);
  /// NotFound.
  absl::StatusOr<Make> Find(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Make> datasets_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATASET_PUBLISHED_DATASETS_H_
