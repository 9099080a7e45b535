// StringJoin and regular expressions. TensorFlow's own results: tests/golden/strings.pb.gz.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::OpTest;

Tensor Strings(const std::vector<std::string>& values) {
  return Tensor::Vector<std::string>(values);
}
Tensor Scalar(const std::string& value) { return Tensor::Scalar<std::string>(value); }

TEST(StringJoin, JoinsElementByElement) {
  OpTest op("StringJoin");
  op.Attr("separator", "-").Input(Strings({"a", "b"})).Input(Scalar("x")).Input(Strings({"", "d"}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Strings({"a-x-", "b-x-d"}));
}

TEST(StringJoin, ScalarsGiveAScalar) {
  OpTest op("StringJoin");
  op.Input(Scalar("model")).Input(Scalar(std::string("\0_temp", 6)));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Scalar(std::string("model\0_temp", 11)));
}

TEST(StringJoin, RefusesTwoShapes) {
  OpTest op("StringJoin");
  op.Input(Strings({"a", "b"})).Input(Strings({"a", "b", "c"}));
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("[2] and [3]"));
}

TEST(Regex, MatchesTheWholeString) {
  for (const bool fixed : {false, true}) {
    OpTest op(fixed ? "StaticRegexFullMatch" : "RegexFullMatch");
    op.Input(Strings({"s3://bucket/a", "xs3://", "/tmp/s3://", "s3:/"}));
    if (fixed) {
      op.Attr("pattern", "^s3://.*");
    } else {
      op.Input(Scalar("^s3://.*"));
    }
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Tensor::Vector<bool>({true, false, false, false}));
  }
}

TEST(Regex, Replaces) {
  for (const bool fixed : {false, true}) {
    for (const bool all : {false, true}) {
      OpTest op(fixed ? "StaticRegexReplace" : "RegexReplace");
      op.Attr("replace_global", all).Input(Strings({"a1b22", "none"}));
      if (fixed) {
        op.Attr("pattern", "([0-9]+)").Attr("rewrite", "<\\1>");
      } else {
        op.Input(Scalar("([0-9]+)")).Input(Scalar("<\\1>"));
      }
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(op.output(0), Strings({all ? "a<1>b<22>" : "a<1>b22", "none"}));
    }
  }
}

TEST(Regex, RefusesWhatIsNoPattern) {
  for (const std::string& pattern :
       std::vector<std::string>{"(", "a{2000}", "[z-a]", "\\8", std::string("*\0", 2)}) {
    for (const bool fixed : {false, true}) {
      OpTest op(fixed ? "StaticRegexFullMatch" : "RegexFullMatch");
      op.Input(Strings({}));
      if (fixed) {
        op.Attr("pattern", pattern);
      } else {
        op.Input(Scalar(pattern));
      }
      const absl::Status status = op.Run();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << pattern;
      EXPECT_THAT(std::string(status.message()), HasSubstr(pattern)) << status;
    }
  }
}

// What takes other matchers time exponential in the string.
TEST(Regex, TakesLinearTime) {
  OpTest op("RegexFullMatch");
  op.Input(Scalar(std::string(100'000, 'a') + "b")).Input(Scalar("(a*)*(a|aa)+c"));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Scalar<bool>(false));
}

TEST(Regex, APatternIsAScalar) {
  OpTest op("RegexFullMatch");
  op.Input(Strings({"a"})).Input(Strings({"a", "b"}));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
