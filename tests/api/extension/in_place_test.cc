// Kernels of extensions work in place where they may, as the example teaches.

#include <gtest/gtest.h>

#include "api/extension.h"
#include "tests/kernels/kernel_test_util.h"

#ifdef TROUPE_CUBE_LIBRARY

namespace troupe {
namespace {

TEST(InPlaceTest, TheExampleTakesItsInputsBufferOver) {
  ASSERT_TRUE(LoadLibrary(TROUPE_CUBE_LIBRARY).ok());
  for (const bool forwardable : {true, false}) {
    testing::OpTest op("Cube");
    op.Input(Tensor::Vector<float>({1, 2, 3}), forwardable);
    const absl::Status status = op.Run();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(op.InPlace(0, 0), forwardable);
    EXPECT_EQ(op.output(0).unchecked_data<float>()[2], 27);
  }
}

}  // namespace
}  // namespace troupe

#endif  // TROUPE_CUBE_LIBRARY
