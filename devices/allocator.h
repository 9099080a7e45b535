/// Where tensors' memory comes from.
#ifndef TROUPE_DEVICES_ALLOCATOR_H_
#define TROUPE_DEVICES_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Which processor can address a block of memory.
enum class MemorySpace : uint8_t {
  kHost,    ///< Ordinary memory of this process.
  kPinned,  ///< Host memory that a device can copy from and to without staging.
  kDevice,  ///< Memory that only the kernels and copies of one device can address.
};

/// What an allocator has handed out, in bytes of requested size rounded up to its granularity.
struct AllocatorStats {
  int64_t num_allocs = 0;
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_alloc_size = 0;
  int64_t bytes_cached = 0;  ///< Free blocks kept for reuse.
  int64_t bytes_limit = 0;   ///< 0: none.
};

/// Hands out blocks of memory. Thread-safe.
///
/// Blocks of `MemorySpace::kDevice` are ordered by their device's compute stream: `Free` may be
/// called while kernels that were enqueued before still use the block, and whoever gets it next
/// uses it on that stream. Another stream waits for an event of the compute stream before it
/// touches a new block, and has the compute stream wait for it before the block is freed.
class Allocator {
 public:
  /// Every block begins at a multiple of this many bytes.
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  virtual std::string_view name() const = 0;
  virtual MemorySpace space() const = 0;
  /// A block of at least `bytes` bytes, or nullptr if the limit or the memory is exhausted.
  virtual void* Allocate(size_t bytes) = 0;
  /// Gives a block back; `bytes` as it was asked for.
  virtual void Free(void* block, size_t bytes) = 0;
  virtual AllocatorStats stats() const = 0;
  /// Refuses what would raise the bytes in use above `bytes`; 0: no limit.
  virtual void set_limit(int64_t bytes) = 0;
  /// Returns cached blocks to the system.
  virtual void Trim() {}
};

/// The process's host allocator (caching, never destroyed).
Allocator* HostAllocator();

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_ALLOCATOR_H_
