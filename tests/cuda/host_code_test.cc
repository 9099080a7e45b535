// What of the code for cards runs on the host: kept plans, choices by time, how reductions are cut,
// what allocators keep, count and refuse. The device's own, on CUDA on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/session.h"
#include "devices/device_registry.h"
#include "devices/pollable.h"
#include "graph/graph.h"
#include "kernels/cuda/fastest.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/cuda/reduce_plan.h"

namespace troupe::cuda {
namespace {

using ::testing::HasSubstr;

// --- plan_cache.h

struct Counted {
  absl::StatusOr<std::shared_ptr<const int>> operator()() {
    ++made;
    if (fails) return absl::UnimplementedError("no plan for it");
    return std::make_shared<const int>(made);
  }
  int made = 0;
  bool fails = false;
};

TEST(PlanCache, KeepsThoseThatWereUsedLast) {
  PlanCache<int, int> cache(2);
  Counted counted;
  const auto get = [&](int key) { return **cache.Get(key, std::ref(counted)); };
  EXPECT_EQ(get(10), 1);
  EXPECT_EQ(get(20), 2);
  EXPECT_EQ(get(10), 1) << "kept, and now the last used";
  EXPECT_EQ(get(30), 3) << "in place of 20";
  EXPECT_EQ(get(10), 1);
  EXPECT_EQ(get(20), 4) << "in place of 30";
  EXPECT_EQ(get(30), 5);
  EXPECT_EQ(get(20), 4);
}

TEST(PlanCache, APlanLivesAsLongAsItIsUsed) {
  PlanCache<int, int> cache(1);
  Counted counted;
  const std::shared_ptr<const int> first = *cache.Get(1, std::ref(counted));
  ASSERT_TRUE(cache.Get(2, std::ref(counted)).ok());
  EXPECT_EQ(*first, 1);
  EXPECT_EQ(first.use_count(), 1);
}

TEST(PlanCache, ErrorsAreNotKept) {
  PlanCache<int, int> cache(2);
  Counted counted;
  counted.fails = true;
  EXPECT_EQ(cache.Get(1, std::ref(counted)).status(), absl::UnimplementedError("no plan for it"));
  counted.fails = false;
  EXPECT_EQ(**cache.Get(1, std::ref(counted)), 2);
}

TEST(PlanCache, ThreadsGetOnePlan) {
  PlanCache<int, int> cache(8);
  Counted counted;  // Made one at a time.
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(cache.Get(i % 8, std::ref(counted)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted.made, 8);
}

// --- fastest.h

TEST(Fastest, TakesTheLeastTimeOfThoseThatWork) {
  using Times = std::vector<absl::StatusOr<float>>;
  const auto fastest = [](const Times& times) {
    return Fastest(times.size(), [&](size_t i) { return times[i]; });
  };
  const absl::Status first = absl::InternalError("first"), last = absl::InternalError("last");
  EXPECT_EQ(*fastest({3.0f}), 0u);
  EXPECT_EQ(*fastest({3.0f, 1.0f, 2.0f}), 1u);
  EXPECT_EQ(*fastest({3.0f, 1.0f, 1.0f}), 1u) << "the first of equal ones";
  EXPECT_EQ(*fastest({first, 3.0f, first, 2.0f, last}), 3u);
  EXPECT_EQ(fastest({first, last}).status(), last);
}

// --- reduce_plan.h

int64_t Product(const std::vector<ReduceDim>& dims, bool reduced) {
  int64_t product = 1;
  for (const ReduceDim& dim : dims) product *= dim.reduced == reduced ? dim.size : 1;
  return product;
}

/// What every launch must be, whatever the shape.
void CheckPlan(const std::vector<ReduceDim>& dims, int pack) {
  const ReducePlan plan = PlanReduce(dims, pack);
  ASSERT_FALSE(plan.passes.empty());
  int64_t scratch = 0;
  for (size_t i = 0; i < plan.passes.size(); ++i) {
    const ReducePass& pass = plan.passes[i];
    const bool last = i + 1 == plan.passes.size();
    SCOPED_TRACE(StrCat("pass ", i, ": [", pass.outer, ",", pass.n, ",", pass.inner, "] pack ",
                        pass.pack, " splits ", pass.splits, " piece ", pass.piece, " blocks ",
                        pass.blocks, " group ", pass.group, " ", pass.width, "x", pass.height));
    EXPECT_TRUE(pass.pack == 1 || (i == 0 && pass.pack == pack));
    EXPECT_GE(pass.blocks, 1);
    EXPECT_LE(pass.blocks, INT32_MAX);
    EXPECT_GE(pass.splits, 1);
    if (pass.rows()) {
      EXPECT_TRUE(pass.group == 256 || (pass.group >= 1 && pass.group <= 32));
      EXPECT_EQ(pass.group & (pass.group - 1), 0);
      EXPECT_TRUE(pass.outer == 1 || pass.n % pass.pack == 0) << "rows begin at aligned addresses";
      // The pieces are the row, and none is empty but that of an empty row.
      EXPECT_GE(pass.splits * pass.piece, pass.n / pass.pack);
      if (pass.splits > 1) {
        EXPECT_LT((pass.splits - 1) * pass.piece, pass.n / pass.pack);
      }
      EXPECT_GE(pass.blocks * (256 / pass.group), pass.outer * pass.splits);
    } else {
      EXPECT_EQ(pass.inner % pass.pack, 0);
      EXPECT_GE(pass.width, 1);
      EXPECT_GE(pass.height, 1);
      EXPECT_LE(pass.width * pass.height, 256);
      EXPECT_GE(pass.splits * pass.piece, pass.n);
      if (pass.splits > 1) {
        EXPECT_LT((pass.splits - 1) * pass.piece, pass.n);
      }
      const int64_t columns = pass.inner / pass.pack;
      EXPECT_GE(pass.tiles * pass.width, pass.flat ? pass.outer * columns : columns);
      EXPECT_EQ(pass.blocks, (pass.flat ? 1 : pass.outer) * pass.tiles * pass.splits);
    }
    if (!last) scratch += pass.results();
    if (last) {
      EXPECT_EQ(pass.splits, 1) << "results, no parts of them";
      EXPECT_EQ(pass.results(), Product(dims, false));
    }
  }
  EXPECT_EQ(plan.scratch, scratch);
}

TEST(ReducePlan, HoldsForAllShapes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<ReduceDim> dims(random() % 6);
    std::string shape;
    int64_t elements = 1;
    for (ReduceDim& dim : dims) {
      const int bits = static_cast<int>(random() % 24);
      dim.size = 1 + static_cast<int64_t>(random() % (uint64_t{1} << bits));
      if (elements * dim.size > int64_t{1} << 33) dim.size = 1;
      elements *= dim.size;
      dim.reduced = random() % 2 == 0;
      shape += StrCat(" ", dim.size, dim.reduced ? "r" : "");
    }
    SCOPED_TRACE(shape);
    CheckPlan(dims, 1 << random() % 5);
    if (HasFailure()) return;
  }
}

TEST(ReducePlan, OfNothing) {
  const ReducePlan none = PlanReduce({{3, false}, {0, true}, {5, false}}, 4);
  ASSERT_EQ(none.passes.size(), 1u);
  EXPECT_EQ(none.passes[0].n, 0);
  EXPECT_EQ(none.passes[0].results(), 15);
  const ReducePlan same = PlanReduce({}, 4);
  ASSERT_EQ(same.passes.size(), 1u);
  EXPECT_EQ(same.passes[0].results(), 1);
}

TEST(ReducePlan, ManyElementsUseTheWholeCard) {
  const ReducePlan plan = PlanReduce({{64 << 20, true}}, 4);
  ASSERT_EQ(plan.passes.size(), 2u);
  EXPECT_GE(plan.passes[0].blocks, 1024);
  EXPECT_EQ(plan.scratch, plan.passes[0].splits);
}

// --- what the device keeps and counts

std::unique_ptr<Device> MakeCard(const DeviceOptions& options = {}) {
  auto devices = DeviceRegistry::Global()->MakeDevices("j", 0, {{"GPU", options}}, nullptr);
  EXPECT_TRUE(devices.ok()) << devices.status();
  return std::move(devices->back());
}

TEST(CardMemory, IsCountedAndLimited) {
  const auto card = MakeCard({.memory_limit = 1 << 20});
  Allocator* const memory = card->allocator(MemorySpace::kDevice);
  EXPECT_EQ(memory->space(), MemorySpace::kDevice);
  const AllocatorStats before = memory->stats();
  EXPECT_EQ(before.bytes_limit, 1 << 20);
  EXPECT_EQ(card->attributes().memory_limit, 1 << 20);
  const int64_t half = (before.bytes_limit - before.bytes_in_use) / 2;
  void* const one = memory->Allocate(static_cast<size_t>(half));
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % Allocator::kAlignment, 0u);
  void* const two = memory->Allocate(static_cast<size_t>(half));
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(memory->Allocate(2), nullptr) << "above the limit";
  EXPECT_EQ(memory->stats().bytes_in_use, before.bytes_in_use + 2 * half);
  EXPECT_EQ(memory->stats().num_allocs, before.num_allocs + 2);
  EXPECT_GE(memory->stats().peak_bytes_in_use, 2 * half);
  memory->Free(one, static_cast<size_t>(half));
  void* const again = memory->Allocate(static_cast<size_t>(half));
  EXPECT_NE(again, nullptr) << "at once, though the stream has not come to the end";
  memory->Free(again, static_cast<size_t>(half));
  memory->Free(two, static_cast<size_t>(half));
  EXPECT_EQ(memory->stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(memory->Allocate(size_t{1} << 60), nullptr);
  memory->Trim();
}

TEST(CardMemory, SmallBlocksAreKeptBySize) {
  const auto card = MakeCard();
  Allocator* const memory = card->allocator(MemorySpace::kDevice);
  memory->Trim();
  const AllocatorStats before = memory->stats();
  EXPECT_EQ(before.bytes_cached, 0);
  void* const block = memory->Allocate(1000);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(memory->stats().bytes_in_use, before.bytes_in_use + 1024);
  memory->Free(block, 1000);
  EXPECT_EQ(memory->stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(memory->stats().bytes_cached, 1024);
  void* const smaller = memory->Allocate(512);
  EXPECT_NE(smaller, block) << "of another size";
  EXPECT_EQ(memory->Allocate(513), block) << "of the same size, rounded";
  EXPECT_EQ(memory->stats().bytes_cached, 0);
  memory->Free(smaller, 512);
  memory->Free(block, 513);
  for (size_t bytes : {size_t{0}, size_t{512 * 512}, size_t{512 * 512 + 1}}) {
    void* const one = memory->Allocate(bytes);
    ASSERT_NE(one, nullptr) << bytes;
    memory->Free(one, bytes);
  }
  // The largest that is kept is of 256 KiB.
  EXPECT_EQ(memory->stats().bytes_cached, 512 + 1024 + 512 * 512);
  std::vector<void*> many;
  for (int i = 0; i < 400; ++i) {
    if (void* const one = memory->Allocate(256 << 10)) many.push_back(one);
  }
  EXPECT_GE(many.size(), 255u);
  for (void* one : many) memory->Free(one, 256 << 10);
  EXPECT_LE(memory->stats().bytes_cached, 64 << 20);
  EXPECT_GE(memory->stats().bytes_cached, 63 << 20);
  memory->Trim();
  EXPECT_EQ(memory->stats().bytes_cached, 0);
  EXPECT_EQ(memory->stats().bytes_in_use, before.bytes_in_use);
}

TEST(CardMemory, AFractionIsOfWhatIsFree) {
  const auto limit = [](double fraction) {
    return static_cast<double>(MakeCard({.memory_fraction = fraction})->attributes().memory_limit);
  };
  const double all = limit(1);
  EXPECT_NEAR(limit(0.25), 0.25 * all, 1 << 20);
  const auto card = MakeCard();
  Allocator* const memory = card->allocator(MemorySpace::kDevice);
  const auto half = static_cast<size_t>(all / 2);
  void* const block = memory->Allocate(half);
  ASSERT_NE(block, nullptr);
  EXPECT_NEAR(limit(1), 0.5 * all, 1 << 20);
  memory->Free(block, half);
  EXPECT_NEAR(limit(0.25), 0.25 * all, 1 << 20) << "what the pool keeps is free";
  memory->Trim();
}

TEST(CardMemory, EachDeviceHasALimitOfItsOwn) {
  constexpr size_t kMiB = 1 << 20;
  const auto first = MakeCard(), second = MakeCard({.memory_limit = kMiB});
  Allocator* const large = first->allocator(MemorySpace::kDevice);
  Allocator* const small = second->allocator(MemorySpace::kDevice);
  void* const blocks[] = {large->Allocate(4 * kMiB), small->Allocate(kMiB),
                          large->Allocate(4 * kMiB)};
  for (void* block : blocks) EXPECT_NE(block, nullptr);
  EXPECT_EQ(small->Allocate(1), nullptr);
  EXPECT_EQ(large->stats().bytes_in_use, 8 * kMiB);
  EXPECT_EQ(small->stats().bytes_in_use, kMiB);
  large->Free(blocks[0], 4 * kMiB);
  small->Free(blocks[1], kMiB);
  large->Free(blocks[2], 4 * kMiB);
}

TEST(CardMemory, OutlivesItsDeviceForItsBlocks) {
  auto card = MakeCard({.memory_limit = 1 << 20});
  Allocator* const before = card->allocator(MemorySpace::kDevice);
  void* const block = before->Allocate(1000);
  card = MakeCard({.memory_limit = 2 << 20});
  EXPECT_NE(card->allocator(MemorySpace::kDevice), before);
  EXPECT_EQ(card->allocator(MemorySpace::kDevice)->stats().bytes_in_use, 0);
  before->Free(block, 1000);
  std::vector<std::unique_ptr<Device>> cards;
  const auto is_before = [&](const auto& made) {
    return made->allocator(MemorySpace::kDevice) == before;
  };
  while (cards.size() < 100 && std::none_of(cards.begin(), cards.end(), is_before)) {
    cards.push_back(MakeCard({.memory_limit = 3 << 20}));
  }
  ASSERT_LT(cards.size(), 100u) << "it is used again";
  EXPECT_EQ(before->stats().bytes_limit, 3 << 20);
  EXPECT_EQ(before->stats().num_allocs, 0);
}

TEST(CardMemory, IsTakenAtOnceIfItMayNotGrow) {
  const auto card = MakeCard({.memory_fraction = 0.5, .allow_growth = false});
  const AllocatorStats taken = card->allocator(MemorySpace::kDevice)->stats();
  EXPECT_EQ(taken.bytes_in_use, 0);
  EXPECT_EQ(taken.num_allocs, 1);
  EXPECT_EQ(taken.peak_bytes_in_use, taken.bytes_limit);
  const auto two_much = DeviceRegistry::Global()->MakeDevices(
      "j", 0, {{"GPU", {.memory_limit = int64_t{1} << 50, .allow_growth = false}}}, nullptr);
  // The limit is what the card has, of which other processes may have some.
  EXPECT_TRUE(two_much.ok() || absl::IsResourceExhausted(two_much.status())) << two_much.status();
}

TEST(PinnedMemory, IsKeptBySizeAndLimited) {
  const auto card = MakeCard();
  Allocator* const pinned = card->allocator(MemorySpace::kPinned);
  EXPECT_EQ(pinned->space(), MemorySpace::kPinned);
  pinned->Trim();
  const AllocatorStats before = pinned->stats();
  EXPECT_EQ(before.bytes_cached, 0);
  void* const block = pinned->Allocate(100'000);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 100'000);
  constexpr int64_t kSize = 13 << 13;  // An eighth of 64 KiB is what sizes are rounded up to.
  EXPECT_EQ(pinned->stats().bytes_in_use, before.bytes_in_use + kSize);
  pinned->Free(block, 100'000);
  EXPECT_EQ(pinned->stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(pinned->stats().bytes_cached, kSize);
  EXPECT_EQ(pinned->Allocate(105'000), block) << "of the same size, rounded";
  EXPECT_EQ(pinned->stats().bytes_cached, 0);
  pinned->set_limit(pinned->stats().bytes_in_use + 1000);
  EXPECT_EQ(pinned->Allocate(2000), nullptr);
  pinned->set_limit(0);
  pinned->Free(block, 105'000);
  EXPECT_EQ(pinned->Allocate(size_t{1} << 60), nullptr);
  pinned->Trim();
  EXPECT_EQ(pinned->stats().bytes_cached, 0);
}

// --- completions

TEST(Completions, AreCalledOnceByWhoeverPollsOrByThreads) {
  const auto card = MakeCard();
  auto* const polled = dynamic_cast<Pollable*>(card.get());
  ASSERT_NE(polled, nullptr);
  Stream* const compute = card->stream();
  std::atomic<int> called{0};
  constexpr int kCalls = 2000;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) polled->Poll();
  });
  const Tensor here = Tensor::Vector<float>({1, 2, 3});
  for (int i = 0; i < kCalls; ++i) {
    if (i % 3 == 0) {
      ASSERT_TRUE(Upload(card.get(), here).ok());
    }
    compute->WhenDone([&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++called;
    });
    if (i % 2 == 0) polled->Poll();
  }
  // Nobody need poll: threads wait for events.
  over = true;
  other.join();
  while (called < kCalls) std::this_thread::yield();
  EXPECT_FALSE(polled->Poll());
  EXPECT_EQ(called, kCalls);
}

// --- uploads

TEST(Uploads, OfMuchGoByPinnedMemory) {
  const auto card = MakeCard();
  Allocator* const pinned = card->allocator(MemorySpace::kPinned);
  Tensor here = Tensor::Uninitialized(ElementType::kInt32, Shape({(9 << 18) + 7}));
  std::iota(here.mutable_data<int32_t>(), here.mutable_data<int32_t>() + here.num_elements(), 0);
  const Tensor large = *here.Clone();
  const int64_t resting = pinned->stats().bytes_in_use;
  // The limit is on what is pinned meanwhile; 0: none.
  const auto upload_and_fetch = [&](int64_t limit) {
    // Pieces are kept until somebody has noticed that they are copied.
    while (pinned->stats().bytes_in_use > resting) std::this_thread::yield();
    const int64_t num_allocs = pinned->stats().num_allocs;
    if (limit > 0) pinned->set_limit(pinned->stats().bytes_in_use + limit);
    const absl::StatusOr<Tensor> there = Upload(card.get(), here);
    pinned->set_limit(0);
    EXPECT_TRUE(there.ok()) << there.status();
    std::promise<absl::StatusOr<Tensor>> fetched;
    Download(card.get(), *there,
             [&](absl::StatusOr<Tensor> value) { fetched.set_value(std::move(value)); });
    const Tensor back = fetched.get_future().get().value();
    EXPECT_EQ(back.space(), MemorySpace::kPinned);
    EXPECT_EQ(std::memcmp(back.raw_data(), large.raw_data(), large.bytes()), 0);
    return pinned->stats().num_allocs - num_allocs;
  };
  EXPECT_EQ(upload_and_fetch(0), 3 + 1) << "three pieces, and the result";
  // What the limit refuses is copied from where it is.
  EXPECT_EQ(upload_and_fetch(5 << 20), 1 + 1);
  EXPECT_EQ(upload_and_fetch(1), 0 + 1);
}

}  // namespace
}  // namespace troupe::cuda
