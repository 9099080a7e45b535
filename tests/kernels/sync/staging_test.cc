#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/sync/staging_area.h"
#include "kernels/sync/staging_map.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/queues/calls.h"
#include "tests/kernels/sync/reply.h"

namespace troupe {
namespace {

using testing::Calls;
using testing::ExpectEqual;
using testing::MakeMachine;
using testing::Reply;
using Code = absl::StatusCode;

const std::vector<ElementType> kFloat = {ElementType::kFloat};

Tuple Floats(std::initializer_list<float> values) { return {Tensor::Vector<float>(values)}; }

float FirstOf(Reply& reply) { return reply.tuple()[0].unchecked_data<float>()[0]; }

// --- areas ---------------------------------------------------------------------------------------

TEST(TupleStage, GivesOutInOrder) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{});
  Reply third_seen, first, second, put1, put2, put3;
  area->LookAt(2, kFloat, nullptr, third_seen.done());
  area->Take(kFloat, nullptr, first.done());  // Does not wait for the one before it.
  area->Put(Floats({1}), nullptr, put1.done());
  EXPECT_EQ(FirstOf(first), 1);
  EXPECT_FALSE(third_seen.over());
  area->Put(Floats({2}), nullptr, put2.done());
  area->Put(Floats({3}), nullptr, put3.done());
  EXPECT_FALSE(third_seen.over());
  Reply put4;
  area->Put(Floats({4}), nullptr, put4.done());
  EXPECT_EQ(FirstOf(third_seen), 4);
  EXPECT_EQ(area->Size(), 3);
  area->Take(kFloat, nullptr, second.done());
  EXPECT_EQ(FirstOf(second), 2);
  Reply cleared;
  area->Clear(cleared.done());
  EXPECT_EQ(cleared.code(), Code::kOk);
  EXPECT_EQ(area->Size(), 0);
}

TEST(TupleStage, LimitsTuplesAndBytes) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{2, 16});
  Reply too_much, one, two, waits, behind, taken;
  area->Put(Floats({1, 2, 3, 4, 5}), nullptr, too_much.done());
  EXPECT_EQ(too_much.code(), Code::kResourceExhausted);
  area->Put(Floats({1, 2, 3}), nullptr, one.done());
  area->Put(Floats({1, 2}), nullptr, waits.done());  // 20 bytes.
  area->Put(Floats({3}), nullptr, behind.done());
  EXPECT_FALSE(waits.over() || behind.over());
  area->Take(kFloat, nullptr, taken.done());
  EXPECT_EQ(waits.code(), Code::kOk);
  EXPECT_EQ(behind.code(), Code::kOk);
  area->Put(Floats({9}), nullptr, two.done());  // A third tuple.
  EXPECT_FALSE(two.over());
  Reply cleared;
  area->Clear(cleared.done());
  EXPECT_EQ(two.code(), Code::kOk);
  EXPECT_EQ(area->Size(), 1);
  // Strings count with what they hold.
  Reply strings;
  area->Put({Tensor::Vector<std::string>({std::string(17, 'x')})}, nullptr, strings.done());
  EXPECT_EQ(strings.code(), Code::kResourceExhausted);
}

TEST(TupleStage, WhatDoesNotFitStays) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{});
  Reply put, type, count, negative, taken;
  area->Put(Floats({1}), nullptr, put.done());
  area->Take({ElementType::kInt32}, nullptr, type.done());
  EXPECT_EQ(type.code(), Code::kInvalidArgument);
  area->Take({ElementType::kFloat, ElementType::kFloat}, nullptr, count.done());
  EXPECT_EQ(count.code(), Code::kInvalidArgument);
  area->LookAt(-1, kFloat, nullptr, negative.done());
  EXPECT_EQ(negative.code(), Code::kInvalidArgument);
  area->Take(kFloat, nullptr, taken.done());
  EXPECT_EQ(FirstOf(taken), 1);
}

TEST(TupleStage, ATokenOrTheContainerEndsTheWait) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{1, 0});
  CancellationToken token;
  Reply in, puts, takes, seen, last;
  area->Put(Floats({1}), nullptr, in.done());
  area->Put(Floats({2}), &token, puts.done());
  area->LookAt(5, kFloat, &token, seen.done());
  token.Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(puts.code(), Code::kAborted);
  EXPECT_EQ(seen.code(), Code::kAborted);
  area->Take(kFloat, nullptr, takes.done());
  EXPECT_EQ(FirstOf(takes), 1);
  area->Take(kFloat, nullptr, last.done());
  area->Abandon();
  EXPECT_EQ(last.code(), Code::kCancelled);
}

TEST(TupleStage, NodesFindItByName) {
  Calls calls;
  calls.Attr("dtypes", kFloat)
      .Attr("capacity", int64_t{0})
      .Attr("memory_limit", int64_t{0})
      .Attr("container", std::string())
      .Attr("shared_name", std::string("area"));
  auto waiting = calls.Start("Unstage", {}, kFloat);
  EXPECT_FALSE(waiting->done());
  EXPECT_EQ(calls.Do("Stage", {Tensor::Scalar(5.0f)}), absl::OkStatus());
  EXPECT_EQ(waiting->output(0).unchecked_scalar<float>(), 5);
  // Emptied containers hold another area.
  EXPECT_EQ(calls.Do("Stage", {Tensor::Scalar(6.0f)}), absl::OkStatus());
  calls.resources().Reset("");
  EXPECT_EQ(calls.One("StageSize", {}, ElementType::kInt32)->unchecked_scalar<int32_t>(), 0);
}

/// Each tuple comes out once, whoever is cancelled.
TEST(TupleStage, EachTupleComesOutOnce) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{3, 0});
  constexpr int kTuples = 3'000;
  std::vector<int> seen(kTuples, 0);
  std::thread puts([&] {
    std::mt19937 random(1);
    for (int i = 0; i < kTuples;) {
      CancellationToken token;
      Reply reply;
      area->Put(Floats({static_cast<float>(i)}), &token, reply.done());
      if (random() % 4 == 0) token.Cancel(absl::AbortedError("at a random moment"));
      if (reply.Wait().ok()) ++i;
    }
  });
  std::mt19937 random(2);
  for (int next = 0; next < kTuples;) {
    CancellationToken token;
    Reply reply;
    area->Take(kFloat, &token, reply.done());
    if (random() % 4 == 0) token.Cancel(absl::AbortedError("at a random moment"));
    if (!reply.Wait().ok()) continue;
    ASSERT_EQ(FirstOf(reply), next);
    ++next;
  }
  puts.join();
  EXPECT_EQ(area->Size(), 0);
}

// --- maps ----------------------------------------------------------------------------------------

const std::vector<ElementType> kPair = {ElementType::kFloat, ElementType::kInt32};

class StagingMapTest : public ::testing::Test {
 protected:
  static Tensor F(float value) { return Tensor::Scalar(value); }
  static Tensor I(int32_t value) { return Tensor::Scalar(value); }
  static absl::Status Put(StagingMap* map, int64_t key, std::vector<int64_t> indices,
                          Tuple values) {
    Reply reply;
    map->Put(key, kPair, std::move(indices), std::move(values), nullptr, reply.done());
    return reply.Wait();
  }
  static absl::Status Take(StagingMap* map, int64_t key, std::vector<int64_t> indices,
                           std::vector<ElementType> types) {
    Reply reply;
    map->Take(key, std::move(indices), std::move(types), nullptr, reply.done());
    return reply.Wait();
  }
  const RefPtr<StagingMap> map = MakeMachine<StagingMap>(StagingMapOptions{});
};

TEST_F(StagingMapTest, EveryoneWaitsForAKeyOfTheirOwn) {
  Reply second, first, any;
  map->Take(2, {0, 1}, kPair, nullptr, second.done());
  map->Take(1, {0, 1}, kPair, nullptr, first.done());
  EXPECT_EQ(Put(map.get(), 1, {0, 1}, {F(1), I(10)}), absl::OkStatus());
  EXPECT_TRUE(first.over());
  EXPECT_FALSE(second.over());
  EXPECT_EQ(Put(map.get(), 2, {0, 1}, {F(2), I(20)}), absl::OkStatus());
  EXPECT_EQ(second.tuple()[1].unchecked_scalar<int32_t>(), 20);
  EXPECT_EQ(Put(map.get(), 9, {0, 1}, {F(9), I(90)}), absl::OkStatus());
  EXPECT_EQ(Put(map.get(), -3, {0, 1}, {F(3), I(30)}), absl::OkStatus());
  map->TakeFirst({0, 1}, kPair, nullptr, any.done());
  EXPECT_EQ(any.tuple()[0].unchecked_scalar<int64_t>(), -3);
  EXPECT_EQ(any.tuple()[2].unchecked_scalar<int32_t>(), 30);
  EXPECT_EQ(map->Size(), 1);
}

TEST_F(StagingMapTest, TuplesComeAndGoByParts) {
  Reply waits;
  map->LookAt(5, {1}, {ElementType::kInt32}, nullptr, waits.done());
  EXPECT_EQ(Put(map.get(), 5, {1}, {I(50)}), absl::OkStatus());
  EXPECT_EQ(map->IncompleteSize(), 1);
  EXPECT_FALSE(waits.over());
  EXPECT_EQ(Put(map.get(), 5, {1}, {I(51)}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Put(map.get(), 5, {0}, {F(5)}), absl::OkStatus());
  EXPECT_EQ(waits.tuple()[0].unchecked_scalar<int32_t>(), 50);
  EXPECT_EQ(map->IncompleteSize(), 0);
  EXPECT_EQ(Take(map.get(), 5, {0}, kFloat), absl::OkStatus());
  EXPECT_EQ(map->Size(), 1);
  EXPECT_EQ(Take(map.get(), 5, {0}, kFloat).code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(map.get(), 5, {0, 1}, kPair).code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(map.get(), 5, {1}, {ElementType::kInt32}), absl::OkStatus());
  EXPECT_EQ(map->Size(), 0);
}

TEST_F(StagingMapTest, RefusesWhatDoesNotFit) {
  const auto refused = [&](std::vector<int64_t> indices, Tuple values) {
    return Put(map.get(), 1, std::move(indices), std::move(values)).code();
  };
  EXPECT_EQ(refused({1, 0}, {I(1), F(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({0, 0}, {F(1), F(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({2}, {F(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({-1}, {F(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({0}, {I(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({0}, {F(1), I(1)}), Code::kInvalidArgument);
  EXPECT_EQ(refused({0, 1}, {F(1)}), Code::kInvalidArgument);
  EXPECT_EQ(map->Size() + map->IncompleteSize(), 0);
  EXPECT_EQ(refused({0, 1}, {F(1), I(1)}), Code::kOk);
  EXPECT_EQ(refused({0, 1}, {F(2), I(2)}), Code::kInvalidArgument);  // It is there.
  EXPECT_EQ(Take(map.get(), 1, {2}, kFloat).code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(map.get(), 1, {0}, {ElementType::kInt32}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(map.get(), 1, {0, 1}, kFloat).code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(map.get(), 1, {1, 0}, {ElementType::kInt32, ElementType::kFloat}).code(),
            Code::kInvalidArgument);
  Reply other;
  map->Put(2, {ElementType::kFloat}, {0}, {F(1)}, nullptr, other.done());
  EXPECT_EQ(other.code(), Code::kInvalidArgument);  // Tuples of another size.
  EXPECT_EQ(Take(map.get(), 1, {0, 1}, kPair), absl::OkStatus());
}

TEST_F(StagingMapTest, WhoCompletesATupleNeedsNoRoom) {
  const auto small = MakeMachine<StagingMap>(StagingMapOptions{1, 0});
  EXPECT_EQ(Put(small.get(), 1, {0}, {F(1)}), absl::OkStatus());
  EXPECT_EQ(Put(small.get(), 2, {0, 1}, {F(2), I(2)}), absl::OkStatus());
  Reply waits, first;
  small->Put(3, kPair, {0, 1}, {F(3), I(3)}, nullptr, waits.done());
  EXPECT_FALSE(waits.over());
  small->Take(1, {0, 1}, kPair, nullptr, first.done());
  EXPECT_EQ(Put(small.get(), 1, {1}, {I(1)}), absl::OkStatus());
  EXPECT_TRUE(first.over());
  EXPECT_FALSE(waits.over());
  EXPECT_EQ(Take(small.get(), 2, {0, 1}, kPair), absl::OkStatus());
  EXPECT_EQ(waits.code(), Code::kOk);
}

TEST_F(StagingMapTest, LimitsBytes) {
  const auto small = MakeMachine<StagingMap>(StagingMapOptions{0, 12});
  EXPECT_EQ(Put(small.get(), 1, {0, 1}, {Tensor::Vector<float>({1, 2, 3}), I(1)}).code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Put(small.get(), 1, {0, 1}, {F(1), I(1)}), absl::OkStatus());
  Reply waits;
  small->Put(2, kPair, {0, 1}, {F(2), I(2)}, nullptr, waits.done());
  EXPECT_FALSE(waits.over());
  EXPECT_EQ(Take(small.get(), 1, {0}, kFloat), absl::OkStatus());
  EXPECT_EQ(waits.code(), Code::kOk);
  Reply cleared;
  small->Clear(cleared.done());
  EXPECT_EQ(small->Size(), 0);
  EXPECT_EQ(Put(small.get(), 3, {0}, {Tensor::Vector<float>({1, 2, 3})}), absl::OkStatus());
}

/// Many who wait for keys of their own, some of whom give up.
TEST_F(StagingMapTest, EachKeyComesOutOnce) {
  constexpr int kKeys = 1'000;
  std::vector<CancellationToken> tokens(kKeys);
  std::vector<Reply> replies(kKeys);
  std::thread takes([&] {
    std::mt19937 random(3);
    for (int i = 0; i < kKeys; ++i) {
      map->Take(i, {0, 1}, kPair, &tokens[i], replies[i].done());
      if (random() % 8 == 0) tokens[random() % (i + 1)].Cancel(absl::AbortedError("stop"));
    }
  });
  for (int part = 0; part < 2; ++part) {
    for (int i = kKeys - 1; i >= 0; --i) {
      EXPECT_EQ(Put(map.get(), i, {part}, {part == 0 ? F(static_cast<float>(i)) : I(i)}),
                absl::OkStatus());
    }
  }
  takes.join();
  int64_t taken = 0;
  for (int i = 0; i < kKeys; ++i) {
    if (!replies[i].Wait().ok()) continue;
    ++taken;
    EXPECT_EQ(replies[i].tuple()[1].unchecked_scalar<int32_t>(), i);
  }
  EXPECT_EQ(taken + map->Size(), kKeys);
  EXPECT_GT(taken, 0);
}

// --- states --------------------------------------------------------------------------------------

template <typename State, typename Machine>
State Saved(Machine& machine) {
  absl::StatusOr<State> saved;
  machine.Save([&](absl::StatusOr<State> state) { saved = std::move(state); });
  EXPECT_EQ(saved.status(), absl::OkStatus());
  return *std::move(saved);
}
template <typename State, typename Machine>
absl::Status Restored(Machine& machine, State state) {
  absl::Status restored = absl::UnknownError("");
  machine.Restore(std::move(state), [&](absl::Status status) { restored = status; });
  return restored;
}

TEST(TupleStage, AnotherOneGoesOnWithTheSameTuples) {
  const auto area = MakeMachine<TupleStage>(StagingAreaOptions{2, 0});
  Reply one, two, waits;
  area->Put(Floats({1}), nullptr, one.done());
  area->Put(Floats({2, 3}), nullptr, two.done());
  area->Put(Floats({4}), nullptr, waits.done());
  const auto state = Saved<StagingAreaState>(*area);
  EXPECT_EQ(state.options.capacity, 2);
  EXPECT_EQ(state.tuples.size(), 2u) << "what waits is not inside";
  EXPECT_EQ(area->Size(), 2);

  const auto other = MakeMachine<TupleStage>(StagingAreaOptions{1, 12});
  Reply own, taken, first, second, put;
  other->Put(Floats({9}), nullptr, own.done());
  EXPECT_EQ(Restored(*other, state), absl::OkStatus());
  EXPECT_EQ(other->Size(), 2) << "above its capacity";
  other->Put(Floats({5}), nullptr, put.done());
  other->Take(kFloat, nullptr, first.done());
  EXPECT_EQ(FirstOf(first), 1);
  EXPECT_FALSE(put.over());
  other->Take(kFloat, nullptr, second.done());
  EXPECT_EQ(FirstOf(second), 2);
  EXPECT_EQ(put.code(), Code::kOk) << "bytes are counted";
  // Who waits gets what is restored.
  Reply last, late;
  other->Take(kFloat, nullptr, last.done());
  other->Take(kFloat, nullptr, late.done());
  EXPECT_FALSE(late.over());
  EXPECT_EQ(Restored(*other, state), absl::OkStatus());
  EXPECT_EQ(FirstOf(late), 1);
  StagingAreaState wrong = state;
  wrong.tuples[1][0].Reset();
  EXPECT_EQ(Restored(*other, wrong).code(), Code::kInvalidArgument);
  EXPECT_EQ(other->Size(), 1) << "nothing has changed";
  area->Abandon();
  absl::StatusOr<StagingAreaState> gone;
  area->Save([&](absl::StatusOr<StagingAreaState> saved) { gone = std::move(saved); });
  EXPECT_TRUE(absl::IsCancelled(gone.status())) << gone.status();
}

TEST(StagingMap, AnotherOneGoesOnWithTheSameTuples) {
  const std::vector<ElementType> types = {ElementType::kFloat, ElementType::kInt32};
  const auto map = MakeMachine<StagingMap>(StagingMapOptions{});
  Reply whole, part, taken;
  map->Put(5, types, {0, 1}, {Tensor::Scalar(1.0f), Tensor::Scalar<int32_t>(2)}, nullptr,
           whole.done());
  map->Put(-3, types, {1}, {Tensor::Scalar<int32_t>(7)}, nullptr, part.done());
  map->Take(5, {0}, kFloat, nullptr, taken.done());
  const auto state = Saved<StagingMapState>(*map);
  EXPECT_EQ(state.types, types);

  const auto other = MakeMachine<StagingMap>(StagingMapOptions{0, 12});
  EXPECT_EQ(Restored(*other, state), absl::OkStatus());
  EXPECT_EQ(other->Size(), 1);
  EXPECT_EQ(other->IncompleteSize(), 1);
  Reply too_much, rest, left, gone;
  other->Put(6, types, {0, 1}, {Tensor::Scalar(1.0f), Tensor::Scalar<int32_t>(2)}, nullptr,
             too_much.done());
  EXPECT_FALSE(too_much.over()) << "bytes are counted";
  other->Put(-3, types, {0}, {Tensor::Scalar(8.0f)}, nullptr, rest.done());
  EXPECT_EQ(rest.code(), Code::kOk);
  other->TakeFirst({0, 1}, types, nullptr, left.done());
  EXPECT_EQ(left.tuple()[0].unchecked_scalar<int64_t>(), -3);
  EXPECT_EQ(left.tuple()[2].unchecked_scalar<int32_t>(), 7);
  other->LookAt(5, {0}, kFloat, nullptr, gone.done());
  EXPECT_EQ(gone.code(), Code::kInvalidArgument) << "it has been taken";

  // What is no state changes nothing.
  const auto before = Saved<StagingMapState>(*other);
  for (int i = 0; i < 5; ++i) {
    StagingMapState wrong = state;
    if (i == 0) wrong.types.pop_back();
    if (i == 1) wrong.complete[5][1] = Tensor::Scalar(1.0f);
    if (i == 2) wrong.complete[5] = Tuple(2);
    if (i == 3) wrong.incomplete[-3][0] = Tensor::Scalar(1.0f);
    if (i == 4) wrong.incomplete[-3] = Tuple(2);
    EXPECT_EQ(Restored(*other, wrong).code(), Code::kInvalidArgument) << i;
    EXPECT_EQ(Saved<StagingMapState>(*other).complete.size(), before.complete.size()) << i;
  }
}

}  // namespace
}  // namespace troupe
