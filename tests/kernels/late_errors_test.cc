#include "kernels/late_errors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "devices/status_macros.h"

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

absl::Status Explain(const int64_t* values) {
  return absl::OutOfRangeError(StrCat(values[0], " ", values[1], " ", values[2]));
}

/// What a device does.
void Fill(const LateCheck& check, int64_t value) {
  LateRecord& record = *check.record;
  if (std::atomic_ref(record.claimed).exchange(1) != 0) return;
  record.node = check.node;
  record.explain = check.explain;
  for (int64_t& v : record.values) v = value++;
  std::atomic_ref(record.complete).store(1);
}

TEST(LateErrors, ADeviceFillsInTheRecordOfAllKernels) {
  LateErrors all, own(&all);
  all.Calling(3);
  const absl::StatusOr<LateCheck> third = all.Check(HostAllocator(), Explain);
  own.Calling(4);
  const absl::StatusOr<LateCheck> fourth = own.Check(HostAllocator(), Explain);
  ASSERT_TRUE(third.ok() && fourth.ok());
  EXPECT_FALSE(all.any());
  Fill(*fourth, 7);
  Fill(*third, 17);
  EXPECT_TRUE(all.any());
  EXPECT_TRUE(own.any());
  const std::pair<int32_t, absl::Status> expected(4, absl::OutOfRangeError("7 8 9"));
  EXPECT_EQ(all.first(), expected);
  all.Clear();
  EXPECT_FALSE(own.any());
  Fill(*third, 17);
  EXPECT_EQ(all.first().first, 3);
}

TEST(LateErrors, TheRecordIsMadeOnce) {
  LateErrors errors;
  std::vector<std::thread> threads;
  std::vector<LateRecord*> records(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      LateErrors own(&errors);
      own.Calling(i);
      records[i] = own.Check(HostAllocator(), Explain)->record;
      Fill(*own.Check(HostAllocator(), Explain), i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::vector<LateRecord*>(8, records[0]), records);
  const auto [node, status] = errors.first();
  EXPECT_EQ(status, absl::OutOfRangeError(StrCat(node, " ", node + 1, " ", node + 2)));
}

}  // namespace
}  // namespace troupe
