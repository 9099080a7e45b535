#include "kernels/sync/barrier.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/sync/reply.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using testing::MakeMachine;
using testing::Reply;
using Code = absl::StatusCode;

constexpr int64_t kFirst = INT64_MIN;

/// A barrier of floats and of vectors of two int32.
class BarrierTest : public ::testing::Test {
 protected:
  absl::Status Insert(int64_t component, std::initializer_list<std::string> keys, Tensor values) {
    Reply reply;
    barrier->Insert(component, Tensor::Vector<std::string>(keys), std::move(values), nullptr,
                    reply.done());
    return reply.Wait();
  }
  absl::Status Floats(std::initializer_list<std::string> keys,
                      std::initializer_list<float> values) {
    return Insert(0, keys, Tensor::Vector<float>(values));
  }
  absl::Status Pairs(std::initializer_list<std::string> keys,
                     std::initializer_list<int32_t> values) {
    return Insert(
        1, keys,
        Tensor::Vector<int32_t>(values).Reshaped(Shape({static_cast<int64_t>(keys.size()), 2})));
  }
  absl::Status Close(bool cancel) {
    Reply reply;
    barrier->Close(cancel, reply.done());
    return reply.Wait();
  }
  std::pair<int64_t, int64_t> Sizes() { return {barrier->ReadySize(), barrier->IncompleteSize()}; }
  using Pair = std::pair<int64_t, int64_t>;

  const RefPtr<TupleBarrier> barrier = MakeMachine<TupleBarrier>(
      BarrierOptions{{ElementType::kFloat, ElementType::kInt32}, {Shape(), Shape({2})}});
};

TEST_F(BarrierTest, GivesOutWhatIsComplete) {
  Reply two;
  barrier->Take(2, false, nullptr, two.done());
  EXPECT_EQ(Floats({"a", "b"}, {1, 2}), absl::OkStatus());
  EXPECT_EQ(Floats({"c"}, {3}), absl::OkStatus());
  EXPECT_EQ(Sizes(), Pair(0, 3));
  EXPECT_EQ(Pairs({"c"}, {5, 6}), absl::OkStatus());
  EXPECT_FALSE(two.over());
  EXPECT_EQ(Sizes(), Pair(1, 2));
  EXPECT_EQ(Pairs({"b"}, {7, 8}), absl::OkStatus());
  ASSERT_EQ(two.status(), absl::OkStatus());
  // In the order in which keys came, not in that in which they were completed.
  ExpectEqual(two.tuple()[0], Tensor::Vector<int64_t>({kFirst, kFirst + 1}));
  ExpectEqual(two.tuple()[1], Tensor::Vector<std::string>({"b", "c"}));
  ExpectEqual(two.tuple()[2], Tensor::Vector<float>({2, 3}));
  ExpectEqual(two.tuple()[3], Tensor::Vector<int32_t>({7, 8, 5, 6}).Reshaped(Shape({2, 2})));
  EXPECT_EQ(Sizes(), Pair(0, 1));
}

TEST_F(BarrierTest, AnErrorChangesNothing) {
  EXPECT_EQ(Floats({"a"}, {1}), absl::OkStatus());
  EXPECT_EQ(Floats({"b", "a"}, {1, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Floats({"b", "b"}, {1, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Sizes(), Pair(0, 1));
  const Tensor one = Tensor::Vector<float>({1});
  EXPECT_EQ(Insert(-1, {"b"}, one).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(2, {"b"}, one).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(1, {"b"}, one).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(0, {"b", "c"}, one).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(0, {"b"}, Tensor::Scalar(1.0f)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(0, {"b"}, one.Reshaped(Shape({1, 1}))).code(), Code::kInvalidArgument);
  EXPECT_EQ(Insert(1, {"b"}, Tensor::Vector<int32_t>({1, 2, 3}).Reshaped(Shape({1, 3}))).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Sizes(), Pair(0, 1));
  EXPECT_EQ(Floats({}, {}), absl::OkStatus());
  Reply negative, none;
  barrier->Take(-1, false, nullptr, negative.done());
  EXPECT_EQ(negative.code(), Code::kInvalidArgument);
  barrier->Take(0, false, nullptr, none.done());
  EXPECT_EQ(none.tuple()[3].shape(), Shape({0, 2}));
}

TEST_F(BarrierTest, ClosedItMayBeCompleted) {
  EXPECT_EQ(Floats({"a", "b"}, {1, 2}), absl::OkStatus());
  Reply waits;
  barrier->Take(2, false, nullptr, waits.done());
  EXPECT_EQ(Close(false), absl::OkStatus());
  EXPECT_EQ(Close(false).code(), Code::kCancelled);
  EXPECT_EQ(Floats({"new"}, {1}).code(), Code::kCancelled);
  EXPECT_EQ(Pairs({"a", "new"}, {1, 2, 3, 4}).code(), Code::kCancelled);
  EXPECT_EQ(Pairs({"a"}, {1, 2}), absl::OkStatus());
  EXPECT_FALSE(waits.over());
  EXPECT_EQ(Pairs({"b"}, {3, 4}), absl::OkStatus());
  EXPECT_EQ(waits.code(), Code::kOk);
  Reply none;
  barrier->Take(1, false, nullptr, none.done());
  EXPECT_EQ(none.code(), Code::kOutOfRange);
}

TEST_F(BarrierTest, ClosedItGivesSmallBatchesToWhoAsks) {
  EXPECT_EQ(Floats({"a", "b", "c"}, {1, 2, 3}), absl::OkStatus());
  EXPECT_EQ(Pairs({"a"}, {1, 2}), absl::OkStatus());
  Reply many, small, late, last;
  barrier->Take(4, false, nullptr, many.done());
  barrier->Take(4, true, nullptr, small.done());
  EXPECT_EQ(Close(false), absl::OkStatus());
  EXPECT_EQ(many.code(), Code::kOutOfRange);  // There are but three.
  ASSERT_EQ(small.code(), Code::kOk);
  EXPECT_EQ(small.tuple()[1].num_elements(), 1);
  // As in TensorFlow, who comes now does not wait for what is incomplete.
  barrier->Take(1, true, nullptr, late.done());
  EXPECT_EQ(late.code(), Code::kOutOfRange);
  EXPECT_EQ(Close(true), absl::OkStatus());
  EXPECT_EQ(Close(true).code(), Code::kCancelled);
  EXPECT_EQ(Sizes(), Pair(0, 0));
  EXPECT_EQ(Pairs({"b"}, {1, 2}).code(), Code::kCancelled);
  barrier->Take(1, false, nullptr, last.done());
  EXPECT_EQ(last.code(), Code::kOutOfRange);
}

TEST_F(BarrierTest, ATokenOrTheContainerEndsTheWait) {
  CancellationToken token;
  Reply cancelled, next, after;
  barrier->Take(1, false, &token, cancelled.done());
  barrier->Take(1, false, nullptr, next.done());
  token.Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(cancelled.code(), Code::kAborted);
  EXPECT_EQ(Floats({"a"}, {1}), absl::OkStatus());
  EXPECT_EQ(Pairs({"a"}, {1, 2}), absl::OkStatus());
  EXPECT_EQ(next.code(), Code::kOk);
  barrier->Take(1, false, nullptr, after.done());
  barrier->Abandon();
  EXPECT_EQ(after.code(), Code::kCancelled);
}

/// Threads put in components in any order, and take at random, with cancellations: each key comes
/// out once.
TEST_F(BarrierTest, EachKeyComesOutOnce) {
  constexpr int kKeys = 2'000;
  std::vector<std::thread> threads;
  for (int component = 0; component < 2; ++component) {
    threads.emplace_back([&, component] {
      std::vector<int> order(kKeys);
      for (int i = 0; i < kKeys; ++i) order[i] = i;
      std::mt19937 random(component);
      std::shuffle(order.begin(), order.end(), random);
      for (const int key : order) {
        const Tensor values = component == 0
                                  ? Tensor::Vector<float>({static_cast<float>(key)})
                                  : Tensor::Vector<int32_t>({key, -key}).Reshaped(Shape({1, 2}));
        EXPECT_EQ(Insert(component, {std::to_string(key)}, values), absl::OkStatus());
      }
    });
  }
  std::set<std::string> seen;
  std::mt19937 random(7);
  while (seen.size() < kKeys) {
    CancellationToken token;
    Reply reply;
    const int64_t most = std::min<int64_t>(8, kKeys - static_cast<int64_t>(seen.size()));
    barrier->Take(1 + static_cast<int64_t>(random() % most), false, &token, reply.done());
    if (random() % 2 == 0) token.Cancel(absl::AbortedError("at a random moment"));
    if (!reply.Wait().ok()) continue;
    const Tuple& tuple = reply.tuple();
    for (int64_t i = 0; i < tuple[1].num_elements(); ++i) {
      const std::string& key = tuple[1].unchecked_data<std::string>()[i];
      EXPECT_TRUE(seen.insert(key).second) << key << " came twice";
      EXPECT_EQ(std::to_string(static_cast<int>(tuple[2].unchecked_data<float>()[i])), key);
      EXPECT_EQ(std::to_string(tuple[3].unchecked_data<int32_t>()[2 * i]), key);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Sizes(), Pair(0, 0));
}

BarrierState Saved(TupleBarrier& barrier) {
  absl::StatusOr<BarrierState> saved;
  barrier.Save([&](absl::StatusOr<BarrierState> state) { saved = std::move(state); });
  EXPECT_EQ(saved.status(), absl::OkStatus());
  return *std::move(saved);
}
absl::Status Restored(TupleBarrier& barrier, BarrierState state) {
  absl::Status restored = absl::UnknownError("");
  barrier.Restore(std::move(state), [&](absl::Status status) { restored = status; });
  return restored;
}

TEST_F(BarrierTest, AnotherOneGoesOnWithTheSameTuples) {
  EXPECT_EQ(Floats({"b", "a"}, {2, 1}), absl::OkStatus());
  EXPECT_EQ(Pairs({"c"}, {5, 6}), absl::OkStatus());
  EXPECT_EQ(Pairs({"a", "b"}, {1, 2, 3, 4}), absl::OkStatus());
  EXPECT_EQ(Pairs({"d"}, {7, 8}), absl::OkStatus());
  const BarrierState state = Saved(*barrier);
  EXPECT_EQ(Sizes(), Pair(2, 2)) << "a save changes nothing";

  const auto other = MakeMachine<TupleBarrier>(barrier->options());
  EXPECT_EQ(Restored(*other, state), absl::OkStatus());
  Reply ready, next;
  other->Take(2, false, nullptr, ready.done());
  ASSERT_EQ(ready.status(), absl::OkStatus());
  ExpectEqual(ready.tuple()[0], Tensor::Vector<int64_t>({kFirst, kFirst}));
  ExpectEqual(ready.tuple()[1], Tensor::Vector<std::string>({"a", "b"}));
  ExpectEqual(ready.tuple()[2], Tensor::Vector<float>({1, 2}));
  other->Take(1, false, nullptr, next.done());
  Reply completed;
  other->Insert(0, Tensor::Vector<std::string>({"e", "c"}), Tensor::Vector<float>({9, 8}), nullptr,
                completed.done());
  ASSERT_EQ(next.status(), absl::OkStatus());
  ExpectEqual(next.tuple()[0], Tensor::Vector<int64_t>({kFirst + 1}));
  EXPECT_EQ(Saved(*other).incomplete.back().index, kFirst + 3) << "indices go on";

  EXPECT_EQ(Close(false), absl::OkStatus());
  EXPECT_EQ(Restored(*other, Saved(*barrier)), absl::OkStatus());
  Reply closed;
  other->Insert(0, Tensor::Vector<std::string>({"f"}), Tensor::Vector<float>({1}), nullptr,
                closed.done());
  EXPECT_EQ(closed.code(), Code::kCancelled);

  for (int i = 0; i < 9; ++i) {
    BarrierState wrong = state;
    if (i == 0) wrong.ready[0].values.pop_back();
    if (i == 1) wrong.ready[0].values[0].Reset();
    if (i == 2) wrong.ready[1].values[0] = Tensor::Vector<float>({1});
    if (i == 3) wrong.ready[1].values[0] = Tensor::Scalar<int32_t>(1);
    if (i == 4) wrong.incomplete[0].values[1].Reset();
    if (i == 5) wrong.incomplete[0].values[0] = Tensor::Scalar(1.0f);
    if (i == 6) wrong.incomplete[0].key = wrong.incomplete[1].key;
    if (i == 7) wrong.incomplete[0].index = wrong.next_index;
    if (i == 8) wrong.next_index = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(Restored(*other, wrong).code(), Code::kInvalidArgument) << i;
    EXPECT_EQ(other->ReadySize(), 2) << i;
  }
}

}  // namespace
}  // namespace troupe
