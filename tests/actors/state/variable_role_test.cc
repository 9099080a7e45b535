#include "actors/state/variable_role.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/state/containers.h"

namespace troupe {
namespace {

TEST(VariableRoleTest, LendsToOneAtATimeInOrder) {
  auto v = MakeRef<VariableRole>("v", ElementType::kFloat, Shape());
  Variable::Lease lease = v->TryLend();
  ASSERT_TRUE(lease);
  EXPECT_FALSE(v->TryLend());
  std::vector<int> visits;
  for (int i = 0; i < 5; ++i) {
    v->Lend([&visits, i](Variable::Lease) { visits.push_back(i); });
  }
  EXPECT_TRUE(visits.empty());
  lease.Release();
  EXPECT_EQ(visits, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(v->TryLend());
}

TEST(VariableRoleTest, AVisitorAllocatesForItselfWhoeverGivesTheLeaseBack) {
  auto v = MakeRef<VariableRole>("v", ElementType::kFloat, Shape());
  const auto nodes = std::make_shared<const std::vector<std::string>>();
  Variable::Lease lease = v->TryLend();
  int32_t node = 0;
  {
    const ScopedAllocationPurpose of_visitor({&nodes, 7});
    v->Lend([&node](const Variable::Lease&) { node = AllocationPurpose::OfThisThread().node; });
  }
  const ScopedAllocationPurpose of_holder({&nodes, 3});
  EXPECT_EQ(node, 0) << "it waits";
  lease.Release();
  EXPECT_EQ(node, 7);
  EXPECT_EQ(AllocationPurpose::OfThisThread().node, 3);
}

TEST(VariableRoleTest, AVisitorMayKeepTheLease) {
  auto v = MakeRef<VariableRole>("v", ElementType::kFloat, Shape());
  Variable::Lease first = v->TryLend();
  Variable::Lease kept;
  int second_visits = 0;
  v->Lend([&](Variable::Lease lease) { kept = std::move(lease); });
  v->Lend([&](Variable::Lease) { ++second_visits; });
  first.Release();
  ASSERT_TRUE(kept);
  EXPECT_EQ(second_visits, 0);
  kept.Release();
  EXPECT_EQ(second_visits, 1);
}

TEST(VariableRoleTest, ALongQueueIsNoDeepStack) {
  auto v = MakeRef<VariableRole>("v", ElementType::kFloat, Shape());
  Variable::Lease lease = v->TryLend();
  int visits = 0;
  for (int i = 0; i < 200000; ++i) v->Lend([&](Variable::Lease) { ++visits; });
  lease.Release();
  EXPECT_EQ(visits, 200000);
}

TEST(VariableRoleTest, ConcurrentUpdatesAreNotLost) {
  auto v = MakeRef<VariableRole>("v", ElementType::kInt64, Shape());
  v->TryLend().set_value(Tensor::Scalar<int64_t>(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        v->Lend(
            [](Variable::Lease lease) { *(*lease.mutable_value())->mutable_data<int64_t>() += 1; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::atomic<int64_t> value{-1};
  v->Lend([&](Variable::Lease lease) { value = lease.value().unchecked_scalar<int64_t>(); });
  EXPECT_EQ(value, 80000);
}

TEST(VariableRoleTest, AReaderNeverSeesAnUpdate) {
  auto v = MakeRef<VariableRole>("v", ElementType::kFloat, Shape());
  v->TryLend().set_value(Tensor::Scalar(1.0f));
  Tensor snapshot = v->TryLend().value();
  {
    Variable::Lease lease = v->TryLend();
    *(*lease.mutable_value())->mutable_data<float>() = 2;
  }
  EXPECT_EQ(snapshot.unchecked_scalar<float>(), 1);
  EXPECT_EQ(v->TryLend().value().unchecked_scalar<float>(), 2);
}

TEST(ContainersTest, NamesTypesAndReset) {
  Containers containers;
  auto v = containers.FindOrCreateVariable("", "v", ElementType::kFloat, Shape());
  ASSERT_TRUE(v.ok());
  auto again = containers.FindOrCreateVariable("localhost", "v", ElementType::kFloat, Shape());
  EXPECT_EQ(v->get(), again->get());
  EXPECT_EQ(containers.FindOrCreateVariable("", "v", ElementType::kInt32, Shape()).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto other = containers.FindOrCreateVariable("other", "v", ElementType::kFloat, Shape());
  EXPECT_NE(v->get(), other->get());
  EXPECT_EQ(containers.List().size(), 2u);
  containers.Reset("");
  EXPECT_TRUE((*v)->destroyed());
  EXPECT_FALSE((*other)->destroyed());
  EXPECT_EQ(containers.FindOrCreate("", "v", nullptr).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(containers.Destroy("other", "v").ok());
  EXPECT_EQ(containers.Destroy("other", "v").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
