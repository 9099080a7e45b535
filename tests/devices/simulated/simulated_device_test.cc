#include "tests/devices/simulated/simulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include "tests/how_many.h"

namespace troupe::testing {
namespace {

std::vector<std::unique_ptr<Device>> Make(const SimulatedOptions& simulated,
                                          const DeviceOptions& options = {}) {
  UseSimulatedDevices(simulated);
  auto devices = DeviceRegistry::Global()->MakeDevices("j", 0, {{"SIM", options}}, nullptr);
  EXPECT_TRUE(devices.ok()) << devices.status();
  devices->erase(devices->begin());  // The CPU.
  return *std::move(devices);
}

Tensor Fetch(Device* device, const Tensor& tensor) {
  std::promise<absl::StatusOr<Tensor>> fetched;
  Download(device, tensor,
           [&](absl::StatusOr<Tensor> value) { fetched.set_value(std::move(value)); });
  return fetched.get_future().get().value();
}

void Enqueue(Device* device, std::function<void()> work) {
  static_cast<SimulatedStream*>(device->stream())->Enqueue(std::move(work));
}

TEST(SimulatedDevice, ItsMemoryIsItsOwn) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto device = std::move(Make({})[0]);
  const Tensor there = *Upload(device.get(), Tensor::Vector<float>({1, 2, 3}));
  EXPECT_EQ(there.space(), MemorySpace::kDevice);
  EXPECT_TRUE(absl::IsInvalidArgument(there.data<float>().status()));
  EXPECT_THAT(Fetch(device.get(), there).unchecked_values<float>(),
              ::testing::ElementsAre(1, 2, 3));
  EXPECT_DEATH(std::memset(const_cast<void*>(there.raw_data()), 0, 1), "");
  EXPECT_DEATH(EXPECT_EQ(there.unchecked_data<float>()[0], 1), "");
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(device.get(), Tensor::Scalar("text")).status()));
}

TEST(SimulatedDevice, NothingBeyondABlockMayBeTouched) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto work_on = [](size_t bytes, size_t at, bool write) {
    const auto device = std::move(Make({})[0]);
    Allocator* const memory = device->allocator(MemorySpace::kDevice);
    void* const block = memory->Allocate(bytes);
    volatile char* const byte = static_cast<char*>(Reach(block)) + at;
    Enqueue(device.get(), [byte, write] {
      const char value = *byte;
      if (write) *byte = static_cast<char>(value + 1);
    });
    memory->Free(block, bytes);
    std::promise<void> over;
    device->stream()->WhenDone([&](const absl::Status&) { over.set_value(); });
    over.get_future().get();
  };
  for (const size_t bytes : {1, 63, 64, 65, 4096, 4100, 10000}) {
    work_on(bytes, 0, true);
    work_on(bytes, bytes - 1, true);
    EXPECT_DEATH(work_on(bytes, bytes, true), "") << bytes;
    EXPECT_DEATH(work_on(bytes, (bytes + 63) / 64 * 64, false), "") << bytes;
  }
  EXPECT_DEATH(work_on(100, 100, true), "written beyond a block of 100 bytes");
}

TEST(SimulatedDevice, WorkIsLateAndInOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto device = std::move(Make({.seed = seed, .stopped = true})[0]);
    int done = 0;
    for (int i = 0; i < 10; ++i) {
      Enqueue(device.get(), [&done, i] { done = done == i ? i + 1 : -1; });
    }
    const RefPtr<DeviceEvent> end = device->stream()->Record();
    EXPECT_FALSE(device->stream()->Done() || end->Reached());
    EXPECT_EQ(done, 0);
    std::promise<void> over;
    device->stream()->WhenDone([&](const absl::Status& status) {
      EXPECT_TRUE(status.ok());
      over.set_value();
    });
    StartSimulatedDevices();
    over.get_future().get();
    EXPECT_EQ(done, 10);
    EXPECT_TRUE(end->Reached());
  }
}

TEST(SimulatedDevice, OnlyEventsOrderStreams) {
  bool differed = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const auto device = std::move(Make({.seed = seed, .max_delay_us = 0, .stopped = true})[0]);
    auto* const upload = static_cast<SimulatedStream*>(device->stream(StreamUse::kUpload));
    std::string order;  // Written by the device's one thread.
    Enqueue(device.get(), [&] { order += "a"; });
    ASSERT_TRUE(upload->WaitFor(device->stream()->Record()).ok());
    Enqueue(device.get(), [&] { order += "b"; });
    upload->Enqueue([&] { order += "c"; });
    ASSERT_TRUE(device->stream()->WaitFor(upload->Record()).ok());
    Enqueue(device.get(), [&] { order += "d"; });
    std::promise<void> over;
    device->stream()->WhenDone([&](const absl::Status&) { over.set_value(); });
    StartSimulatedDevices();
    over.get_future().get();
    EXPECT_TRUE(order == "abcd" || order == "acbd") << order;
    differed |= order == "acbd";
  }
  EXPECT_TRUE(differed);
}

TEST(SimulatedDevice, AnEventOfAnotherDeviceIsWaitedFor) {
  const auto devices = Make({.stopped = true}, {.count = 2});
  std::string order;
  std::mutex mutex;
  const auto add = [&](char c) {
    return [&, c] {
      std::lock_guard<std::mutex> lock(mutex);
      order += c;
    };
  };
  Enqueue(devices[0].get(), add('a'));
  ASSERT_TRUE(devices[1]->stream()->WaitFor(devices[0]->stream()->Record()).ok());
  Enqueue(devices[1].get(), add('b'));
  std::promise<void> over;
  devices[1]->stream()->WhenDone([&](const absl::Status&) { over.set_value(); });
  StartSimulatedDevices();
  over.get_future().get();
  EXPECT_EQ(order, "ab");
}

/// Without memory for being told, whoever copies waits: what is copied from is freed right after.
TEST(SimulatedDevice, CopiesThatNobodyCanBeToldOf) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto device =
        std::move(Make({.seed = seed, .max_delay_us = 1000, .cannot_tell = true})[0]);
    for (const int64_t n : {1, 1 << 16}) {
      Tensor host = Tensor::Uninitialized(ElementType::kFloat, Shape({n}));
      std::fill_n(host.mutable_data<float>(), n, 7.0f);
      EXPECT_THROW(Upload(device.get(), host).IgnoreError(), std::bad_alloc);
      EXPECT_TRUE(device->stream(StreamUse::kUpload)->Done());
      absl::StatusOr<Tensor> there = Tensor::Allocate(ElementType::kFloat, Shape({n}),
                                                      device->allocator(MemorySpace::kDevice));
      ASSERT_TRUE(there.ok());
      int answers = 0;
      Download(device.get(), *there, [&](const absl::StatusOr<Tensor>& fetched) {
        ++answers;
        EXPECT_TRUE(absl::IsResourceExhausted(fetched.status())) << fetched.status();
        EXPECT_TRUE(device->stream(StreamUse::kDownload)->Done());
      });
      EXPECT_EQ(answers, 1);
    }
  }
}

TEST(SimulatedDevice, AFreedBlockIsOverwrittenInTheStreamsOrder) {
  const auto device = std::move(Make({.stopped = true})[0]);
  Allocator* const memory = device->allocator(MemorySpace::kDevice);
  auto* const block = static_cast<unsigned char*>(memory->Allocate(1));
  auto* const inside = static_cast<unsigned char*>(Reach(block));
  unsigned char before = 0, after = 0, next = 0;
  Enqueue(device.get(), [&] { before = *inside = 7; });
  Enqueue(device.get(), [&] { before = *inside; });
  memory->Free(block, 1);
  Enqueue(device.get(), [&] { after = *inside; });
  EXPECT_EQ(memory->Allocate(64), block) << "it can be had at once";
  Enqueue(device.get(), [&] { next = *inside = 9; });
  std::promise<void> over;
  device->stream()->WhenDone([&](const absl::Status&) { over.set_value(); });
  StartSimulatedDevices();
  over.get_future().get();
  EXPECT_EQ(before, 7);
  EXPECT_EQ(after, 0xa5);
  EXPECT_EQ(next, 9);
  memory->Free(block, 64);
}

/// What tests/cuda_on_host takes for an address beside a kernel's flags leaves them as they are.
TEST(SimulatedDevice, TheLowBytesOfBothMappingsAreTheSame) {
  const auto device = std::move(Make({})[0]);
  Allocator* const memory = device->allocator(MemorySpace::kDevice);
  void* const block = memory->Allocate(1);
  const auto outside = reinterpret_cast<uintptr_t>(block);
  const auto inside = reinterpret_cast<uintptr_t>(Reach(block));
  memory->Free(block, 1);
  // The thread sanitizer has mmap take no hints. Kernels on the host are not built for it.
  if (kSlowBuild && outside >> 40 != 0x2a) GTEST_SKIP() << "built for the thread sanitizer";
  EXPECT_NE(outside, inside);
  EXPECT_EQ((outside ^ inside) & 0xff'ffff'ffff, 0u);
}

TEST(SimulatedDevice, MemoryIsSmall) {
  const auto device = std::move(Make({}, {.memory_limit = 1024})[0]);
  Allocator* const memory = device->allocator(MemorySpace::kDevice);
  const int64_t in_use = memory->stats().bytes_in_use;
  EXPECT_EQ(memory->Allocate(2048), nullptr);
  EXPECT_EQ(memory->Allocate(size_t{1} << 60), nullptr);
  std::vector<void*> blocks;
  while (void* block = memory->Allocate(100)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 8);
  for (void* block : blocks) memory->Free(block, 100);
  EXPECT_EQ(memory->stats().bytes_in_use, in_use);
  const Tensor large = Tensor::Uninitialized(ElementType::kFloat, Shape({1000}));
  const absl::Status status = Upload(device.get(), large).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("the limit is 1024"));
}

/// 9 MiB and some bytes, so that there are three pieces.
Tensor Large() {
  Tensor large = Tensor::Uninitialized(ElementType::kInt32, Shape({(9 << 18) + 7}));
  std::iota(large.mutable_data<int32_t>(), large.mutable_data<int32_t>() + large.num_elements(), 0);
  return large;
}

// The host's tensor is not needed any more when the call is over, however late the copy is.
TEST(SimulatedDevice, LargeUploadsAreStagedInPinnedMemory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto device = std::move(Make({.seed = seed, .stopped = true})[0]);
    Allocator* const pinned = device->allocator(MemorySpace::kPinned);
    ASSERT_EQ(pinned->space(), MemorySpace::kPinned);
    const int64_t in_use = pinned->stats().bytes_in_use;
    const Tensor large = Large();
    Tensor here = *large.Clone();
    const Tensor there = *Upload(device.get(), here);
    EXPECT_TRUE(here.unique());
    std::memset(here.mutable_raw_data(), 0, here.bytes());
    EXPECT_GE(pinned->stats().bytes_in_use - in_use, static_cast<int64_t>(large.bytes()));
    StartSimulatedDevices();
    Tensor back = Fetch(device.get(), there);
    EXPECT_EQ(std::memcmp(back.raw_data(), large.raw_data(), large.bytes()), 0);
    back.Reset();
    while (!device->stream(StreamUse::kUpload)->Done()) std::this_thread::yield();
    EXPECT_EQ(pinned->stats().bytes_in_use, in_use);
  }
}

TEST(SimulatedDevice, WhatIsSmallOrPinnedIsCopiedFromWhereItIs) {
  const auto device = std::move(Make({})[0]);
  Allocator* const pinned = device->allocator(MemorySpace::kPinned);
  const int64_t num_allocs = pinned->stats().num_allocs;
  ASSERT_TRUE(Upload(device.get(), Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(pinned->stats().num_allocs, num_allocs);
  const Tensor large = *Large().Clone(pinned);
  const Tensor there = *Upload(device.get(), large);
  EXPECT_EQ(pinned->stats().num_allocs, num_allocs + 1);
  const Tensor back = Fetch(device.get(), there);
  EXPECT_EQ(std::memcmp(back.raw_data(), large.raw_data(), large.bytes()), 0);
}

TEST(SimulatedDevice, ManyThreadsUpload) {
  const auto device = std::move(Make({})[0]);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const Tensor there = *Upload(device.get(), Tensor::Scalar(1000 * t + i));
        EXPECT_TRUE(Upload(device.get(), Tensor::Scalar(-1)).ok());  // Freed at once.
        EXPECT_EQ(Fetch(device.get(), there).unchecked_scalar<int>(), 1000 * t + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe::testing
