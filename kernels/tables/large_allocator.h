/// Memory for what is read all over the place.
#ifndef TROUPE_KERNELS_TABLES_LARGE_ALLOCATOR_H_
#define TROUPE_KERNELS_TABLES_LARGE_ALLOCATOR_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace troupe {

/// An allocator for containers that asks for huge pages from 4 MiB on: a look-up in a large table
/// misses the caches once, and should not miss the translation of its address as well. Stateless.
template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  LargeAllocator(const LargeAllocator<U>&) {}  // NOLINT: a conversion, as allocators have it

  T* allocate(size_t count) {
    if (count > std::numeric_limits<size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
    const size_t bytes = count * sizeof(T);
    const bool large = bytes >= kLarge;
    const size_t alignment = large ? kHugePage : kAlignment;
    void* const memory =
        std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    // Small pages do as well.
    if (large) (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }

  bool operator==(const LargeAllocator&) const { return true; }

 private:
  static constexpr size_t kLarge = size_t{4} << 20, kHugePage = size_t{2} << 20;
  static constexpr size_t kAlignment = alignof(T) > 16 ? alignof(T) : 16;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_LARGE_ALLOCATOR_H_
