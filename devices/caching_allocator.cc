#include "devices/caching_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define TROUPE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_ASAN 1
#endif
#endif
#ifdef TROUPE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace troupe {
namespace {

// Multiples of the alignment up to 512, then four steps to the doubling.
constexpr size_t kSmallSizes[] = {64,    128,   192,   256,   320,   384,   448,   512,   640,
                                  768,   896,   1024,  1280,  1536,  1792,  2048,  2560,  3072,
                                  3584,  4096,  5120,  6144,  7168,  8192,  10240, 12288, 14336,
                                  16384, 20480, 24576, 28672, 32768, 40960, 49152, 57344, 65536};
constexpr size_t kNumSmallSizes = std::size(kSmallSizes);
constexpr size_t kMaxCarved =
    4096;  // larger small blocks are taken one by one, so that Trim can free them
constexpr size_t kChunkSize = 64 << 10;

struct ClassTable {
  uint8_t index[CachingAllocator::kMaxSmall / 64 + 1];
  uint8_t max_local[kNumSmallSizes];
};

constexpr ClassTable MakeClassTable() {
  ClassTable table{};
  size_t index = 0;
  for (size_t i = 0; i < std::size(table.index); ++i) {
    while (kSmallSizes[index] < i * 64) ++index;
    table.index[i] = static_cast<uint8_t>(index);
  }
  for (size_t i = 0; i < kNumSmallSizes; ++i) {
    const size_t count = (128 << 10) / kSmallSizes[i];
    table.max_local[i] = static_cast<uint8_t>(count < 4 ? 4 : count > 128 ? 128 : count);
  }
  return table;
}

constexpr ClassTable kTable = MakeClassTable();

size_t SmallClass(size_t bytes) { return kTable.index[(bytes + 63) / 64]; }

/// A cached block is out of bounds for the rest of the program, but for its link.
void Poison([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#ifdef TROUPE_ASAN
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + sizeof(void*), size - sizeof(void*));
#endif
}

void Unpoison([[maybe_unused]] void* block, [[maybe_unused]] size_t size,
              [[maybe_unused]] size_t used) {
#ifdef TROUPE_ASAN
  ASAN_UNPOISON_MEMORY_REGION(block, size);
  const size_t kept = std::max<size_t>((used + 7) / 8 * 8, sizeof(void*));
  if (kept < size) ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + kept, size - kept);
#endif
}

}  // namespace

/// What one thread holds. Counters are written by their thread only and read by all.
struct CachingAllocator::ThreadCache {
  std::array<LocalList, kSmallClasses> lists;
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> allocs{0};
  std::atomic<int64_t> cached{0};

  void Count(int64_t bytes) {
    in_use.store(in_use.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    cached.store(cached.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
  }
};

namespace {
// The fast path's pointer has neither constructor nor destructor, and a place fixed at load time.
#define TROUPE_FAST_TLS __attribute__((tls_model("initial-exec"))) thread_local
TROUPE_FAST_TLS void* tls_cache = nullptr;
TROUPE_FAST_TLS bool tls_ended = false;
}  // namespace

/// Gives the cache back when its thread ends.
struct CachingAllocator::ThreadExit {
  ThreadCache* cache = nullptr;
  ~ThreadExit() {
    tls_ended = true;  // other objects of the thread may still free blocks after this
    tls_cache = nullptr;
    if (cache != nullptr) Get()->RetireThread(cache);
  }
};

CachingAllocator::CachingAllocator() = default;

CachingAllocator* CachingAllocator::Get() {
  static CachingAllocator* const allocator = new CachingAllocator;
  return allocator;
}

Allocator* HostAllocator() { return CachingAllocator::Get(); }

CachingAllocator::ThreadCache* CachingAllocator::Cache() {
  if (tls_cache != nullptr) [[likely]]
    return static_cast<ThreadCache*>(tls_cache);
  if (tls_ended) return nullptr;
  static thread_local ThreadExit exit;
  CachingAllocator* allocator = Get();
  ThreadCache* cache;
  {
    std::lock_guard lock(allocator->mutex_);
    cache = allocator->AddThreadLocked();
  }
  if (cache == nullptr) return nullptr;
  exit.cache = cache;
  tls_cache = cache;
  return cache;
}

CachingAllocator::ThreadCache* CachingAllocator::AddThreadLocked() {
  if (threads_.size() == threads_.capacity()) {
    // Both at once, so that a thread's end needs no memory: every cache is in one of the two.
    const size_t caches = 2 * (threads_.size() + idle_caches_.size()) + 8;
    try {
      idle_caches_.reserve(caches);
      threads_.reserve(caches);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  ThreadCache* cache = nullptr;
  if (idle_caches_.empty()) {
    cache = new (std::nothrow) ThreadCache;
    if (cache == nullptr) return nullptr;
  } else {
    cache = idle_caches_.back();
    idle_caches_.pop_back();
  }
  threads_.push_back(cache);
  return cache;
}

size_t CachingAllocator::LargeClass(size_t bytes) {
  // bytes > 64 KiB, so that the top bit of bytes - 1 is at least 16.
  const size_t top = std::bit_width(bytes - 1) - 1;
  return (top - 16) * 4 + (((bytes - 1) >> (top - 2)) & 3);
}

size_t CachingAllocator::LargeSize(size_t large_class) {
  return (size_t{5} + large_class % 4) << (large_class / 4 + 14);
}

size_t CachingAllocator::RoundUp(size_t bytes) {
  if (bytes <= kMaxSmall) return kSmallSizes[SmallClass(bytes)];
  if (bytes > size_t{1} << 47) return 0;
  // Rounding a very large block up to its class would waste too much address space.
  return LargeSize(LargeClass(bytes));
}

void* CachingAllocator::Allocate(size_t bytes) {
  if (bytes > kMaxSmall) return AllocateLarge(bytes);
  const size_t index = SmallClass(bytes);
  ThreadCache* cache = Cache();
  if (cache == nullptr) [[unlikely]]
    return AllocateUncached(index);
  LocalList& list = cache->lists[index];
  if (list.head == nullptr || limit_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    void* block = AllocateSmallSlow(cache, index);
    if (block != nullptr) Unpoison(block, kSmallSizes[index], bytes);
    return block;
  }
  FreeBlock* block = list.head;
  list.head = block->next;
  --list.count;
  cache->Count(static_cast<int64_t>(kSmallSizes[index]));
  cache->allocs.store(cache->allocs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  Unpoison(block, kSmallSizes[index], bytes);
  return block;
}

void CachingAllocator::Free(void* block, size_t bytes) {
  if (block == nullptr) return;
  if (bytes > kMaxSmall) return FreeLarge(block, bytes);
  const size_t index = SmallClass(bytes);
  Unpoison(block, kSmallSizes[index], kSmallSizes[index]);
  ThreadCache* cache = Cache();
  if (cache == nullptr) [[unlikely]]
    return FreeUncached(block, index);
  LocalList& list = cache->lists[index];
  FreeBlock* freed = static_cast<FreeBlock*>(block);
  freed->next = list.head;
  list.head = freed;
  ++list.count;
  cache->Count(-static_cast<int64_t>(kSmallSizes[index]));
  Poison(block, kSmallSizes[index]);
  if (list.count > kTable.max_local[index]) [[unlikely]]
    FlushHalf(cache, index);
}

void* CachingAllocator::AllocateSmallSlow(ThreadCache* cache, size_t index) {
  const int64_t size = static_cast<int64_t>(kSmallSizes[index]);
  LocalList& list = cache->lists[index];
  if (list.head == nullptr) {
    uint32_t got = 0;
    list.head = TakeCentral(index, std::max<uint32_t>(1, kTable.max_local[index] / 2), &got);
    list.count = got;
    if (got == 0) {
      list.head = static_cast<FreeBlock*>(CarveSmall(kSmallSizes[index]));
      if (list.head == nullptr) return nullptr;
      list.head->next = nullptr;
      list.count = got = 1;
      Poison(list.head, kSmallSizes[index]);
    }
    cache->cached.store(cache->cached.load(std::memory_order_relaxed) + got * size,
                        std::memory_order_relaxed);
  }
  std::lock_guard lock(mutex_);
  if (!AdmitLocked(size)) return nullptr;
  FreeBlock* block = list.head;
  list.head = block->next;
  --list.count;
  cache->Count(size);
  cache->allocs.store(cache->allocs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return block;
}

void* CachingAllocator::AllocateUncached(size_t index) {
  const size_t size = kSmallSizes[index];
  uint32_t got = 0;
  FreeBlock* block = TakeCentral(index, 1, &got);
  if (block == nullptr) block = static_cast<FreeBlock*>(CarveSmall(size));
  if (block == nullptr) return nullptr;
  bool admitted;
  {
    std::lock_guard lock(mutex_);
    admitted = AdmitLocked(static_cast<int64_t>(size));
    if (admitted) {
      retired_in_use_ += static_cast<int64_t>(size);
      ++retired_allocs_;
    }
  }
  if (!admitted) {
    GiveCentral(index, block, block, 1);
    return nullptr;
  }
  Unpoison(block, size, size);
  return block;
}

void CachingAllocator::FreeUncached(void* block, size_t index) {
  {
    std::lock_guard lock(mutex_);
    retired_in_use_ -= static_cast<int64_t>(kSmallSizes[index]);
  }
  FreeBlock* freed = static_cast<FreeBlock*>(block);
  Poison(freed, kSmallSizes[index]);
  GiveCentral(index, freed, freed, 1);
}

CachingAllocator::FreeBlock* CachingAllocator::TakeCentral(size_t index, uint32_t wanted,
                                                           uint32_t* got) {
  CentralList& list = central_[index];
  *got = 0;
  if (list.count.load(std::memory_order_relaxed) == 0) return nullptr;
  std::lock_guard lock(list.mutex);
  FreeBlock* head = list.head;
  FreeBlock* tail = nullptr;
  while (list.head != nullptr && *got < wanted) {
    tail = list.head;
    list.head = tail->next;
    ++*got;
  }
  if (tail != nullptr) tail->next = nullptr;
  list.count.store(list.count.load(std::memory_order_relaxed) - *got, std::memory_order_relaxed);
  return head;
}

void CachingAllocator::GiveCentral(size_t index, FreeBlock* head, FreeBlock* tail, uint32_t count) {
  CentralList& list = central_[index];
  std::lock_guard lock(list.mutex);
  tail->next = list.head;
  list.head = head;
  list.count.store(list.count.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

void* CachingAllocator::CarveSmall(size_t size) {
  if (size > kMaxCarved) return std::aligned_alloc(kAlignment, size);
  std::lock_guard lock(chunk_mutex_);
  if (chunk_left_ < size) {
    // What is left of the old chunk (less than one small block) is given up.
    void* chunk = std::aligned_alloc(4096, kChunkSize);
    if (chunk == nullptr) return nullptr;
    chunk_ = static_cast<char*>(chunk);
    chunk_left_ = kChunkSize;
  }
  void* block = chunk_;
  chunk_ += size;
  chunk_left_ -= size;
  return block;
}

void CachingAllocator::FlushHalf(ThreadCache* cache, size_t index) {
  LocalList& list = cache->lists[index];
  // The older half goes: what was freed last is warm.
  const uint32_t keep = list.count / 2;
  FreeBlock* last_kept = list.head;
  for (uint32_t i = 1; i < keep; ++i) last_kept = last_kept->next;
  FreeBlock* head = last_kept->next;
  FreeBlock* tail = head;
  while (tail->next != nullptr) tail = tail->next;
  last_kept->next = nullptr;
  const uint32_t given = list.count - keep;
  list.count = keep;
  cache->cached.store(cache->cached.load(std::memory_order_relaxed) -
                          given * static_cast<int64_t>(kSmallSizes[index]),
                      std::memory_order_relaxed);
  GiveCentral(index, head, tail, given);
}

void CachingAllocator::RetireThread(ThreadCache* cache) {
  for (size_t i = 0; i < kNumSmallSizes; ++i) {
    LocalList& list = cache->lists[i];
    if (list.head == nullptr) continue;
    FreeBlock* tail = list.head;
    while (tail->next != nullptr) tail = tail->next;
    GiveCentral(i, list.head, tail, list.count);
    list = LocalList();
  }
  std::lock_guard lock(mutex_);
  retired_in_use_ += cache->in_use.load(std::memory_order_relaxed);
  retired_allocs_ += cache->allocs.load(std::memory_order_relaxed);
  cache->in_use.store(0, std::memory_order_relaxed);
  cache->allocs.store(0, std::memory_order_relaxed);
  cache->cached.store(0, std::memory_order_relaxed);
  threads_.erase(std::find(threads_.begin(), threads_.end(), cache));
  idle_caches_.push_back(cache);
}

void* CachingAllocator::AllocateLarge(size_t bytes) {
  const size_t size = RoundUp(bytes);
  if (size == 0) return nullptr;
  LargeList& list = large_[LargeClass(bytes)];
  void* block = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!AdmitLocked(static_cast<int64_t>(size))) return nullptr;
    large_in_use_ += static_cast<int64_t>(size);
    ++large_allocs_;
    list.last_use = ++tick_;
    if (list.head != nullptr) {
      block = list.head;
      list.head = list.head->next;
      large_cached_ -= static_cast<int64_t>(size);
    }
  }
  if (block == nullptr) {
    block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
      std::lock_guard lock(mutex_);
      large_in_use_ -= static_cast<int64_t>(size);
      --large_allocs_;
      return nullptr;
    }
  }
  Unpoison(block, size, bytes);
  return block;
}

void CachingAllocator::FreeLarge(void* block, size_t bytes) {
  const size_t size = RoundUp(bytes);
  Unpoison(block, size, size);
  {
    std::lock_guard lock(mutex_);
    large_in_use_ -= static_cast<int64_t>(size);
    if (static_cast<int64_t>(size) <= kMaxCachedBytes) {
      EvictFor(static_cast<int64_t>(size));
      LargeList& list = large_[LargeClass(bytes)];
      FreeBlock* freed = static_cast<FreeBlock*>(block);
      freed->next = list.head;
      list.head = freed;
      Poison(block, size);
      list.last_use = ++tick_;
      large_cached_ += static_cast<int64_t>(size);
      return;
    }
  }
  munmap(block, size);
}

void CachingAllocator::EvictFor(int64_t bytes) {
  while (large_cached_ + bytes > kMaxCachedBytes) {
    size_t oldest = kLargeClasses;
    for (size_t i = 0; i < kLargeClasses; ++i) {
      if (large_[i].head == nullptr) continue;
      if (oldest == kLargeClasses || large_[i].last_use < large_[oldest].last_use) oldest = i;
    }
    if (oldest == kLargeClasses) return;
    const size_t size = LargeSize(oldest);
    FreeBlock* block = large_[oldest].head;
    large_[oldest].head = block->next;
    large_cached_ -= static_cast<int64_t>(size);
    Unpoison(block, size, size);
    munmap(block, size);
  }
}

int64_t CachingAllocator::InUseLocked() const {
  int64_t in_use = retired_in_use_ + large_in_use_;
  for (const ThreadCache* cache : threads_) in_use += cache->in_use.load(std::memory_order_relaxed);
  return in_use;
}

/// Admission is serialised by the mutex, and frees only lower the figure, so a limit holds exactly
/// for all that is allocated after it was set.
bool CachingAllocator::AdmitLocked(int64_t bytes) {
  const int64_t in_use = InUseLocked() + bytes;
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  if (limit != 0 && in_use > limit) return false;
  peak_ = std::max(peak_, in_use);
  largest_ = std::max(largest_, bytes);
  return true;
}

AllocatorStats CachingAllocator::stats() const {
  AllocatorStats stats;
  for (size_t i = 0; i < kNumSmallSizes; ++i) {
    stats.bytes_cached +=
        central_[i].count.load(std::memory_order_relaxed) * static_cast<int64_t>(kSmallSizes[i]);
  }
  std::lock_guard lock(mutex_);
  stats.num_allocs = retired_allocs_ + large_allocs_;
  for (const ThreadCache* cache : threads_) {
    stats.num_allocs += cache->allocs.load(std::memory_order_relaxed);
    stats.bytes_cached += cache->cached.load(std::memory_order_relaxed);
  }
  stats.bytes_cached += large_cached_;
  stats.bytes_in_use = InUseLocked();
  peak_ = std::max(peak_, stats.bytes_in_use);
  stats.peak_bytes_in_use = peak_;
  stats.largest_alloc_size = largest_;
  stats.bytes_limit = limit_.load(std::memory_order_relaxed);
  return stats;
}

void CachingAllocator::set_limit(int64_t bytes) {
  limit_.store(std::max<int64_t>(bytes, 0), std::memory_order_relaxed);
}

void CachingAllocator::Trim() {
  if (ThreadCache* cache = Cache()) {
    for (size_t i = 0; i < kNumSmallSizes; ++i) {
      while (cache->lists[i].count > 1) FlushHalf(cache, i);
    }
  }
  for (size_t i = 0; i < kNumSmallSizes; ++i) {
    if (kSmallSizes[i] <= kMaxCarved) continue;
    uint32_t got = 0;
    FreeBlock* block = TakeCentral(i, ~uint32_t{0}, &got);
    while (block != nullptr) {
      FreeBlock* next = block->next;
      Unpoison(block, kSmallSizes[i], kSmallSizes[i]);
      std::free(block);
      block = next;
    }
  }
  std::lock_guard lock(mutex_);
  EvictFor(kMaxCachedBytes);
}

}  // namespace troupe
