#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/kernels/data/step_runner.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using testing::StepRunner;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;
using enum ElementType;

TEST(PrintTest, PrintsTheFirstTimesOnly) {
  StepRunner step;
  step.Attr("T", kFloat).Attr("message", std::string("x = ")).Attr("first_n", int64_t{2});
  Kernel* print = *step.Make("Print", {kFloat, kInt32, kFloat}, {kFloat});
  const Tensor x = Tensor::Vector<float>({1, 2});
  const Tensor many = Tensor::Vector<int32_t>({1, 2, 3, 4, 5});
  CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    auto out = step.Run(print, {x, many, Tensor::Scalar(0.5f)}, 1);
    ASSERT_TRUE(out.ok());
    ExpectEqual((*out)[0], x);
  }
  const std::string line = "x = [1 2 3...][0.5]\n";
  EXPECT_EQ(GetCapturedStderr(), line + line);
}

TEST(PrintTest, WritesToStreams) {
  StepRunner step;
  step.Attr("end", std::string("!\n"));
  auto print = [&](const std::string& stream) {
    return step.Attr("output_stream", stream)
        .Run("PrintV2", {Tensor::Scalar<std::string>("hello")}, {})
        .status();
  };
  CaptureStderr();
  EXPECT_TRUE(print("stderr").ok());
  EXPECT_TRUE(print("log(warning)").ok());
  EXPECT_EQ(GetCapturedStderr(), "hello!\nWARNING: hello!\n");
  CaptureStdout();
  EXPECT_TRUE(print("stdout").ok());
  EXPECT_EQ(GetCapturedStdout(), "hello!\n");
  const std::string path = ::testing::TempDir() + "/troupe_print_test.txt";
  std::remove(path.c_str());
  EXPECT_TRUE(print("file://" + path).ok());
  EXPECT_TRUE(print("file://" + path).ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "hello!\nhello!\n");
  std::remove(path.c_str());
  EXPECT_EQ(print("printer").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(print("file:///no/such/folder/x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(step.Attr("output_stream", std::string("stderr"))
                .Run("PrintV2", {Tensor::Vector<std::string>({"a"})}, {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AbortTest, EndsTheStepOnly) {
  StepRunner step;
  step.Attr("error_msg", std::string("enough")).Attr("exit_without_error", true);
  const absl::Status status = step.Run("Abort", {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "enough");
}

}  // namespace
}  // namespace troupe
