/// The host allocator: size classes, per-thread free lists for small blocks, a bounded cache of
/// large ones.
///
/// Small blocks (up to 64 KiB) come from lists that belong to the calling thread, without locks or
/// atomic read-modify-writes; a list that grows too long gives half of itself to a central list,
/// and all of them at the thread's end. The scheme is tcmalloc's (S. Ghemawat, P. Menage).
/// Large blocks are mapped one by one and kept, up to a bound, when they are freed; the class
/// that was idle longest is unmapped first.
#ifndef TROUPE_DEVICES_CACHING_ALLOCATOR_H_
#define TROUPE_DEVICES_CACHING_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "devices/allocator.h"

namespace troupe {

/// Thread-safe; one per process (its per-thread lists are), never destroyed. Use `HostAllocator()`.
///
/// `bytes_in_use` is exact when no other thread allocates at the same time, and always exact
/// against a limit. The peak is sampled whenever a small block is not found in the thread's own
/// list, a large one is asked for, or statistics are: it may miss at most what one thread's lists
/// hold.
class CachingAllocator final : public Allocator {
 public:
  static constexpr size_t kMaxSmall = 64 << 10;
  /// Freed large blocks that are kept.
  static constexpr int64_t kMaxCachedBytes = 256 << 20;

  /// The only instance.
  static CachingAllocator* Get();

  std::string_view name() const override { return "host"; }
  MemorySpace space() const override { return MemorySpace::kHost; }
  void* Allocate(size_t bytes) override;
  void Free(void* block, size_t bytes) override;
  AllocatorStats stats() const override;
  void set_limit(int64_t bytes) override;
  void Trim() override;

  /// The size of the block that a request gets; 0 if the request is absurd.
  static size_t RoundUp(size_t bytes);

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr int kSmallClasses = 40;
  /// Four steps to the doubling, up to 2^48.
  static constexpr int kLargeClasses = 4 * (48 - 16);

  struct LocalList {
    FreeBlock* head = nullptr;
    uint32_t count = 0;
  };
  struct ThreadCache;
  struct ThreadExit;

  struct CentralList {
    std::mutex mutex;
    FreeBlock* head = nullptr;
    std::atomic<int64_t> count{0};
  };
  struct LargeList {
    FreeBlock* head = nullptr;
    uint64_t last_use = 0;
  };

  CachingAllocator();
  /// nullptr if the thread has none: it ends, or there was no memory for one.
  static ThreadCache* Cache();
  static size_t LargeClass(size_t bytes);
  static size_t LargeSize(size_t large_class);

  ThreadCache* AddThreadLocked();
  void* AllocateSmallSlow(ThreadCache* cache, size_t index);
  void* AllocateUncached(size_t index);
  void FreeUncached(void* block, size_t index);
  FreeBlock* TakeCentral(size_t index, uint32_t wanted, uint32_t* got);
  void GiveCentral(size_t index, FreeBlock* head, FreeBlock* tail, uint32_t count);
  void* CarveSmall(size_t size);
  void FlushHalf(ThreadCache* cache, size_t index);
  void RetireThread(ThreadCache* cache);
  void* AllocateLarge(size_t bytes);
  void FreeLarge(void* block, size_t bytes);
  /// Unmaps idle classes until `bytes` more fit into the cache.
  void EvictFor(int64_t bytes);

  int64_t InUseLocked() const;
  bool AdmitLocked(int64_t bytes);

  std::atomic<int64_t> limit_{0};

  /// Guards the threads, the large blocks and the figures.
  mutable std::mutex mutex_;
  std::vector<ThreadCache*> threads_;
  std::vector<ThreadCache*> idle_caches_;
  int64_t retired_in_use_ = 0;  ///< Balance of ended threads and of blocks freed without a cache.
  int64_t retired_allocs_ = 0;
  int64_t large_in_use_ = 0;
  int64_t large_cached_ = 0;
  int64_t large_allocs_ = 0;
  int64_t largest_ = 0;
  mutable int64_t peak_ = 0;
  uint64_t tick_ = 0;
  std::array<LargeList, kLargeClasses> large_;

  std::array<CentralList, kSmallClasses> central_;
  std::mutex chunk_mutex_;
  char* chunk_ = nullptr;
  size_t chunk_left_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_CACHING_ALLOCATOR_H_
