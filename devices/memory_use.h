/// What fills memory: for the errors of those who get none.
#ifndef TROUPE_DEVICES_MEMORY_USE_H_
#define TROUPE_DEVICES_MEMORY_USE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "devices/element_type.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A value that takes up memory.
struct LargeValue {
  size_t bytes = 0;
  std::string what;    ///< "float [64,64]"; "" if that is not known.
  std::string holder;  ///< "node a/b (MatMul)", "variable w"; "" if that is not known.
};
/// The largest few, those that are alike in one: "4096 bytes (float [1024], node a (Neg)), 2 of
/// 64 bytes". "" if there are none.
std::string DescribeLargest(std::vector<LargeValue> values);

/// The blocks that an allocator has handed out. An allocator of a device's memory derives from it,
/// as well, and has its errors say what fills the memory. Thread-safe.
class LiveBlocks {
 public:
  LiveBlocks();
  virtual ~LiveBlocks();
  LiveBlocks(const LiveBlocks&) = delete;
  LiveBlocks& operator=(const LiveBlocks&) = delete;

  /// `DescribeLargest` of all blocks.
  std::string Largest() const;
  /// What else is to be said to one who got no memory; "" if nothing is.
  virtual std::string Remark() const { return ""; }
  /// Why there will never be memory again, if so: the device is lost.
  virtual absl::Status Broken() const { return absl::OkStatus(); }

 protected:
  /// A block has been handed out, for what this thread allocates. One that there is no memory to
  /// note is not listed.
  void Add(const void* block, size_t bytes) noexcept;
  /// Before the block can be had again.
  void Remove(const void* block) noexcept;

 private:
  struct TROUPE_LOCAL Block;
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
};

}  // namespace troupe
TROUPE_EXPORT_END

// For the library itself.
namespace troupe {

/// What a thread allocates, for whom.
struct AllocationPurpose {
  /// All nodes of a plan, in words, and which one it is; nullptr: none. Blocks share them, and may
  /// outlive the plan.
  const std::shared_ptr<const std::vector<std::string>>* nodes = nullptr;
  int32_t node = 0;
  ElementType type = ElementType::kInvalid;
  int64_t num_elements = 0;

  static AllocationPurpose& OfThisThread();
};

/// Says for whom this thread allocates from now on, until the end of the scope.
class ScopedAllocationPurpose {
 public:
  explicit ScopedAllocationPurpose(const AllocationPurpose& purpose)
      : before_(AllocationPurpose::OfThisThread()) {
    AllocationPurpose::OfThisThread() = purpose;
  }
  ~ScopedAllocationPurpose() { AllocationPurpose::OfThisThread() = before_; }
  ScopedAllocationPurpose(const ScopedAllocationPurpose&) = delete;
  ScopedAllocationPurpose& operator=(const ScopedAllocationPurpose&) = delete;

 private:
  const AllocationPurpose before_;
};

/// ResourceExhausted, of memory whose allocator keeps no list: whoever holds values may add what
/// they are.
absl::Status OutOfMemory(std::string_view message);
/// True for such an error, as long as nothing has been added to it.
bool IsOutOfMemory(const absl::Status& status);

}  // namespace troupe

#endif  // TROUPE_DEVICES_MEMORY_USE_H_
