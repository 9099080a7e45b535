#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/data/step_runner.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::StepRunner;
using enum ElementType;

class OptionalTest : public ::testing::Test {
 protected:
  absl::StatusOr<StepRunner::Tensors> Get(const Tensor& optional, std::vector<ElementType> types,
                                          std::vector<PartialShape> shapes) {
    step_.Attr("output_types", types).Attr("output_shapes", shapes);
    return step_.Run("OptionalGetValue", {optional}, types);
  }
  Tensor FromValue(StepRunner::Tensors values) {
    return *step_.One("OptionalFromValue", std::move(values), kVariant);
  }
  StepRunner step_;
  const Tensor one_ = Tensor::Vector<float>({1}), two_ = Tensor::Vector<int32_t>({2, 3});
};

TEST_F(OptionalTest, HoldsTensorsOrNothing) {
  const Tensor some = FromValue({one_, two_});
  const Tensor none = *step_.One("OptionalNone", {}, kVariant);
  ExpectEqual(*step_.One("OptionalHasValue", {some}, kBool), Tensor::Scalar(true));
  ExpectEqual(*step_.One("OptionalHasValue", {none}, kBool), Tensor::Scalar(false));
  auto values = Get(some, {kFloat, kInt32}, {PartialShape(), PartialShape({-1})});
  ASSERT_TRUE(values.ok()) << values.status();
  ExpectEqual((*values)[0], one_);
  ExpectEqual((*values)[1], two_);
  struct Case {
    absl::Status status;
    const char* message;
  } cases[] = {
      {Get(none, {kFloat}, {PartialShape()}).status(), "does not have a value"},
      {Get(some, {kFloat}, {PartialShape()}).status(), "components"},
      {Get(some, {kFloat, kFloat}, {PartialShape(), PartialShape()}).status(), "expected type"},
      {Get(some, {kFloat, kInt32}, {PartialShape(), PartialShape({3})}).status(), "expected shape"},
      {Get(some, {kFloat, kInt32}, {PartialShape()}).status(), "same length"},
      {Get(Tensor::Scalar<Variant>(Variant(1)), {kFloat}, {PartialShape()}).status(),
       "no optional"},
      {step_.One("OptionalHasValue", {Tensor::Uninitialized(kVariant, {2})}, kBool).status(),
       "scalar"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.status.code(), absl::StatusCode::kInvalidArgument) << c.status;
    EXPECT_THAT(std::string(c.status.message()), HasSubstr(c.message));
  }
}

TEST_F(OptionalTest, AddsAndMakesZeros) {
  step_.Attr("T", kVariant).Attr("N", int64_t{2});
  const Tensor some = FromValue({one_});
  const Tensor none = *step_.One("OptionalNone", {}, kVariant);
  const Tensor sum = *step_.One("AddN", {some, some}, kVariant);
  ExpectEqual((*Get(sum, {kFloat}, {PartialShape()}))[0], Tensor::Vector<float>({2}));
  const Tensor zeros = *step_.One("ZerosLike", {some}, kVariant);
  ExpectEqual((*Get(zeros, {kFloat}, {PartialShape()}))[0], Tensor::Vector<float>({0}));
  ExpectEqual((*Get(some, {kFloat}, {PartialShape()}))[0], one_);
  EXPECT_EQ(step_.One("AddN", {some, none}, kVariant).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(step_.One("AddN", {none, none}, kVariant).ok());
}

}  // namespace
}  // namespace troupe
