#include "kernels/late_errors.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace troupe {
namespace {

TEST(LateErrors, TheFirstReportCountsAndNamesItsNode) {
  LateErrors errors;
  errors.Calling(3);
  const LateErrors::Reporter third = errors.reporter();
  errors.Calling(4);
  const LateErrors::Reporter fourth = errors.reporter();
  fourth(absl::OkStatus());
  EXPECT_FALSE(errors.any());
  third(absl::InvalidArgumentError("a"));
  fourth(absl::InternalError("b"));
  EXPECT_TRUE(errors.any());
  EXPECT_EQ(errors.first(), (std::pair<int32_t, absl::Status>(3, absl::InvalidArgumentError("a"))));
  errors.Clear();
  EXPECT_FALSE(errors.any());
  fourth(absl::InternalError("b"));
  EXPECT_EQ(errors.first(), (std::pair<int32_t, absl::Status>(4, absl::InternalError("b"))));
}

TEST(LateErrors, ManyReportAtOnce) {
  LateErrors errors;
  std::vector<LateErrors::Reporter> reporters;
  for (int i = 0; i < 8; ++i) {
    errors.Calling(i);
    reporters.push_back(errors.reporter());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 1000; ++k) reporters[i](absl::UnknownError(std::to_string(i)));
    });
  }
  while (!errors.any()) std::this_thread::yield();
  const auto [node, status] = errors.first();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(status, absl::UnknownError(std::to_string(node)));
  EXPECT_EQ(errors.first().first, node) << "later ones change nothing";
}

}  // namespace
}  // namespace troupe
