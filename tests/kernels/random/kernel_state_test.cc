#include "kernels/kernel_state.h"

#include <gtest/gtest.h>

#include "kernels/common/philox.h"

namespace troupe {
namespace {

TEST(PhiloxStream, GoesOnWhereItWasSaved) {
  PhiloxStream stream(3, 5);
  stream.Reserve(1000);
  const std::string saved = stream.Save();
  const Philox next = stream.Reserve(1);
  PhiloxStream other(3, 5);
  ASSERT_TRUE(other.Restore(saved));
  const Philox same = other.Reserve(1);
  EXPECT_EQ(same.counter_low(), next.counter_low());
  EXPECT_EQ(same.counter_high(), next.counter_high());
  EXPECT_EQ(same.key(), next.key());
}

TEST(PhiloxStream, ADrawnSeedIsRestored) {
  PhiloxStream stream(0, 0), other(0, 0);
  EXPECT_NE(stream.Save(), other.Save());
  ASSERT_TRUE(other.Restore(stream.Save()));
  EXPECT_EQ(stream.Save(), other.Save());
}

TEST(PhiloxStream, RefusesWhatIsNotItsOwn) {
  PhiloxStream stream(3, 5);
  const std::string before = stream.Save();
  EXPECT_FALSE(stream.Restore(PhiloxStream(3, 6).Save()));
  EXPECT_FALSE(stream.Restore(PhiloxStream(4, 5).Save()));
  EXPECT_FALSE(stream.Restore(PhiloxStream(0, 0).Save()));
  EXPECT_FALSE(stream.Restore(""));
  EXPECT_FALSE(stream.Restore(before + "x"));
  EXPECT_FALSE(stream.Restore(before.substr(1)));
  std::string version = before;
  version.back() ^= 1;
  EXPECT_FALSE(stream.Restore(version));
  EXPECT_EQ(stream.Save(), before);
}

}  // namespace
}  // namespace troupe
