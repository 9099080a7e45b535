#include "actors/state/waiting_role.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "actors/state/containers.h"
#include "kernels/queues/accumulator.h"
#include "kernels/queues/queue.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using Code = absl::StatusCode;
using Result = absl::StatusOr<Tuple>;

/// What a call was told, once.
class Reply {
 public:
  WaitingResource::Done done() {
    return [this](Result result) {
      EXPECT_FALSE(result_.has_value()) << "done twice";
      result_ = std::move(result);
    };
  }
  bool over() const { return result_.has_value(); }
  Code code() const { return result_.has_value() ? result_->status().code() : Code::kUnknown; }
  const Tuple& tuple() const { return result_->value(); }
  int64_t value() const { return tuple()[0].unchecked_scalar<int64_t>(); }

 private:
  std::optional<Result> result_;
};

Tuple Number(int64_t value) { return {Tensor::Scalar<int64_t>(value)}; }

class QueueRoleTest : public ::testing::Test {
 protected:
  RefPtr<Queue> Make(int64_t capacity) {
    QueueOptions options;
    options.types = {ElementType::kInt64};
    options.shapes = {PartialShape(Shape())};
    options.capacity = capacity;
    auto made = containers_.FindOrCreate("", "queue", [&]() -> absl::StatusOr<RefPtr<Resource>> {
      return containers_.MakeQueue("queue", options);
    });
    EXPECT_TRUE(made.ok());
    return FindWaiting<Queue>(&containers_, "", "queue").value();
  }

  Containers containers_;
  CancellationToken token_;
};

TEST_F(QueueRoleTest, ServesWhoIsNoKernel) {
  const RefPtr<Queue> queue = Make(2);
  Reply one, many, waits, taken, two, rest;
  queue->Enqueue(Number(1), nullptr, one.done());
  EXPECT_EQ(one.code(), Code::kOk);
  EXPECT_EQ(one.tuple().size(), 0u);
  queue->EnqueueMany({Tensor::Vector<int64_t>({2, 3, 4})}, &token_, many.done());
  queue->Enqueue(Number(5), &token_, waits.done());
  EXPECT_FALSE(many.over() || waits.over());
  EXPECT_EQ(queue->Size(), 2);
  queue->Dequeue(nullptr, taken.done());
  EXPECT_EQ(taken.value(), 1);
  queue->DequeueMany(2, false, nullptr, two.done());
  ExpectEqual(two.tuple()[0], Tensor::Vector<int64_t>({2, 3}));
  EXPECT_EQ(many.code(), Code::kOk);
  EXPECT_EQ(waits.code(), Code::kOk);
  Reply closed;
  queue->Close(false, closed.done());
  EXPECT_EQ(closed.code(), Code::kOk);
  EXPECT_TRUE(queue->closed());
  queue->DequeueMany(3, true, nullptr, rest.done());
  ExpectEqual(rest.tuple()[0], Tensor::Vector<int64_t>({4, 5}));
  Reply drained, refused;
  queue->Dequeue(&token_, drained.done());
  EXPECT_EQ(drained.code(), Code::kOutOfRange);
  queue->Enqueue(Number(6), &token_, refused.done());
  EXPECT_EQ(refused.code(), Code::kCancelled);
}

TEST_F(QueueRoleTest, RefusesWhatDoesNotFit) {
  const RefPtr<Queue> queue = Make(2);
  const auto code = [&](Tuple tuple, bool many) {
    Reply reply;
    if (many) {
      queue->EnqueueMany(std::move(tuple), nullptr, reply.done());
    } else {
      queue->Enqueue(std::move(tuple), nullptr, reply.done());
    }
    return reply.code();
  };
  EXPECT_EQ(code({}, false), Code::kInvalidArgument);
  EXPECT_EQ(code({}, true), Code::kInvalidArgument);
  EXPECT_EQ(code({Tensor()}, false), Code::kInvalidArgument);
  EXPECT_EQ(code({Tensor::Scalar(1.0f)}, false), Code::kInvalidArgument);
  EXPECT_EQ(code(Number(1), true), Code::kInvalidArgument);
  EXPECT_EQ(code({Tensor::Vector<int64_t>({1})}, false), Code::kInvalidArgument);
  EXPECT_EQ(code({Tensor::Vector<int64_t>({})}, true), Code::kOk);
  Reply negative, none;
  queue->DequeueMany(-1, false, nullptr, negative.done());
  EXPECT_EQ(negative.code(), Code::kInvalidArgument);
  queue->DequeueMany(0, false, nullptr, none.done());
  EXPECT_EQ(none.tuple()[0].shape(), Shape({0}));
  EXPECT_EQ(queue->Size(), 0);
  EXPECT_EQ(FindWaiting<Queue>(&containers_, "", "other").status().code(), Code::kNotFound);
  EXPECT_EQ(FindWaiting<Accumulator>(&containers_, "", "queue").status().code(),
            Code::kInvalidArgument);
}

TEST_F(QueueRoleTest, ATokenEndsTheWait) {
  const RefPtr<Queue> queue = Make(1);
  CancellationToken others;
  Reply first, many, second, full;
  queue->DequeueMany(2, false, &token_, many.done());
  queue->Dequeue(&others, second.done());
  queue->Enqueue(Number(1), nullptr, first.done());
  EXPECT_FALSE(many.over() || second.over());
  token_.Cancel(absl::DeadlineExceededError("late"));
  EXPECT_EQ(many.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(second.value(), 1);  // What the other one had taken.
  Reply in, too_late;
  queue->Enqueue(Number(2), nullptr, in.done());
  queue->Enqueue(Number(3), &others, full.done());
  queue->Enqueue(Number(4), &token_, too_late.done());
  EXPECT_EQ(too_late.code(), Code::kDeadlineExceeded);
  others.Cancel(absl::AbortedError("gone"));
  EXPECT_EQ(full.code(), Code::kAborted);
  EXPECT_EQ(queue->Size(), 1);
}

TEST_F(QueueRoleTest, WhoWaitsLearnsThatItIsGone) {
  const RefPtr<Queue> queue = Make(1);
  Reply waits, late;
  queue->Dequeue(nullptr, waits.done());
  EXPECT_EQ(containers_.Destroy("", "queue"), absl::OkStatus());
  EXPECT_EQ(waits.code(), Code::kCancelled);
  queue->Enqueue(Number(1), nullptr, late.done());
  EXPECT_EQ(late.code(), Code::kCancelled);
  EXPECT_EQ(FindWaiting<Queue>(&containers_, "", "queue").status().code(), Code::kNotFound);
}

TEST_F(QueueRoleTest, ACallbackMayCallTheQueue) {
  const RefPtr<Queue> queue = Make(1);
  int64_t sum = 0;
  std::function<void(Result)> next = [&](Result result) {
    if (!result.ok()) return;
    sum += (*result)[0].unchecked_scalar<int64_t>();
    queue->Dequeue(&token_, next);
  };
  queue->Dequeue(&token_, next);
  for (int64_t i = 1; i <= 100; ++i) {
    Reply put;
    queue->Enqueue(Number(i), nullptr, put.done());
    EXPECT_EQ(put.code(), Code::kOk);
  }
  EXPECT_EQ(sum, 5050);
  token_.Cancel(absl::CancelledError("enough"));
}

/// Lets everyone pass, but the first one only when it is open.
class Gate : public WaitingResource {
 public:
  Gate() : WaitingResource("gate") {}
  std::string DebugString() const override { return "gate"; }

  class Passing : public Call {
   public:
    explicit Passing(Gate* gate) : Call(gate, 0) {}

   private:
    absl::StatusOr<Progress> Serve() override {
      auto* gate = static_cast<Gate*>(resource());
      if (!std::exchange(gate->blocked_, true)) {
        gate->entered.set_value();
        gate->open.get_future().wait();
      }
      return Progress::kOver;
    }
  };

  std::promise<void> entered, open;

 private:
  bool blocked_ = false;
};

TEST(WaitingRole, AMessageToABusyOneHoldsNoThread) {
  const auto gate = MakeRef<WaitingRole<Gate>>();
  CancellationToken token;
  std::thread::id served[3];
  absl::Status status[3];
  const auto pass = [&](int i, CancellationToken* cancellation) {
    Gate::Submit(std::make_unique<CallbackCall<Gate::Passing>>(
        static_cast<Gate*>(gate.get()), cancellation, 0, [&, i](Result result) {
          served[i] = std::this_thread::get_id();
          status[i] = result.status();
        }));
  };
  std::thread player([&] { pass(0, nullptr); });
  const std::thread::id player_id = player.get_id();
  gate->entered.get_future().wait();
  pass(1, nullptr);
  pass(2, &token);
  token.Cancel(absl::AbortedError("not me"));
  EXPECT_EQ(served[1], std::thread::id());
  EXPECT_EQ(served[2], std::thread::id());
  gate->open.set_value();
  player.join();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(served[i], player_id);
  EXPECT_EQ(status[0], absl::OkStatus());
  EXPECT_EQ(status[1], absl::OkStatus());
}

// Every element that is in comes out once, in the order of its producer, whoever gives up
// meanwhile.
TEST_F(QueueRoleTest, NothingIsLostAmongThreadsThatGiveUp) {
  constexpr int kThreads = 3, kEach = 2000;
  const RefPtr<Queue> queue = Make(4);
  std::vector<std::vector<int64_t>> acknowledged(kThreads), taken(kThreads);
  const auto ask = [](bool gives_up, const auto& call) {
    CancellationToken token;
    const auto reply = std::make_shared<std::promise<Result>>();
    call(&token, [reply](Result result) { reply->set_value(std::move(result)); });
    if (gives_up) token.Cancel(absl::CancelledError("changed my mind"));
    return reply->get_future().get();
  };
  std::vector<std::thread> producers, consumers;
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < kEach; ++i) {
        const int64_t number = t * kEach + i;
        if (ask(random() % 4 == 0, [&](CancellationToken* token, Queue::Done done) {
              queue->Enqueue(Number(number), token, std::move(done));
            }).ok()) {
          acknowledged[t].push_back(number);
        }
      }
    });
    consumers.emplace_back([&, t] {
      std::minstd_rand random(t + 100);
      while (true) {
        const Result result = ask(random() % 4 == 0, [&](CancellationToken* token,
                                                         Queue::Done done) {
          queue->DequeueMany(1 + static_cast<int64_t>(random() % 3), true, token, std::move(done));
        });
        if (result.status().code() == Code::kOutOfRange) return;
        if (!result.ok()) continue;
        for (int64_t value : (*result)[0].unchecked_values<int64_t>()) taken[t].push_back(value);
      }
    });
  }
  for (std::thread& thread : producers) thread.join();
  Reply closed;
  queue->Close(false, closed.done());
  for (std::thread& thread : consumers) thread.join();
  std::set<int64_t> all, in;
  for (const auto& values : acknowledged) in.insert(values.begin(), values.end());
  for (const auto& values : taken) {
    std::vector<int64_t> last(kThreads, -1);
    for (int64_t value : values) {
      EXPECT_LT(last[value / kEach], value) << "out of order";
      last[value / kEach] = value;
      EXPECT_TRUE(all.insert(value).second) << "twice: " << value;
    }
  }
  EXPECT_EQ(all, in);
  EXPECT_EQ(queue->Size(), 0);
}

class AccumulatorRoleTest : public ::testing::Test {
 protected:
  RefPtr<Accumulator> Make(bool sparse) {
    auto made = containers_.FindOrCreate("", "sum", [&]() -> absl::StatusOr<RefPtr<Resource>> {
      return containers_.MakeAccumulator("sum",
                                         {ElementType::kFloat, PartialShape(), true, sparse});
    });
    EXPECT_TRUE(made.ok());
    return FindWaiting<Accumulator>(&containers_, "", "sum").value();
  }
  static Code Apply(Accumulator& accumulator, int64_t step, Tuple gradient) {
    Reply reply;
    accumulator.ApplyGradient(step, std::move(gradient), nullptr, reply.done());
    return reply.code();
  }

  Containers containers_;
  CancellationToken token_;
};

TEST_F(AccumulatorRoleTest, ServesWhoIsNoKernel) {
  const RefPtr<Accumulator> sum = Make(false);
  Reply both, none, cancelled, last;
  sum->TakeGradient(0, nullptr, none.done());
  EXPECT_EQ(none.code(), Code::kInvalidArgument);
  sum->TakeGradient(2, nullptr, both.done());
  sum->TakeGradient(1, &token_, cancelled.done());
  EXPECT_EQ(Apply(*sum, 0, {Tensor::Vector<float>({1, 2})}), Code::kOk);
  EXPECT_EQ(sum->NumAccumulated(), 1);
  EXPECT_FALSE(both.over());
  EXPECT_EQ(Apply(*sum, 0, {Tensor::Vector<float>({3, 6})}), Code::kOk);
  ExpectEqual(both.tuple()[0], Tensor::Vector<float>({2, 4}));
  token_.Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(cancelled.code(), Code::kAborted);
  EXPECT_EQ(Apply(*sum, 0, {Tensor::Vector<float>({1, 2})}), Code::kOk);  // Stale.
  EXPECT_EQ(sum->NumAccumulated(), 0);
  sum->SetGlobalStep(7);
  EXPECT_EQ(Apply(*sum, 6, {Tensor::Vector<float>({1, 2})}), Code::kOk);
  EXPECT_EQ(sum->NumAccumulated(), 0);
  // Large enough to be added by whoever asks.
  const Shape large({(4 << 20) / 4});
  for (float value : {1.0f, 2.0f}) {
    Tensor gradient = Tensor::Allocate(ElementType::kFloat, large).value();
    for (float& element : gradient.mutable_values<float>()) element = value;
    EXPECT_EQ(Apply(*sum, 7, {std::move(gradient)}), Code::kOk);
  }
  EXPECT_EQ(Apply(*sum, 7, {Tensor::Scalar(1.0f)}), Code::kInvalidArgument);
  EXPECT_EQ(sum->NumAccumulated(), 2);
  sum->TakeGradient(2, nullptr, last.done());
  EXPECT_EQ(last.tuple()[0].unchecked_values<float>()[large.num_elements() - 1], 1.5f);
}

TEST_F(AccumulatorRoleTest, RefusesWhatDoesNotFit) {
  const RefPtr<Accumulator> dense = Make(false);
  EXPECT_EQ(Apply(*dense, 0, {}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*dense, 0, {Tensor()}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*dense, 0, Number(1)), Code::kInvalidArgument);
  containers_.ResetAll();
  EXPECT_EQ(Apply(*dense, 0, {Tensor::Scalar(1.0f)}), Code::kCancelled);
  const RefPtr<Accumulator> sparse = Make(true);
  const Tensor rows = Tensor::Vector<int64_t>({2}), values = Tensor::Vector<float>({3});
  EXPECT_EQ(Apply(*sparse, 0, {values}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*sparse, 0, {rows, rows, rows}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*sparse, 0, {values, values, rows}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*sparse, 0, {rows, values, values}), Code::kInvalidArgument);
  EXPECT_EQ(Apply(*sparse, 0, {rows, values, Tensor::Vector<int64_t>({5})}), Code::kOk);
  Reply taken;
  sparse->TakeGradient(1, nullptr, taken.done());
  ASSERT_EQ(taken.tuple().size(), 3u);
  ExpectEqual(taken.tuple()[0], rows);
  ExpectEqual(taken.tuple()[1], values);
}

}  // namespace
}  // namespace troupe
