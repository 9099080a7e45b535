#include "kernels/sync/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/kernels/queues/calls.h"
#include "tests/kernels/sync/reply.h"

namespace troupe {
namespace {

using testing::Calls;
using testing::MakeMachine;
using testing::Reply;
using Code = absl::StatusCode;

TEST(Mutex, IsHeldByOneAfterAnother) {
  const auto mutex = MakeMachine<Mutex>(MutexOptions{});
  Reply first, second, third;
  mutex->Lock(nullptr, first.done());
  mutex->Lock(nullptr, second.done());
  mutex->Lock(nullptr, third.done());
  EXPECT_EQ(first.code(), Code::kOk);
  EXPECT_FALSE(second.over() || third.over());
  first.Drop();
  EXPECT_EQ(second.code(), Code::kOk);
  EXPECT_FALSE(third.over());
  // Copies of the lock hold it as well.
  const Variant value = second.tuple()[0].unchecked_scalar<Variant>();
  second.Drop();
  EXPECT_FALSE(third.over());
  EXPECT_TRUE(mutex->held());
  EXPECT_NE(value.get<MutexLockValue>(), nullptr);
}

TEST(Mutex, WhoIsCancelledLeavesTheLine) {
  const auto mutex = MakeMachine<Mutex>(MutexOptions{});
  CancellationToken token;
  Reply first, second, third;
  mutex->Lock(nullptr, first.done());
  mutex->Lock(&token, second.done());
  mutex->Lock(nullptr, third.done());
  token.Cancel(absl::DeadlineExceededError("late"));
  EXPECT_EQ(second.code(), Code::kDeadlineExceeded);
  first.Drop();
  EXPECT_EQ(third.code(), Code::kOk);
  third.Drop();
  EXPECT_FALSE(mutex->held());
}

TEST(Mutex, WhoIsBeingCancelledDoesNotGetIt) {
  const auto mutex = MakeMachine<Mutex>(MutexOptions{});
  CancellationToken token;
  Reply first, second, third;
  uint64_t id = 0;
  mutex->Lock(nullptr, first.done());
  ASSERT_TRUE(token.Register([&] { first.Drop(); }, &id));
  mutex->Lock(&token, second.done());
  mutex->Lock(nullptr, third.done());
  token.Cancel(absl::DeadlineExceededError("late"));
  EXPECT_EQ(second.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(third.code(), Code::kOk);
}

TEST(Mutex, IsGivenBackByACallThatNobodyConcludes) {
  Calls calls;
  calls.Attr("container", std::string()).Attr("shared_name", std::string("m"));
  const Tensor mutex = calls.Make("MutexV2");
  auto first = calls.Start("MutexLock", {mutex}, {ElementType::kVariant});
  auto second = calls.Start("MutexLock", {mutex}, {ElementType::kVariant});
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
  first.reset();  // Its step is over before it had its lock.
  EXPECT_TRUE(second->done());
}

TEST(Mutex, ConsumesOnlyWhatNobodyElseHas) {
  Calls calls;
  calls.Attr("container", std::string()).Attr("shared_name", std::string("m"));
  const Tensor mutex = calls.Make("MutexV2");
  Tensor lock = calls.Start("MutexLock", {mutex}, {ElementType::kVariant})->output(0);
  EXPECT_EQ(calls.Do("ConsumeMutexLock", {lock}).code(), Code::kInvalidArgument);
  auto next = calls.Start("MutexLock", {mutex}, {ElementType::kVariant});
  EXPECT_FALSE(next->done());
  std::vector<Tensor> only;
  only.push_back(std::move(lock));
  EXPECT_EQ(calls.Do("ConsumeMutexLock", std::move(only)), absl::OkStatus());
  EXPECT_TRUE(next->done());
  EXPECT_EQ(calls.Do("ConsumeMutexLock", {Tensor::Scalar(Variant(3))}).code(),
            Code::kInvalidArgument);
}

TEST(Mutex, AContainerThatLetsGoEndsTheWait) {
  Calls calls;
  calls.Attr("container", std::string()).Attr("shared_name", std::string("m"));
  const Tensor mutex = calls.Make("MutexV2");
  auto first = calls.Start("MutexLock", {mutex}, {ElementType::kVariant});
  auto second = calls.Start("MutexLock", {mutex}, {ElementType::kVariant});
  calls.resources().Reset("");
  EXPECT_EQ(second->status().code(), Code::kCancelled);
  EXPECT_EQ(first->status(), absl::OkStatus());
}

/// What a thread does under the lock, others do not see half of.
TEST(Mutex, ExcludesThreads) {
  const auto mutex = MakeMachine<Mutex>(MutexOptions{});
  constexpr int kThreads = 4, kRounds = 2'000;
  int64_t count = 0;  // Only those who hold the mutex touch it.
  std::atomic<int> inside{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRounds; ++i) {
        CancellationToken token;
        std::atomic<bool> over{false};
        mutex->Lock(&token, [&](absl::StatusOr<Tuple> lock) {
          if (lock.ok()) {
            EXPECT_EQ(inside.fetch_add(1), 0);
            ++count;
            inside.fetch_sub(1);
          } else {
            cancelled.fetch_add(1);
          }
          lock = Tuple();
          over.store(true, std::memory_order_release);
        });
        if (random() % 4 == 0) token.Cancel(absl::AbortedError("at a random moment"));
        while (!over.load(std::memory_order_acquire)) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count + cancelled.load(), kThreads * kRounds);
  EXPECT_FALSE(mutex->held());
}

}  // namespace
}  // namespace troupe
