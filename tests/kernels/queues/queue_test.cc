#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "kernels/queues/queue.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/queues/calls.h"

namespace troupe {
namespace {

using testing::Call;
using testing::Calls;
using testing::ExpectEqual;
using Code = absl::StatusCode;

const std::vector<ElementType> kInt = {ElementType::kInt32};

/// A queue of int32 scalars, and what is done with it.
class QueueTest : public ::testing::Test {
 protected:
  Tensor Make(const char* op, int64_t capacity, int64_t min_after_dequeue = 0) {
    calls.Attr("component_types", kInt)
        .Attr("Tcomponents", kInt)
        .Attr("shapes", std::vector<PartialShape>{PartialShape(Shape())})
        .Attr("capacity", capacity)
        .Attr("min_after_dequeue", min_after_dequeue)
        .Attr("seed", int64_t{7})
        .Attr("seed2", int64_t{11})
        .Attr("shared_name", std::string("queue"));
    return calls.Make(op);
  }
  std::unique_ptr<Call> Put(const Tensor& queue, int32_t value) {
    return calls.Start("QueueEnqueueV2", {queue, Tensor::Scalar<int32_t>(value)});
  }
  std::unique_ptr<Call> PutMany(const Tensor& queue, std::initializer_list<int32_t> values) {
    return calls.Start("QueueEnqueueManyV2", {queue, Tensor::Vector<int32_t>(values)});
  }
  std::unique_ptr<Call> Take(const Tensor& queue) {
    return calls.Start("QueueDequeueV2", {queue}, kInt);
  }
  std::unique_ptr<Call> TakeMany(const Tensor& queue, int32_t n) {
    return calls.Start("QueueDequeueManyV2", {queue, Tensor::Scalar<int32_t>(n)}, kInt);
  }
  std::unique_ptr<Call> TakeUpTo(const Tensor& queue, int32_t n) {
    return calls.Start("QueueDequeueUpToV2", {queue, Tensor::Scalar<int32_t>(n)}, kInt);
  }
  absl::Status Close(const Tensor& queue, bool cancel) {
    calls.Attr("cancel_pending_enqueues", cancel);
    return calls.Do("QueueCloseV2", {queue});
  }
  int32_t Size(const Tensor& queue) {
    return calls.One("QueueSizeV2", {queue}, ElementType::kInt32)->unchecked_scalar<int32_t>();
  }
  static int32_t Value(Call& call) { return call.output(0).unchecked_scalar<int32_t>(); }

  Calls calls;
};

TEST_F(QueueTest, ServesWaitersInOrder) {
  const Tensor queue = Make("FIFOQueueV2", 2);
  auto first = Take(queue), second = TakeMany(queue, 2), third = Take(queue);
  EXPECT_FALSE(first->done());
  EXPECT_EQ(PutMany(queue, {1, 2})->status(), absl::OkStatus());
  EXPECT_EQ(Value(*first), 1);
  EXPECT_FALSE(second->done());
  EXPECT_FALSE(third->done());
  EXPECT_EQ(Put(queue, 3)->status(), absl::OkStatus());
  ExpectEqual(second->output(0), Tensor::Vector<int32_t>({2, 3}));
  EXPECT_FALSE(third->done());
  EXPECT_EQ(Put(queue, 4)->status(), absl::OkStatus());
  EXPECT_EQ(Value(*third), 4);
}

TEST_F(QueueTest, EnqueuesWaitWhileItIsFull) {
  const Tensor queue = Make("FIFOQueueV2", 2);
  auto many = PutMany(queue, {1, 2, 3}), one = Put(queue, 4);
  EXPECT_FALSE(many->done());
  EXPECT_FALSE(one->done());
  EXPECT_EQ(Size(queue), 2);
  EXPECT_EQ(Value(*Take(queue)), 1);
  EXPECT_EQ(many->status(), absl::OkStatus());
  EXPECT_FALSE(one->done());
  // More than the capacity at once.
  auto taken = TakeMany(queue, 3);
  ExpectEqual(taken->output(0), Tensor::Vector<int32_t>({2, 3, 4}));
  EXPECT_EQ(one->status(), absl::OkStatus());
  EXPECT_EQ(Size(queue), 0);
}

TEST_F(QueueTest, CancelledStepsLeaveTheLine) {
  const Tensor queue = Make("FIFOQueueV2", 1);
  auto many = TakeMany(queue, 2), one = Take(queue);
  EXPECT_EQ(Put(queue, 5)->status(), absl::OkStatus());
  EXPECT_EQ(Size(queue), 0);
  EXPECT_FALSE(one->done());
  // What it had taken goes to the next one.
  many->Cancel(absl::DeadlineExceededError("too late"));
  EXPECT_EQ(many->status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Value(*one), 5);

  auto in = Put(queue, 1), waiting = Put(queue, 2), last = Put(queue, 3);
  waiting->Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(waiting->status().code(), Code::kAborted);
  EXPECT_EQ(Value(*Take(queue)), 1);
  EXPECT_EQ(Value(*Take(queue)), 3);
  EXPECT_EQ(last->status(), absl::OkStatus());
}

TEST_F(QueueTest, StepsThatAreCancelledAlreadyDoNotWait) {
  const Tensor queue = Make("FIFOQueueV2", 1);
  Kernel* kernel = calls.StepRunner::Make("QueueDequeueV2", {ElementType::kResource}, kInt).value();
  CancellationToken token;
  token.Cancel(absl::AbortedError("before"));
  StepContext step;
  step.resources = &calls.resources();
  step.cancellation = &token;
  Slot slots[2];
  slots[0].tensor = queue;
  const int32_t number = 0;
  KernelContext ctx(&step, slots, &number, 1, slots + 1, 1, 0);
  absl::Status status;
  kernel->async()->ComputeAsync(
      ctx,
      KernelDone{[](void* self, void*, absl::Status result, Player, std::unique_ptr<KernelRest>) {
                   *static_cast<absl::Status*>(self) = std::move(result);
                 },
                 &status, nullptr});
  EXPECT_EQ(status.code(), Code::kAborted);
}

TEST_F(QueueTest, ClosesAfterThoseWhoWait) {
  const Tensor queue = Make("FIFOQueueV2", 1);
  auto in = Put(queue, 1), waiting = Put(queue, 2);
  calls.Attr("cancel_pending_enqueues", false);
  auto close = calls.Start("QueueCloseV2", {queue});
  EXPECT_FALSE(close->done());
  auto late = Put(queue, 3);
  EXPECT_EQ(Value(*Take(queue)), 1);
  EXPECT_EQ(waiting->status(), absl::OkStatus());
  EXPECT_EQ(close->status(), absl::OkStatus());
  EXPECT_EQ(late->status().code(), Code::kCancelled);
  EXPECT_TRUE(calls.One("QueueIsClosedV2", {queue}, ElementType::kBool)->unchecked_scalar<bool>());
  EXPECT_EQ(Value(*Take(queue)), 2);
  EXPECT_EQ(Take(queue)->status().code(), Code::kOutOfRange);
  EXPECT_EQ(Close(queue, false).code(), Code::kCancelled);
  EXPECT_EQ(Close(queue, true), absl::OkStatus());
}

TEST_F(QueueTest, ClosingCanCancelThoseWhoPutIn) {
  const Tensor queue = Make("FIFOQueueV2", 1);
  auto in = Put(queue, 1), waiting = Put(queue, 2);
  EXPECT_EQ(Close(queue, true), absl::OkStatus());
  EXPECT_EQ(waiting->status().code(), Code::kCancelled);
  EXPECT_EQ(Put(queue, 3)->status().code(), Code::kCancelled);
  EXPECT_EQ(PutMany(queue, {})->status(), absl::OkStatus());
  EXPECT_EQ(Size(queue), 1);
}

TEST_F(QueueTest, ClosedQueuesKeepWhatIsTooLittle) {
  const Tensor queue = Make("FIFOQueueV2", 5);
  auto waiting = TakeMany(queue, 3), behind = TakeUpTo(queue, 3), none = Take(queue);
  EXPECT_EQ(PutMany(queue, {1, 2})->status(), absl::OkStatus());
  EXPECT_EQ(Close(queue, false), absl::OkStatus());
  EXPECT_EQ(waiting->status().code(), Code::kOutOfRange);
  ExpectEqual(behind->output(0), Tensor::Vector<int32_t>({1, 2}));
  EXPECT_EQ(none->status().code(), Code::kOutOfRange);
  EXPECT_EQ(TakeUpTo(queue, 1)->status().code(), Code::kOutOfRange);
  EXPECT_EQ(TakeUpTo(queue, 0)->output(0).num_elements(), 0);
}

TEST_F(QueueTest, ADestroyedQueueFailsItsWaiters) {
  const Tensor queue = Make("FIFOQueueV2", 1);
  auto taking = Take(queue);
  EXPECT_EQ(calls.resources().Destroy("", "queue"), absl::OkStatus());
  EXPECT_EQ(taking->status().code(), Code::kCancelled);
  EXPECT_EQ(Take(queue)->status().code(), Code::kNotFound);
  const Tensor again = Make("FIFOQueueV2", 1);
  EXPECT_EQ(Put(again, 1)->status(), absl::OkStatus());
  EXPECT_EQ(Value(*Take(queue)), 1);  // By its name.
  taking = Take(again);
  calls.resources().Reset("");
  EXPECT_EQ(taking->status().code(), Code::kCancelled);
}

TEST_F(QueueTest, RandomShuffleKeepsSomeToChooseFrom) {
  const Tensor queue = Make("RandomShuffleQueueV2", 200, 10);
  std::vector<int32_t> values(100);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(
      calls.Do("QueueEnqueueManyV2", {queue, Tensor::Vector<int32_t>(absl::MakeConstSpan(values))}),
      absl::OkStatus());
  auto some = TakeMany(queue, 90), more = Take(queue);
  EXPECT_TRUE(some->done());
  EXPECT_FALSE(more->done());
  EXPECT_EQ(Close(queue, false), absl::OkStatus());
  auto rest = TakeUpTo(queue, 100);
  std::vector<int32_t> taken = {Value(*more)};
  for (Call* call : {some.get(), rest.get()}) {
    for (int32_t value : call->output(0).unchecked_values<int32_t>()) taken.push_back(value);
  }
  EXPECT_FALSE(std::is_sorted(taken.begin(), taken.end()));
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, values);
}

TEST_F(QueueTest, PriorityGivesTheSmallestFirst) {
  calls.Attr("component_types", kInt)
      .Attr("shapes", std::vector<PartialShape>{PartialShape(Shape())})
      .Attr("capacity", int64_t{-1});
  const Tensor queue = calls.Make("PriorityQueueV2");
  const std::vector<ElementType> both = {ElementType::kInt64, ElementType::kInt32};
  calls.Attr("component_types", both).Attr("Tcomponents", both);
  EXPECT_EQ(calls.Do("QueueEnqueueManyV2", {queue, Tensor::Vector<int64_t>({5, -1, 3}),
                                            Tensor::Vector<int32_t>({50, 10, 30})}),
            absl::OkStatus());
  auto taken = calls.Start("QueueDequeueManyV2", {queue, Tensor::Scalar<int32_t>(3)}, both);
  ExpectEqual(taken->output(0), Tensor::Vector<int64_t>({-1, 3, 5}));
  ExpectEqual(taken->output(1), Tensor::Vector<int32_t>({10, 30, 50}));
}

TEST_F(QueueTest, PaddingFillsUpToTheLargest) {
  const std::vector<ElementType> types = {ElementType::kInt32, ElementType::kString};
  calls.Attr("component_types", types)
      .Attr("Tcomponents", types)
      .Attr("shapes", std::vector<PartialShape>{{-1, -1}, {-1}})
      .Attr("capacity", int64_t{-1});
  const Tensor queue = calls.Make("PaddingFIFOQueueV2");
  const auto put = [&](Tensor a, Tensor b) {
    return calls.Do("QueueEnqueueV2", {queue, std::move(a), std::move(b)});
  };
  EXPECT_EQ(
      put(Tensor::FromValues<int32_t>({1, 2}, {2, 1}).value(), Tensor::Vector<std::string>({"a"})),
      absl::OkStatus());
  EXPECT_EQ(
      put(Tensor::FromValues<int32_t>({3, 4}, {1, 2}).value(), Tensor::Vector<std::string>({})),
      absl::OkStatus());
  EXPECT_EQ(put(Tensor::Scalar<int32_t>(1), Tensor::Vector<std::string>({})).code(),
            Code::kInvalidArgument);
  auto taken = calls.Start("QueueDequeueManyV2", {queue, Tensor::Scalar<int32_t>(2)}, types);
  ExpectEqual(taken->output(0),
              Tensor::FromValues<int32_t>({1, 0, 2, 0, 3, 4, 0, 0}, Shape({2, 2, 2})).value());
  ExpectEqual(taken->output(1), Tensor::FromValues<std::string>({"a", ""}, Shape({2, 1})).value());
  auto none = calls.Start("QueueDequeueManyV2", {queue, Tensor::Scalar<int32_t>(0)}, types);
  EXPECT_EQ(none->output(0).shape(), Shape({0, 0, 0}));
}

TEST_F(QueueTest, RefusesWhatDoesNotFit) {
  const Tensor queue = Make("FIFOQueueV2", 3);
  const auto code = [&](const char* op, std::vector<Tensor> inputs,
                        const std::vector<ElementType>& outputs = {}) {
    return calls.Do(op, std::move(inputs), outputs).code();
  };
  const Tensor one = Tensor::Scalar<int32_t>(1);
  EXPECT_EQ(code("QueueEnqueueV2", {queue, Tensor::Scalar(1.0f)}), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueEnqueueV2", {queue, one, one}), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueEnqueueV2", {queue, Tensor::Vector<int32_t>({1})}), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueEnqueueManyV2", {queue, one}), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueDequeueV2", {queue}, {ElementType::kFloat}), Code::kInvalidArgument);
  EXPECT_EQ(TakeMany(queue, -1)->status().code(), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueDequeueManyV2", {queue, Tensor::Vector<int32_t>({1, 2})}, kInt),
            Code::kInvalidArgument);
  EXPECT_EQ(code("QueueSizeV2", {one}, kInt), Code::kInvalidArgument);
  EXPECT_EQ(code("QueueSizeV2", {Tensor::Scalar(ResourceHandle())}, kInt), Code::kNotFound);
  const auto make = [&](const char* op) {
    return calls.Run(op, {}, {ElementType::kResource}).status().code();
  };
  EXPECT_EQ(make("PaddingFIFOQueueV2"), Code::kInvalidArgument);  // Of that name, but not padding.
  calls.Attr("capacity", int64_t{4});
  EXPECT_EQ(make("FIFOQueueV2"), Code::kInvalidArgument);
  calls.Attr("shared_name", std::string("other")).Attr("min_after_dequeue", int64_t{4});
  EXPECT_EQ(make("RandomShuffleQueueV2"), Code::kInvalidArgument);
  calls.Attr("shapes", std::vector<PartialShape>{{-1}});
  EXPECT_EQ(make("FIFOQueueV2"), Code::kInvalidArgument);
  calls.Attr("timeout_ms", int64_t{5});
  EXPECT_EQ(
      calls.StepRunner::Make("QueueDequeueV2", {ElementType::kResource}, kInt).status().code(),
      Code::kInvalidArgument);
}

TEST_F(QueueTest, ManyProducersAndConsumers) {
  constexpr int kThreads = 4, kEach = 500;
  const Tensor queue = Make("FIFOQueueV2", 3);
  std::vector<std::vector<int32_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_EQ(Put(queue, t * kEach + i)->status(), absl::OkStatus());
      }
    });
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        auto given_up = Take(queue);
        given_up->Cancel(absl::CancelledError("changed my mind"));
        auto call = given_up->status().ok() ? std::move(given_up) : Take(queue);
        taken[t].push_back(Value(*call));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int32_t> all;
  for (const auto& values : taken) {
    std::vector<int32_t> last(kThreads, -1);
    for (int32_t value : values) {
      EXPECT_LT(last[value / kEach], value) << "out of order";
      last[value / kEach] = value;
      EXPECT_TRUE(all.insert(value).second) << "twice: " << value;
    }
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kEach));
}

// --- states --------------------------------------------------------------------------------------

RefPtr<Queue> Find(Calls& calls) {
  return FindWaiting<Queue>(&calls.resources(), "", "queue").value();
}
QueueState Saved(Calls& calls) {
  absl::StatusOr<QueueState> saved;
  Find(calls)->Save([&](absl::StatusOr<QueueState> state) { saved = std::move(state); });
  EXPECT_EQ(saved.status(), absl::OkStatus());
  return *std::move(saved);
}
absl::Status Restore(Calls& calls, QueueState state) {
  absl::Status restored = absl::UnknownError("");
  Find(calls)->Restore(std::move(state), [&](absl::Status status) { restored = status; });
  return restored;
}

TEST_F(QueueTest, AnotherOneGoesOnWithTheSameElements) {
  for (const char* op : {"FIFOQueueV2", "RandomShuffleQueueV2"}) {
    Tensor queue = Make(op, 5);
    EXPECT_EQ(PutMany(queue, {1, 2, 3, 4, 5})->status(), absl::OkStatus());
    Take(queue)->status().IgnoreError();
    Take(queue)->status().IgnoreError();  // In the midst of a block of random numbers.
    auto many = PutMany(queue, {6, 7, 8, 9}), one = Put(queue, 10);
    calls.Attr("cancel_pending_enqueues", false);
    auto close = calls.Start("QueueCloseV2", {queue});
    auto late = Put(queue, 11);
    const QueueState state = Saved(calls);
    EXPECT_EQ(state.elements.size(), 5u);
    EXPECT_EQ(state.waiting.size(), 3u) << "what is in already waits no more; 11 will be refused";
    EXPECT_EQ(state.num_waiting_calls, 3);
    EXPECT_TRUE(state.closing);
    EXPECT_FALSE(state.closed);
    EXPECT_FALSE(many->done()) << "saving changes nothing";

    const auto take_all = [&] {
      std::vector<int32_t> values;
      for (int i = 0; i < 8; ++i) values.push_back(Value(*Take(queue)));
      EXPECT_EQ(Take(queue)->status().code(), Code::kOutOfRange) << op;
      return values;
    };
    const std::vector<int32_t> wanted = take_all();
    EXPECT_EQ(late->status().code(), Code::kCancelled);

    EXPECT_EQ(calls.resources().Destroy("", "queue"), absl::OkStatus());
    queue = Make(op, 5);
    EXPECT_EQ(PutMany(queue, {100, 101})->status(), absl::OkStatus());
    Take(queue)->status().IgnoreError();
    EXPECT_EQ(Restore(calls, state), absl::OkStatus());
    EXPECT_EQ(Size(queue), 5);
    EXPECT_EQ(Saved(calls).waiting.size(), 3u);
    EXPECT_EQ(Saved(calls).num_waiting_calls, 0) << "they are nobody's";
    EXPECT_EQ(take_all(), wanted) << op;
    EXPECT_TRUE(Saved(calls).closed);
    const QueueState closed = Saved(calls);
    EXPECT_EQ(calls.resources().Destroy("", "queue"), absl::OkStatus());
    queue = Make(op, 5);
    auto taking = Take(queue);
    EXPECT_EQ(Restore(calls, closed), absl::OkStatus());
    EXPECT_EQ(taking->status().code(), Code::kOutOfRange);
    EXPECT_EQ(calls.resources().Destroy("", "queue"), absl::OkStatus());
  }
}

TEST_F(QueueTest, PrioritiesThatAreEqualKeepTheirOrder) {
  calls.Attr("component_types", kInt)
      .Attr("shapes", std::vector<PartialShape>{PartialShape(Shape())})
      .Attr("capacity", int64_t{-1})
      .Attr("shared_name", std::string("queue"));
  const std::vector<ElementType> both = {ElementType::kInt64, ElementType::kInt32};
  calls.Attr("Tcomponents", both);
  Tensor queue = calls.Make("PriorityQueueV2");
  for (int32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(calls.Do("QueueEnqueueV2",
                       {queue, Tensor::Scalar<int64_t>(i % 3), Tensor::Scalar<int32_t>(i)}),
              absl::OkStatus());
  }
  const QueueState state = Saved(calls);
  calls.Attr("component_types", both);
  const auto take_all = [&] {
    std::vector<int32_t> values;
    for (int i = 0; i < 20; ++i) {
      values.push_back(
          calls.Start("QueueDequeueV2", {queue}, both)->output(1).unchecked_scalar<int32_t>());
    }
    return values;
  };
  const std::vector<int32_t> wanted = take_all();
  EXPECT_EQ(Restore(calls, state), absl::OkStatus());
  EXPECT_EQ(take_all(), wanted);
  // Not as a heap has them: a file may say anything.
  QueueState reversed = state;
  std::reverse(reversed.elements.begin(), reversed.elements.end());
  EXPECT_EQ(Restore(calls, reversed), absl::OkStatus());
  std::vector<int32_t> any = take_all();
  EXPECT_TRUE(std::is_sorted(any.begin(), any.end(), [](int a, int b) { return a % 3 < b % 3; }));
}

TEST_F(QueueTest, StatesOfOtherQueuesAreRefused) {
  const Tensor queue = Make("RandomShuffleQueueV2", 5);
  EXPECT_EQ(PutMany(queue, {1, 2})->status(), absl::OkStatus());
  const QueueState state = Saved(calls);
  const auto refused = [&](auto change) {
    QueueState changed = state;
    change(&changed);
    EXPECT_EQ(Restore(calls, changed).code(), Code::kInvalidArgument);
    EXPECT_EQ(Size(queue), 2);
  };
  refused([](QueueState* s) { s->generator.clear(); });
  refused([](QueueState* s) { s->generator[0] ^= 1; });  // Another seed.
  refused([](QueueState* s) { s->generator[24] = 5; });  // More words than a block has.
  refused([](QueueState* s) { s->elements[0] = {Tensor::Scalar(1.0f)}; });
  refused([](QueueState* s) { s->waiting = {{Tensor::Vector<int32_t>({1})}}; });
  refused([](QueueState* s) { s->waiting = {{}}; });
  EXPECT_EQ(Restore(calls, state), absl::OkStatus());
  const RefPtr<Queue> held = Find(calls);
  EXPECT_EQ(calls.resources().Destroy("", "queue"), absl::OkStatus());
  held->Save([](const absl::StatusOr<QueueState>& gone) {
    EXPECT_EQ(gone.status().code(), Code::kCancelled);
  });
}

}  // namespace
}  // namespace troupe
