#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/queues/accumulator.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/queues/calls.h"

namespace troupe {
namespace {

using testing::Call;
using testing::Calls;
using testing::ExpectEqual;
using testing::ExpectNear;
using Code = absl::StatusCode;

class AccumulatorTest : public ::testing::Test {
 protected:
  Tensor Make(ElementType type, const PartialShape& shape, const char* reduction) {
    type_ = type;
    calls.Attr("dtype", type)
        .Attr("shape", shape)
        .Attr("reduction_type", std::string(reduction))
        .Attr("shared_name", std::string("sum"));
    return calls.Make("ResourceConditionalAccumulator");
  }
  absl::Status Apply(const Tensor& accumulator, int64_t step, Tensor gradient) {
    return calls.Do("ResourceAccumulatorApplyGradient",
                    {accumulator, Tensor::Scalar<int64_t>(step), std::move(gradient)});
  }
  std::unique_ptr<Call> Take(const Tensor& accumulator, int32_t required) {
    return calls.Start("ResourceAccumulatorTakeGradient",
                       {accumulator, Tensor::Scalar<int32_t>(required)}, {type_});
  }
  int32_t Count(const Tensor& accumulator) {
    return calls.One("ResourceAccumulatorNumAccumulated", {accumulator}, ElementType::kInt32)
        ->unchecked_scalar<int32_t>();
  }

  Calls calls;
  ElementType type_ = ElementType::kFloat;
};

TEST_F(AccumulatorTest, GivesMeansInOrder) {
  const Tensor mean = Make(ElementType::kFloat, {2}, "MEAN");
  auto first = Take(mean, 2), second = Take(mean, 1), third = Take(mean, 1);
  const Tensor gradient = Tensor::Vector<float>({1, 2});
  EXPECT_EQ(Apply(mean, 0, gradient), absl::OkStatus());
  EXPECT_FALSE(first->done());
  EXPECT_EQ(Apply(mean, 0, Tensor::Vector<float>({4, 6})), absl::OkStatus());
  ExpectEqual(first->output(0), Tensor::Vector<float>({2.5f, 4}));
  ExpectEqual(gradient, Tensor::Vector<float>({1, 2}));  // Untouched.
  EXPECT_FALSE(second->done());
  // The step has gone on: this one is stale.
  EXPECT_EQ(Apply(mean, 0, gradient), absl::OkStatus());
  EXPECT_FALSE(second->done());
  EXPECT_EQ(Apply(mean, 1, gradient), absl::OkStatus());
  ExpectEqual(second->output(0), gradient);
  third->Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(third->status().code(), Code::kAborted);
  EXPECT_EQ(Apply(mean, 2, gradient), absl::OkStatus());
  EXPECT_EQ(Count(mean), 1);
}

// A timer, for one, must not take the mean of large gradients.
TEST_F(AccumulatorTest, WhoeverServesLeavesTheDivisionToThePlayerOfTheStep) {
  const Tensor mean = Make(ElementType::kFloat, {1}, "MEAN");
  auto first = Take(mean, 3), second = Take(mean, 2);
  EXPECT_EQ(Apply(mean, 0, Tensor::Vector<float>({1})), absl::OkStatus());
  EXPECT_EQ(Apply(mean, 0, Tensor::Vector<float>({4})), absl::OkStatus());
  first->Cancel(absl::AbortedError("stop"));
  EXPECT_TRUE(second->done());
  EXPECT_FALSE(second->has_output(0));
  EXPECT_EQ(Apply(mean, 1, Tensor::Vector<float>({8})), absl::OkStatus());
  ExpectEqual(second->output(0), Tensor::Vector<float>({2.5f}));
  ExpectEqual(Take(mean, 1)->output(0), Tensor::Vector<float>({8}));
}

// Nor add them; meanwhile nobody else has the sum.
TEST_F(AccumulatorTest, LargeGradientsAreAddedByThePlayerOfTheStep) {
  const Tensor sum = Make(ElementType::kFloat, PartialShape(), "SUM");
  const auto start = [&](float value) {
    Tensor gradient = Tensor::Allocate(ElementType::kFloat, Shape({1 << 20})).value();
    for (float& element : gradient.mutable_values<float>()) element = value;
    return calls.Start("ResourceAccumulatorApplyGradient",
                       {sum, Tensor::Scalar<int64_t>(9), std::move(gradient)});
  };
  auto first = start(1), second = start(2), third = start(4), given_up = start(8),
       fifth = start(16);
  auto taking = Take(sum, 2);
  EXPECT_TRUE(first->done());
  given_up->Cancel(absl::AbortedError("stop"));
  EXPECT_EQ(given_up->status().code(), Code::kAborted);
  EXPECT_FALSE(second->done());
  EXPECT_EQ(first->status(), absl::OkStatus());
  EXPECT_EQ(Count(sum), 1);
  EXPECT_TRUE(second->done());
  EXPECT_FALSE(third->done());
  second.reset();  // Its step has failed: nothing is added.
  EXPECT_FALSE(taking->done());
  EXPECT_EQ(third->status(), absl::OkStatus());
  EXPECT_EQ(taking->output(0).unchecked_values<float>()[7], 5);
  calls.resources().ResetAll();
  EXPECT_EQ(fifth->status(), absl::OkStatus());  // It had the sum already.
}

TEST_F(AccumulatorTest, Sums) {
  const Tensor sum = Make(ElementType::kDouble, PartialShape(), "SUM");
  EXPECT_EQ(calls.Do("ResourceAccumulatorSetGlobalStep", {sum, Tensor::Scalar<int64_t>(5)}),
            absl::OkStatus());
  EXPECT_EQ(Apply(sum, 4, Tensor::Vector<double>({9, 9, 9})), absl::OkStatus());
  EXPECT_EQ(Count(sum), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Apply(sum, 5 + i, Tensor::Vector<double>({1, 2})), absl::OkStatus());
  }
  EXPECT_EQ(Apply(sum, 5, Tensor::Vector<double>({1, 2, 3})).code(), Code::kInvalidArgument);
  EXPECT_EQ(Count(sum), 3);
  ExpectEqual(Take(sum, 1)->output(0), Tensor::Vector<double>({3, 6}));
  EXPECT_EQ(Apply(sum, 6, Tensor::Vector<double>({1, 2, 3})), absl::OkStatus());
}

TEST_F(AccumulatorTest, HalfRoundsOnceForEachGradient) {
  const Tensor mean = Make(ElementType::kHalf, {1}, "MEAN");
  for (double value : {1, 2, 2}) {
    EXPECT_EQ(Apply(mean, 0, testing::MakeTensor(ElementType::kHalf, {1}, {value})),
              absl::OkStatus());
  }
  ExpectNear(Take(mean, 3)->output(0), testing::MakeTensor(ElementType::kHalf, {1}, {5.0 / 3}),
             1e-3);
}

TEST_F(AccumulatorTest, RefusesWhatDoesNotFit) {
  const Tensor mean = Make(ElementType::kFloat, {2}, "MEAN");
  EXPECT_EQ(Take(mean, 0)->status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Take(mean, -1)->status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Apply(mean, 0, Tensor::Scalar(1.0f)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Apply(mean, 0, Tensor::Vector<double>({1, 2})).code(), Code::kInvalidArgument);
  EXPECT_EQ(Count(mean), 0);
  type_ = ElementType::kDouble;
  EXPECT_EQ(Take(mean, 1)->status().code(), Code::kInvalidArgument);
  calls.Attr("shape", PartialShape({3}));
  EXPECT_EQ(
      calls.Run("ResourceConditionalAccumulator", {}, {ElementType::kResource}).status().code(),
      Code::kInvalidArgument);
  EXPECT_EQ(calls.Do("QueueSizeV2", {mean}, {ElementType::kInt32}).code(), Code::kInvalidArgument);
}

TEST_F(AccumulatorTest, ADestroyedOneFailsItsWaiters) {
  const Tensor mean = Make(ElementType::kFloat, {2}, "MEAN");
  auto taking = Take(mean, 1);
  calls.resources().ResetAll();
  EXPECT_EQ(taking->status().code(), Code::kCancelled);
  EXPECT_EQ(Take(mean, 1)->status().code(), Code::kNotFound);
}

/// A sparse accumulator, whose handle is a reference: made by hand, for there is no op that gives a
/// resource.
class SparseAccumulatorTest : public ::testing::Test {
 protected:
  absl::Status Apply(std::vector<int64_t> indices, Tensor values, std::vector<int64_t> shape,
                     int64_t step = 0, bool has_shape = true) {
    calls.Attr("has_known_shape", has_shape);
    return calls.Do(
        "SparseAccumulatorApplyGradient",
        {handle, Tensor::Scalar(step), Tensor::Vector<int64_t>(absl::MakeConstSpan(indices)),
         std::move(values), Tensor::Vector<int64_t>(absl::MakeConstSpan(shape))});
  }
  std::unique_ptr<Call> Take(int32_t required) {
    return calls.Start("SparseAccumulatorTakeGradient", {handle, Tensor::Scalar<int32_t>(required)},
                       {ElementType::kInt64, ElementType::kFloat, ElementType::kInt64});
  }
  void Make(const PartialShape& shape, bool mean) {
    ResourceHandle resource;
    resource.resource =
        calls.resources().MakeAccumulator("rows", {ElementType::kFloat, shape, mean, true});
    handle = Tensor::Scalar(std::move(resource));
  }
  static Tensor Rows(std::initializer_list<float> values) {
    return Tensor::FromValues<float>(absl::MakeConstSpan(values.begin(), values.size()),
                                     Shape({static_cast<int64_t>(values.size()) / 2, 2}))
        .value();
  }

  Calls calls;
  Tensor handle;
};

TEST_F(SparseAccumulatorTest, TheMeanOfARowIsOfThoseThatHaveIt) {
  Make({4, 2}, true);
  auto taking = Take(2);
  const Tensor first = Rows({2, 4, 6, 8});
  EXPECT_EQ(Apply({0, 2}, first, {4, 2}), absl::OkStatus());
  EXPECT_FALSE(taking->done());
  EXPECT_EQ(Apply({1, 2}, Rows({1, 1, 2, 2}), {}, 0, false), absl::OkStatus());
  ExpectEqual(taking->output(0), Tensor::Vector<int64_t>({0, 1, 2}));
  ExpectEqual(taking->output(1), Rows({2, 4, 1, 1, 4, 5}));
  ExpectEqual(taking->output(2), Tensor::Vector<int64_t>({4, 2}));
  ExpectEqual(first, Rows({2, 4, 6, 8}));                         // Untouched.
  EXPECT_EQ(Apply({0}, Rows({1, 1}), {4, 2}), absl::OkStatus());  // Stale.
  EXPECT_EQ(Apply({3}, Rows({1, 1}), {4, 2}, 1), absl::OkStatus());
  ExpectEqual(Take(1)->output(0), Tensor::Vector<int64_t>({3}));
}

TEST_F(SparseAccumulatorTest, SumsRowsOfUnknownShape) {
  Make(PartialShape(), false);
  EXPECT_EQ(Apply({5}, Rows({1, 2}), {}), absl::OkStatus());
  EXPECT_EQ(Apply({5}, Rows({1, 2}), {7, 2}), absl::OkStatus());
  EXPECT_EQ(Apply({}, Rows({}), {7, 2}), absl::OkStatus());
  auto taking = Take(3);
  ExpectEqual(taking->output(1), Rows({2, 4}));
  ExpectEqual(taking->output(2), Tensor::Vector<int64_t>({-1, 2}));
}

TEST_F(SparseAccumulatorTest, RefusesWhatDoesNotFit) {
  Make({4, 2}, true);
  const auto code = [&](std::vector<int64_t> indices, Tensor values, std::vector<int64_t> shape) {
    return Apply(std::move(indices), std::move(values), std::move(shape)).code();
  };
  EXPECT_EQ(code({4}, Rows({1, 1}), {4, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({1, 2}, Rows({1, 1}), {4, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, Rows({1, 1}), {5, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, Rows({1, 1}), {}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, Tensor::Vector<float>({1}), {4, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, Tensor::Scalar(1.0f), {4, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, Tensor::FromValues<float>({1, 2, 3}, Shape({1, 3})).value(), {4, 2}),
            Code::kInvalidArgument);
  EXPECT_EQ(calls
                .Do("AccumulatorTakeGradient", {handle, Tensor::Scalar<int32_t>(1)},
                    {ElementType::kFloat})
                .code(),
            Code::kInvalidArgument);
}

/// Of what an accumulator gives at once.
AccumulatorState Saved(Accumulator* accumulator) {
  absl::StatusOr<AccumulatorState> saved;
  accumulator->Save([&](absl::StatusOr<AccumulatorState> state) { saved = std::move(state); });
  EXPECT_TRUE(saved.ok()) << saved.status();
  return saved.value_or(AccumulatorState());
}
absl::Status Restored(Accumulator* accumulator, AccumulatorState state) {
  absl::Status restored = absl::UnknownError("not told");
  accumulator->Restore(std::move(state),
                       [&](absl::Status status) { restored = std::move(status); });
  return restored;
}
Accumulator* Of(const Tensor& handle) {
  return dynamic_cast<Accumulator*>(handle.unchecked_data<ResourceHandle>()->resource.get());
}

TEST_F(AccumulatorTest, AnotherOneGoesOnFromItsState) {
  const Tensor mean = Make(ElementType::kFloat, {2}, "MEAN");
  EXPECT_EQ(calls.Do("ResourceAccumulatorSetGlobalStep", {mean, Tensor::Scalar<int64_t>(5)}),
            absl::OkStatus());
  const AccumulatorState empty = Saved(Of(mean));
  EXPECT_EQ(empty.step, 5);
  EXPECT_EQ(empty.count, 0);
  EXPECT_FALSE(empty.values.valid());
  EXPECT_EQ(Apply(mean, 5, Tensor::Vector<float>({1, 2})), absl::OkStatus());
  EXPECT_EQ(Apply(mean, 5, Tensor::Vector<float>({4, 6})), absl::OkStatus());
  const AccumulatorState state = Saved(Of(mean));
  EXPECT_EQ(state.count, 2);
  ExpectEqual(state.values, Tensor::Vector<float>({5, 8}));
  EXPECT_EQ(Apply(mean, 5, Tensor::Vector<float>({1, 1})), absl::OkStatus());
  ExpectEqual(state.values, Tensor::Vector<float>({5, 8}));  // Untouched.

  EXPECT_EQ(Restored(Of(mean), empty), absl::OkStatus());
  EXPECT_EQ(Count(mean), 0);
  auto taking = Take(mean, 2);
  EXPECT_FALSE(taking->done());
  EXPECT_EQ(Restored(Of(mean), state), absl::OkStatus());
  ExpectEqual(taking->output(0), Tensor::Vector<float>({2.5f, 4}));
  ExpectEqual(state.values, Tensor::Vector<float>({5, 8}));
  EXPECT_EQ(Apply(mean, 5, Tensor::Vector<float>({1, 1})), absl::OkStatus());
  EXPECT_EQ(Count(mean), 0) << "it is stale, as step 5 was taken";

  for (int i = 0; i < 6; ++i) {
    AccumulatorState wrong = state;
    if (i == 0) wrong.count = 0;
    if (i == 1) wrong.count = -1;
    if (i == 2) wrong.count = INT64_MAX;
    if (i == 3) wrong.values = Tensor::Vector<float>({1, 2, 3});
    if (i == 4) wrong.values = Tensor::Vector<double>({1, 2});
    if (i == 5) wrong.indices = {0};
    EXPECT_EQ(Restored(Of(mean), wrong).code(), Code::kInvalidArgument) << i;
  }
  EXPECT_EQ(Count(mean), 0);
}

// A gradient that is just being added is in the state.
TEST_F(AccumulatorTest, ItsStateIsNotThatOfASumThatIsLent) {
  constexpr int64_t kElements = Accumulator::kMinBytesHandedOn / sizeof(float);
  const Tensor sum = Make(ElementType::kFloat, {kElements}, "SUM");
  const Tensor ones =
      testing::MakeTensor(ElementType::kFloat, {kElements}, std::vector<double>(kElements, 1.0));
  auto applying =
      calls.Start("ResourceAccumulatorApplyGradient", {sum, Tensor::Scalar<int64_t>(0), ones});
  AccumulatorState state;
  Of(sum)->Save([&](absl::StatusOr<AccumulatorState> saved) { state = saved.value(); });
  EXPECT_EQ(state.count, 0);
  EXPECT_EQ(applying->status(), absl::OkStatus());
  applying.reset();
  EXPECT_EQ(state.count, 1);
  ExpectEqual(state.values, ones);
}

TEST_F(SparseAccumulatorTest, AnotherOneGoesOnFromItsState) {
  Make({4, 2}, true);
  EXPECT_EQ(Apply({0, 2}, Rows({2, 4, 6, 8}), {4, 2}), absl::OkStatus());
  EXPECT_EQ(Apply({1, 2}, Rows({1, 1, 2, 2}), {4, 2}), absl::OkStatus());
  const AccumulatorState state = Saved(Of(handle));
  EXPECT_EQ(state.indices, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(state.counts, (std::vector<int64_t>{1, 1, 2}));
  (void)Take(1)->status();
  EXPECT_EQ(Restored(Of(handle), state), absl::OkStatus());
  EXPECT_EQ(Apply({2}, Rows({1, 2}), {4, 2}), absl::OkStatus());
  auto taking = Take(3);
  ExpectEqual(taking->output(0), Tensor::Vector<int64_t>({0, 1, 2}));
  ExpectEqual(taking->output(1), Rows({2, 4, 1, 1, 3, 4}));

  for (int i = 0; i < 5; ++i) {
    AccumulatorState wrong = state;
    if (i == 0) wrong.indices.pop_back();
    if (i == 1) wrong.counts.push_back(1);
    if (i == 2) wrong.counts[1] = 0;
    if (i == 3) wrong.counts[1] = 3;
    if (i == 4) wrong.values = Tensor::Scalar(1.0f);
    EXPECT_EQ(Restored(Of(handle), wrong).code(), Code::kInvalidArgument) << i;
  }
}

TEST_F(AccumulatorTest, CountsEveryGradientOnce) {
  constexpr int kThreads = 4, kEach = 300;
  const Tensor sum = Make(ElementType::kDouble, PartialShape(Shape()), "SUM");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_EQ(Apply(sum, 1 << 20, Tensor::Scalar(1.0)), absl::OkStatus());
      }
    });
  }
  double total = 0;
  while (total < kThreads * kEach) total += Take(sum, 1)->output(0).unchecked_scalar<double>();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, kThreads * kEach);
  EXPECT_EQ(Count(sum), 0);
}

}  // namespace
}  // namespace troupe
