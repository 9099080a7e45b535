/// Reference-counted memory behind tensors.
#ifndef TROUPE_DEVICES_BUFFER_H_
#define TROUPE_DEVICES_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "devices/allocator.h"
#include "devices/element_type.h"
#include "devices/export.h"
#include "devices/ref_counted.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A block of memory shared by the tensors that view it. A holder writes to it only while it is the
/// sole owner (`unique`). Thread-safe but for the bytes themselves.
class Buffer : public RefCounted {
 public:
  /// Memory for `count` elements: plain types uninitialised; others default constructed, and on the
  /// host whatever the allocator is. nullptr if the allocator refuses or the size overflows.
  static RefPtr<Buffer> Allocate(Allocator* allocator, ElementType type, int64_t count);

  /// Wraps foreign memory of a plain type; `release(data, context)` runs when the last user is
  /// gone.
  static RefPtr<Buffer> Wrap(void* data, size_t bytes, void (*release)(void* data, void* context),
                             void* context, MemorySpace space = MemorySpace::kHost);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  MemorySpace space() const { return space_; }

 protected:
  Buffer(void* data, size_t bytes, MemorySpace space) : data_(data), bytes_(bytes), space_(space) {}

 private:
  void* data_;
  size_t bytes_;
  MemorySpace space_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_BUFFER_H_
