#include "devices/caching_allocator.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "devices/tensor.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(CachingAllocator, RoundsUpToAlignedSizes) {
  for (size_t bytes = 0; bytes < 300000; bytes += bytes < 5000 ? 1 : 97) {
    const size_t size = CachingAllocator::RoundUp(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % Allocator::kAlignment, 0u);
    ASSERT_LE(size, bytes + 64 + bytes / 4) << bytes;
    ASSERT_EQ(CachingAllocator::RoundUp(size), size);
  }
  for (int shift = 16; shift < 47; ++shift) {
    for (int64_t delta : {-1, 0, 1}) {
      const size_t bytes = (size_t{1} << shift) + delta;
      ASSERT_GE(CachingAllocator::RoundUp(bytes), bytes);
      ASSERT_LE(CachingAllocator::RoundUp(bytes), bytes + bytes / 4 + 1);
    }
  }
  EXPECT_EQ(CachingAllocator::RoundUp(SIZE_MAX), 0u);
}

TEST(CachingAllocator, BlocksAreAlignedDistinctAndWritable) {
  Allocator* allocator = HostAllocator();
  const int64_t before = allocator->stats().bytes_in_use;
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t bytes : {0, 1, 63, 64, 65, 500, 4096, 4097, 65536, 65537, 1 << 20, 3 << 20}) {
    for (int i = 0; i < 5; ++i) {
      char* block = static_cast<char*>(allocator->Allocate(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0u);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = 0; j < blocks[i].second; j += 61) {
      ASSERT_EQ(static_cast<unsigned char>(blocks[i].first[j]), i);
    }
  }
  for (auto [block, bytes] : blocks) allocator->Free(block, bytes);
  EXPECT_EQ(allocator->stats().bytes_in_use, before);
}

TEST(CachingAllocator, ReusesAndTrims) {
  Allocator* allocator = HostAllocator();
  void* small = allocator->Allocate(100);
  allocator->Free(small, 100);
  EXPECT_EQ(allocator->Allocate(100), small);
  allocator->Free(small, 100);
  void* large = allocator->Allocate(5 << 20);
  allocator->Free(large, 5 << 20);
  EXPECT_EQ(allocator->Allocate(5 << 20), large);
  allocator->Free(large, 5 << 20);
  EXPECT_GE(allocator->stats().bytes_cached, 5 << 20);
  allocator->Trim();
  EXPECT_LT(allocator->stats().bytes_cached, 5 << 20);
}

TEST(CachingAllocator, BoundsWhatItKeeps) {
  Allocator* allocator = HostAllocator();
  constexpr size_t kBytes = 20 << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(allocator->Allocate(kBytes));
  EXPECT_GE(allocator->stats().peak_bytes_in_use, int64_t{30} * kBytes);
  EXPECT_GE(allocator->stats().largest_alloc_size, static_cast<int64_t>(kBytes));
  for (void* block : blocks) allocator->Free(block, kBytes);
  EXPECT_LE(allocator->stats().bytes_cached, CachingAllocator::kMaxCachedBytes + (16 << 20));
  // Other sizes push the idle ones out.
  void* block = allocator->Allocate(200 << 20);
  allocator->Free(block, 200 << 20);
  EXPECT_LE(allocator->stats().bytes_cached, CachingAllocator::kMaxCachedBytes + (16 << 20));
  EXPECT_EQ(allocator->Allocate(200 << 20), block);
  allocator->Free(block, 200 << 20);
  allocator->Trim();
}

TEST(CachingAllocator, LimitIsExact) {
  Allocator* allocator = HostAllocator();
  void* warm = allocator->Allocate(64);
  allocator->Free(warm, 64);
  const int64_t in_use = allocator->stats().bytes_in_use;
  allocator->set_limit(in_use + 10 * 64);
  std::vector<void*> blocks;
  while (void* block = allocator->Allocate(64)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 10u);
  EXPECT_EQ(allocator->stats().bytes_in_use, in_use + 640);
  EXPECT_EQ(allocator->Allocate(1 << 20), nullptr);
  const auto refused = Tensor::Allocate(ElementType::kFloat, Shape({1000, 1000}));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("[1000,1000]"), absl::string_view::npos);
  allocator->Free(blocks.back(), 64);
  blocks.pop_back();
  EXPECT_NE(blocks.emplace_back(allocator->Allocate(64)), nullptr);
  allocator->set_limit(0);
  for (void* block : blocks) allocator->Free(block, 64);
  EXPECT_EQ(allocator->stats().bytes_in_use, in_use);
}

TEST(CachingAllocator, RefusesTheImpossible) {
  EXPECT_EQ(HostAllocator()->Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(HostAllocator()->Allocate(size_t{1} << 62), nullptr);
  EXPECT_EQ(HostAllocator()->Allocate(size_t{1} << 47), nullptr);
  HostAllocator()->Free(nullptr, 64);
}

TEST(CachingAllocator, ManyThreadsFreeOneAnothersBlocks) {
  Allocator* allocator = HostAllocator();
  const int64_t before = allocator->stats().bytes_in_use;
  constexpr int kThreads = 4, kSlots = 64, kRounds = 20000;
  struct Block {
    size_t bytes;
    unsigned char mark;
  };
  std::atomic<Block*> slots[kSlots] = {};
  const auto release = [&](Block* block) {
    const unsigned char* data = reinterpret_cast<unsigned char*>(block);
    for (size_t i = sizeof(Block); i < block->bytes; i += 512) EXPECT_EQ(data[i], block->mark);
    allocator->Free(block, block->bytes);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRounds; ++i) {
        const size_t bytes = sizeof(Block) + random() % (random() % 50 == 0 ? 300000 : 2000);
        Block* block = static_cast<Block*>(allocator->Allocate(bytes));
        ASSERT_NE(block, nullptr);
        block->bytes = bytes;
        block->mark = static_cast<unsigned char>(random());
        std::memset(reinterpret_cast<char*>(block + 1), block->mark, bytes - sizeof(Block));
        if (Block* old = slots[random() % kSlots].exchange(block)) release(old);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : slots) {
    if (Block* block = slot.load()) release(block);
  }
  EXPECT_EQ(allocator->stats().bytes_in_use, before);
}

TEST(CachingAllocator, FreesInDestructorsAtThreadExit) {
  struct Late {
    void* block = nullptr;
    ~Late() {
      HostAllocator()->Free(block, 64);
      HostAllocator()->Free(HostAllocator()->Allocate(128), 128);
    }
  };
  const int64_t before = HostAllocator()->stats().bytes_in_use;
  std::thread([] {
    static thread_local Late late;  // made before the thread's cache, so destroyed after it
    late.block = HostAllocator()->Allocate(64);
  }).join();
  EXPECT_EQ(HostAllocator()->stats().bytes_in_use, before);
}

}  // namespace
}  // namespace troupe
