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

class StackTest : public ::testing::Test {
 protected:
  StackTest() { step_.Attr("elem_type", kFloat).Attr("T", kFloat); }
  Tensor Make(int32_t most) {
    return *step_.One("StackV2", {Tensor::Scalar<int32_t>(most)}, kResource);
  }
  absl::Status Push(const Tensor& handle, float value) {
    return step_.One("StackPushV2", {handle, Tensor::Scalar(value)}, kFloat).status();
  }
  absl::StatusOr<Tensor> Pop(const Tensor& handle) {
    return step_.One("StackPopV2", {handle}, kFloat);
  }
  StepRunner step_;
};

void ExpectInvalid(const absl::Status& status, const char* message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST_F(StackTest, LastInFirstOut) {
  const Tensor handle = Make(-1);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Push(handle, static_cast<float>(i)).ok());
  for (int i = 9; i >= 0; --i) ExpectEqual(*Pop(handle), Tensor::Scalar(static_cast<float>(i)));
  ExpectInvalid(Pop(handle).status(), "empty");
}

TEST_F(StackTest, RefusesWhatDoesNotFit) {
  const Tensor small = Make(1), other = Make(1);
  ASSERT_TRUE(Push(small, 1).ok());
  ExpectInvalid(Push(small, 1), "overflowed");
  ExpectInvalid(step_.One("StackPushV2", {other, Tensor::Scalar(1)}, kInt32).status(),
                "element types");
  step_.Attr("elem_type", kInt32);
  ExpectInvalid(step_.One("StackPopV2", {small}, kInt32).status(), "element types");
  step_.Attr("elem_type", kFloat);
  ASSERT_TRUE(step_.Run("StackCloseV2", {small}, {}).ok());
  ExpectInvalid(Push(small, 1), "closed");
  ExpectInvalid(Pop(small).status(), "closed");
  ExpectInvalid(Pop(Tensor::Scalar(ResourceHandle())).status(), "does not refer to a stack");
  ExpectInvalid(step_.One("StackV2", {Tensor::Vector<int32_t>({1})}, kResource).status(), "scalar");
}

}  // namespace
}  // namespace troupe
