#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/data/tensor_list.h"
#include "tests/kernels/data/step_runner.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::StepRunner;
using enum ElementType;

Tensor Int(int32_t value) { return Tensor::Scalar<int32_t>(value); }
Tensor Row(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }
Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }

class TensorListTest : public ::testing::Test {
 protected:
  TensorListTest() { step_.Attr("element_dtype", kFloat).Attr("shape_type", kInt32); }

  Tensor Reserve(Tensor shape, int32_t size) {
    return *step_.One("TensorListReserve", {std::move(shape), Int(size)}, kVariant);
  }
  Tensor Empty(Tensor shape, int32_t most = -1) {
    return *step_.One("EmptyTensorList", {std::move(shape), Int(most)}, kVariant);
  }
  absl::StatusOr<Tensor> Push(Tensor list, Tensor element) {
    return step_.One("TensorListPushBack", {std::move(list), std::move(element)}, kVariant);
  }
  absl::StatusOr<Tensor> Set(Tensor list, int32_t index, Tensor element) {
    return step_.One("TensorListSetItem", {std::move(list), Int(index), std::move(element)},
                     kVariant);
  }
  absl::StatusOr<Tensor> Get(Tensor list, int32_t index, Tensor shape = Int(-1)) {
    return step_.One("TensorListGetItem", {std::move(list), Int(index), std::move(shape)}, kFloat);
  }
  absl::StatusOr<Tensor> Stack(Tensor list, Tensor shape = Int(-1)) {
    return step_.One("TensorListStack", {std::move(list), std::move(shape)}, kFloat);
  }
  int32_t Length(const Tensor& list) {
    return step_.One("TensorListLength", {list}, kInt32)->unchecked_scalar<int32_t>();
  }

  StepRunner step_;
};

TEST_F(TensorListTest, ChangedListsAreOtherValues) {
  const Tensor empty = Empty(Ints({2}));
  const Tensor one = *Push(empty, Row({1, 2}));
  const Tensor two = *Push(one, Row({3, 4}));
  const Tensor other = *Push(one, Row({5, 6}));
  const Tensor set = *Set(two, 0, Row({7, 8}));
  EXPECT_EQ(Length(empty), 0);
  EXPECT_EQ(Length(one), 1);
  ExpectEqual(*Stack(two), testing::MakeTensor(kFloat, {2, 2}, {1, 2, 3, 4}));
  ExpectEqual(*Stack(other), testing::MakeTensor(kFloat, {2, 2}, {1, 2, 5, 6}));
  ExpectEqual(*Stack(set), testing::MakeTensor(kFloat, {2, 2}, {7, 8, 3, 4}));
  auto popped = step_.Run("TensorListPopBack", {two, Int(-1)}, {kVariant, kFloat});
  ASSERT_TRUE(popped.ok());
  ExpectEqual((*popped)[1], Row({3, 4}));
  EXPECT_EQ(Length((*popped)[0]), 1);
  EXPECT_EQ(Length(two), 2);
}

// What is not there is not looked at: two thousand million elements would take seconds.
TEST_F(TensorListTest, StacksAnyNumberOfEmptyElements) {
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 10; ++i) {
    const absl::StatusOr<Tensor> stacked = Stack(Reserve(Ints({0}), INT32_MAX));
    ASSERT_TRUE(stacked.ok()) << stacked.status();
    EXPECT_EQ(stacked->shape(), Shape({INT32_MAX, 0}));
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  // Behind the last one that is there are zeros.
  const Tensor list = *Set(Reserve(Ints({2}), 4), 1, Row({1, 2}));
  ExpectEqual(*Stack(list), testing::MakeTensor(kFloat, {4, 2}, {0, 0, 1, 2, 0, 0, 0, 0}));
}

TEST_F(TensorListTest, LastUserChangesListInPlace) {
  Tensor list = Empty(Ints({1}));
  const TensorList* value = *ListIn(list);
  Kernel* push = *step_.Make("TensorListPushBack", {kVariant, kFloat}, {kVariant});
  Kernel* set = *step_.Make("TensorListSetItem", {kVariant, kInt32, kFloat}, {kVariant});
  Kernel* pop = *step_.Make("TensorListPopBack", {kVariant, kInt32}, {kVariant, kFloat});
  // A list that was copied every time would take minutes.
  constexpr int kCount = 100'000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCount; ++i) {
    StepRunner::Tensors inputs;
    inputs.push_back(std::move(list));
    inputs.push_back(Row({static_cast<float>(i)}));
    list = std::move((*step_.Run(push, std::move(inputs), 1))[0]);
  }
  for (int i = 0; i < kCount; ++i) {
    StepRunner::Tensors inputs;
    inputs.push_back(std::move(list));
    inputs.push_back(Int(i));
    inputs.push_back(Row({static_cast<float>(-i)}));
    list = std::move((*step_.Run(set, std::move(inputs), 1))[0]);
  }
  EXPECT_EQ(*ListIn(list), value);
  EXPECT_EQ(Length(list), kCount);
  for (int i = kCount - 1; i >= 0; --i) {
    StepRunner::Tensors inputs;
    inputs.push_back(std::move(list));
    inputs.push_back(Int(-1));
    StepRunner::Tensors outputs = *step_.Run(pop, std::move(inputs), 2);
    list = std::move(outputs[0]);
    ASSERT_EQ(outputs[1].unchecked_data<float>()[0], -i);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(*ListIn(list), value);
}

TEST_F(TensorListTest, UninitializedElementsAreZeros) {
  const Tensor known = Reserve(Ints({2}), 3);
  ExpectEqual(*Get(known, 1), Row({0, 0}));
  ExpectEqual(*Stack(known), testing::MakeTensor(kFloat, {3, 2}, {0, 0, 0, 0, 0, 0}));
  const Tensor unknown = Reserve(Int(-1), 3);
  ExpectEqual(*Get(unknown, 1, Ints({1})), Row({0}));
  EXPECT_THAT(std::string(Get(unknown, 1).status().message()),
              HasSubstr("element_shape is not fully defined"));
  EXPECT_FALSE(Stack(unknown).ok());
  // Another element tells the shape.
  const Tensor some = *Set(unknown, 2, Row({4, 5}));
  ExpectEqual(*Get(some, 0), Row({0, 0}));
  ExpectEqual(*Stack(some), testing::MakeTensor(kFloat, {3, 2}, {0, 0, 0, 0, 4, 5}));
}

TEST_F(TensorListTest, HugeListsTakeNoMemory) {
  Tensor list = Reserve(Ints({0}), INT32_MAX);
  EXPECT_EQ(Length(list), INT32_MAX);
  EXPECT_EQ(Get(list, INT32_MAX - 1)->num_elements(), 0);
  EXPECT_EQ(Set(list, INT32_MAX - 1, Tensor::Vector<float>({})).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Push(list, Tensor::Vector<float>({})).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(TensorListTest, RefusesWhatDoesNotFit) {
  const Tensor list = *Push(Empty(Ints({2}), 1), Row({1, 2}));
  struct Case {
    absl::Status status;
    const char* message;
  } cases[] = {
      {Push(list, Row({1, 2})).status(), "full list"},
      {Push(Empty(Ints({2})), Row({1})).status(), "incompatible shape"},
      {Push(Empty(Ints({2})), Ints({1, 2})).status(), "Invalid data types"},
      {Get(list, 1).status(), "element 1 in a list with 1 elements"},
      {Get(list, -1).status(), "element -1"},
      {Get(Tensor::Vector<Variant>({Variant()}), 0).status(), "must be a scalar"},
      {Get(Tensor::Scalar<Variant>(Variant(7)), 0).status(), "not a list"},
      {Get(Tensor::Scalar<Variant>(Variant()), 0).status(), "not a list"},
      {Set(list, 3, Row({1, 2})).status(), "modify element 3"},
      {Stack(list, Ints({3})).status(), ""},
      {Stack(Empty(Int(-1))).status(), "non-fully-defined"},
      {step_.One("TensorListReserve", {Int(-2), Int(1)}, kVariant).status(), ""},
      {step_.One("TensorListReserve", {Ints({1}), Int(-1)}, kVariant).status(), "non negative"},
      {step_.One("TensorListReserve", {Ints({-7}), Int(1)}, kVariant).status(), ""},
      {step_.One("TensorListResize", {list, Int(-1)}, kVariant).status(), "non-negative"},
      {step_.Run("TensorListPopBack", {Empty(Ints({2})), Int(-1)}, {kVariant, kFloat}).status(),
       "empty list"},
      {step_.One("TensorListFromTensor", {Tensor::Scalar(1.0f), Int(-1)}, kVariant).status(),
       "at least a vector"},
      {step_.One("TensorListFromTensor", {Row({1}), Ints({3})}, kVariant).status(), "Specified"},
      {step_.One("TensorListGather", {list, Ints({0, 1}), Int(-1)}, kFloat).status(),
       "gather element 1"},
      {step_.One("TensorListScatterV2", {Row({1, 2}), Ints({0}), Int(-1), Int(-1)}, kVariant)
           .status(),
       "number of rows"},
      {step_.One("TensorListScatterV2", {Row({1}), Ints({-1}), Int(-1), Int(-1)}, kVariant)
           .status(),
       "non-negative"},
      {step_.One("TensorListScatterV2", {Row({1}), Ints({4}), Int(-1), Int(4)}, kVariant).status(),
       "index 4"},
      {step_.One("TensorListScatterV2", {Row({1}), Ints({4}), Int(-1), Int(-2)}, kVariant).status(),
       ">= -1"},
      {step_
           .One("TensorListSplit",
                {Row({1, 2}), Ints({-1}), Tensor::Vector<int64_t>({1, INT64_MAX})}, kVariant)
           .status(),
       "slice"},
      {step_
           .One("TensorListSplit", {Row({1, 2}), Ints({-1}), Tensor::Vector<int64_t>({1, -1})},
                kVariant)
           .status(),
       "Invalid value in lengths"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.status.code(), absl::StatusCode::kInvalidArgument) << c.status;
    EXPECT_THAT(std::string(c.status.message()), HasSubstr(c.message));
  }
}

TEST_F(TensorListTest, ElementsOfDifferentShapesDoNotStack) {
  const Tensor list = *Push(*Push(Empty(Int(-1)), Row({1})), Row({1, 2}));
  EXPECT_EQ(Stack(list).status().code(), absl::StatusCode::kInvalidArgument);
  // They are concatenated.
  auto joined = step_.Run("TensorListConcatV2", {list, Ints({-1}), Tensor::Vector<int64_t>({})},
                          {kFloat, kInt64});
  ASSERT_TRUE(joined.ok()) << joined.status();
  ExpectEqual((*joined)[0], Row({1, 1, 2}));
  ExpectEqual((*joined)[1], Tensor::Vector<int64_t>({1, 2}));
}

TEST_F(TensorListTest, SplitListsWhoseShapeIsNotTrueDoNotStack) {
  // The list says that its elements have 3 rows; they have 1 and 2. TensorFlow 2.21 concatenates
  // them, and writes past the end of its memory if they are stacked.
  const Tensor list = *step_.One(
      "TensorListSplit", {Row({1, 2, 3}), Ints({3}), Tensor::Vector<int64_t>({1, 2})}, kVariant);
  EXPECT_EQ(Stack(list).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(step_.One("TensorListGather", {list, Ints({1, 0}), Int(-1)}, kFloat).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto joined = step_.Run("TensorListConcatV2", {list, Ints({-1}), Tensor::Vector<int64_t>({})},
                          {kFloat, kInt64});
  ASSERT_TRUE(joined.ok()) << joined.status();
  ExpectEqual((*joined)[0], Row({1, 2, 3}));
}

TEST_F(TensorListTest, LargeElementsAreStackedInPieces) {
  Tensor list = Reserve(Ints({5000}), 7);
  std::vector<double> want(7 * 5000);
  for (int i : {1, 2, 5}) {
    Tensor element = testing::RandomTensor(kFloat, {5000}, -1, 1, i);
    for (int k = 0; k < 5000; ++k) want[i * 5000 + k] = element.unchecked_data<float>()[k];
    list = *Set(list, i, element);
  }
  ExpectEqual(*Stack(list), testing::MakeTensor(kFloat, {7, 5000}, absl::MakeConstSpan(want)));
}

TEST_F(TensorListTest, AddsAndMakesZeros) {
  step_.Attr("T", kVariant).Attr("N", int64_t{2});
  const Tensor a = *Set(Reserve(Int(-1), 3), 0, Row({1, 2}));
  const Tensor b = *Set(*Set(Reserve(Int(-1), 3), 0, Row({10, 20})), 2, Row({5, 6}));
  const Tensor sum = *step_.One("AddN", {a, b}, kVariant);
  ExpectEqual(*Stack(sum), testing::MakeTensor(kFloat, {3, 2}, {11, 22, 0, 0, 5, 6}));
  ExpectEqual(*Get(a, 0), Row({1, 2}));  // Unchanged.
  ExpectEqual(*Get(b, 0), Row({10, 20}));
  const Tensor zeros = *step_.One("ZerosLike", {b}, kVariant);
  ExpectEqual(*Stack(zeros), testing::MakeTensor(kFloat, {3, 2}, {0, 0, 0, 0, 0, 0}));
  const Tensor twice = *step_.One("AddN", {a, a}, kVariant);
  ExpectEqual(*Get(twice, 0), Row({2, 4}));
  for (const Tensor& other : {Reserve(Int(-1), 4), *Set(Reserve(Int(-1), 3), 0, Row({1})),
                              Tensor::Scalar<Variant>(Variant(3))}) {
    EXPECT_EQ(step_.One("AddN", {a, other}, kVariant).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(TensorListTest, ListsOfListsAreNestedOnlySoDeep) {
  step_.Attr("element_dtype", kVariant).Attr("T", kVariant).Attr("N", int64_t{2});
  Tensor list = Empty(Int(-1));
  absl::Status status;
  int depth = 0;
  while (status.ok() && depth < 100'000) {
    absl::StatusOr<Tensor> outer = Push(Empty(Int(-1)), list);
    status = outer.status();
    if (!status.ok()) break;
    list = *std::move(outer);
    ++depth;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_GE(depth, 100);
  EXPECT_TRUE(step_.One("AddN", {list, list}, kVariant).ok());
  EXPECT_TRUE(step_.One("ZerosLike", {list}, kVariant).ok());
}

TEST_F(TensorListTest, ElementShapes) {
  ExpectEqual(*step_.One("TensorListElementShape", {Empty(Ints({2, -1}))}, kInt32), Ints({2, -1}));
  ExpectEqual(*step_.One("TensorListElementShape", {Empty(Int(-1))}, kInt32), Int(-1));
}

}  // namespace
}  // namespace troupe
