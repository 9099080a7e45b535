#include "devices/memory_use.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(MemoryUseTest, DescribesTheLargestAndCountsThoseThatAreAlike) {
  EXPECT_EQ(DescribeLargest({}), "");
  EXPECT_EQ(DescribeLargest({{64, "", ""},
                             {4096, "float [1024]", "node a (Neg)"},
                             {64, "", ""},
                             {100, "", "variable w"},
                             {50, "int8 [50]", ""},
                             {3, "", ""},
                             {2, "", ""}}),
            "4096 bytes (float [1024], node a (Neg)), 100 bytes (variable w), 2 of 64 bytes, "
            "50 bytes (int8 [50]), 3 bytes");
}

class Blocks : public LiveBlocks {
 public:
  using LiveBlocks::Add;
  using LiveBlocks::Remove;
};

TEST(MemoryUseTest, KeepsWhatIsAliveAndTheNamesOfWhoAllocatedIt) {
  Blocks blocks;
  char memory[3];
  blocks.Add(&memory[0], 10);
  {
    auto nodes = std::make_shared<const std::vector<std::string>>(
        std::vector<std::string>{"node a (Neg)", "node b (Abs)"});
    const ScopedAllocationPurpose outer({&nodes, 1, ElementType::kFloat, 5});
    blocks.Add(&memory[1], 20);
    const ScopedAllocationPurpose inner({&nodes, 0, ElementType::kInt64, 4});
    blocks.Add(&memory[2], 32);
  }
  EXPECT_EQ(blocks.Largest(),
            "32 bytes (4 of int64, node a (Neg)), 20 bytes (5 of float, node b (Abs)), 10 bytes");
  blocks.Remove(&memory[1]);
  blocks.Remove(&memory[1]);  // One that could not be noted.
  blocks.Add(&memory[0], 40);
  EXPECT_EQ(blocks.Largest(), "40 bytes, 32 bytes (4 of int64, node a (Neg))");
}

TEST(MemoryUseTest, AnErrorThatNothingWasAddedToIsKnown) {
  EXPECT_TRUE(IsOutOfMemory(OutOfMemory("no room")));
  EXPECT_TRUE(absl::IsResourceExhausted(OutOfMemory("no room")));
  EXPECT_FALSE(IsOutOfMemory(absl::ResourceExhaustedError("too many calls")));
  EXPECT_FALSE(IsOutOfMemory(absl::OkStatus()));
}

}  // namespace
}  // namespace troupe
