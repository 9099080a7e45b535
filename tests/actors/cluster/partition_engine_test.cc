#include "actors/cluster/partition_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/cluster/inline_host.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PartitionEngineTest : public testing::Test {
 protected:
  void Arrive(uint64_t step) {
    engine_.Arrive(step, 1, 0, false, Tensor::Vector<float>({1}), nullptr);
  }

  InlineHost host_;
  PartitionEngine engine_{*Runtime::Create({.threads = 1}), &host_};
};

// A process that has just begun, or stood still, has been told an old time or none.
TEST_F(PartitionEngineTest, ValuesThatComeBeforeTheirStepAreKeptForAWhile) {
  constexpr ClusterTime kUptime = 1000000 * kSecond;
  Arrive(7);
  EXPECT_THAT(engine_.DropEarly(kUptime, 10 * kSecond), IsEmpty());
  EXPECT_THAT(engine_.DropEarly(kUptime + 10 * kSecond, 10 * kSecond), IsEmpty());
  Arrive(8);
  EXPECT_THAT(engine_.DropEarly(kUptime + 30 * kSecond, 10 * kSecond), ElementsAre(7));
  EXPECT_EQ(engine_.num_early_steps(), 1u);
  EXPECT_THAT(engine_.DropEarly(kUptime + 41 * kSecond, 10 * kSecond), ElementsAre(8));
  EXPECT_EQ(engine_.num_early_steps(), 0u);
}

TEST_F(PartitionEngineTest, ValuesOfForgottenStepsAreNotKept) {
  Arrive(7);
  engine_.Forget(7);
  Arrive(7);
  EXPECT_EQ(engine_.num_early_steps(), 0u);
}

}  // namespace
}  // namespace troupe
