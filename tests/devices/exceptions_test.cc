#include "devices/exceptions.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {
namespace {

template <typename T>
absl::Status Thrown(const T& exception) {
  return CatchExceptions([&]() -> absl::Status { throw exception; });
}

TEST(ExceptionsTest, BecomeStatuses) {
  EXPECT_EQ(Thrown(std::bad_alloc()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Thrown(std::bad_array_new_length()).code(), absl::StatusCode::kResourceExhausted);
  const absl::Status status = Thrown(std::runtime_error("what happened"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(std::string(status.message()).find("what happened"), std::string::npos);
  EXPECT_EQ(Thrown(42).code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(Thrown(42).message().empty());
}

TEST(ExceptionsTest, ResultsPass) {
  EXPECT_TRUE(CatchExceptions([] { return absl::OkStatus(); }).ok());
  const absl::StatusOr<int> seven = CatchExceptions([]() -> absl::StatusOr<int> { return 7; });
  EXPECT_EQ(seven.value_or(0), 7);
  const absl::StatusOr<int> none =
      CatchExceptions([]() -> absl::StatusOr<int> { throw std::bad_alloc(); });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ExceptionsTest, ContextGoesAroundTheMessage) {
  const absl::Status status = WithContext("a ", absl::NotFoundError("b"), " c");
  EXPECT_EQ(status, absl::NotFoundError("a b c"));
  EXPECT_TRUE(WithContext("a", absl::OkStatus(), "c").ok());
}

}  // namespace
}  // namespace troupe
