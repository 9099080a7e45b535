// SegmentSum against a plain sum of rows.
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

TEST(SegmentSum, RowsOfEveryTypeWithGaps) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,
                                 ElementType::kInt8, ElementType::kInt32, ElementType::kUint64}) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(ElementTypeName(type));
      const Tensor data = RandomTensor(type, Shape({500, 3, 2}), 0, 2, 9);
      std::vector<int64_t> ids;
      for (int i = 0; i < 500; ++i) ids.push_back(2 + i / 7 * 3 / 2);
      OpTest op("SegmentSum", threads);
      op.Input(data).Input(Tensor::Vector<int64_t>(ids));
      ASSERT_TRUE(op.Run().ok());
      std::vector<double> want((ids.back() + 1) * 6);
      for (int i = 0; i < 500; ++i) {
        for (int k = 0; k < 6; ++k) want[ids[i] * 6 + k] += At(data, i * 6 + k);
      }
      const double tolerance = type == ElementType::kHalf ? 1e-2 : 1e-6;
      ExpectNear(op.output(0), MakeTensor(type, Shape({ids.back() + 1, 3, 2}), want), tolerance,
                 tolerance);
    }
  }
}

TEST(SegmentSum, EmptyOnes) {
  OpTest no_rows("SegmentSum"), no_columns("SegmentSum");
  no_rows.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({0, 3})))
      .Input(Tensor::Vector<int32_t>({}));
  ASSERT_TRUE(no_rows.Run().ok());
  EXPECT_EQ(no_rows.output(0).shape(), Shape({0, 3}));
  no_columns.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({2, 0})))
      .Input(Tensor::Vector<int32_t>({0, 3}));
  ASSERT_TRUE(no_columns.Run().ok());
  EXPECT_EQ(no_columns.output(0).shape(), Shape({4, 0}));
}

TEST(SegmentSum, BadInput) {
  const auto run = [](const Tensor& data, const Tensor& ids) {
    OpTest op("SegmentSum");
    op.Input(data).Input(ids);
    return op.Run();
  };
  const Tensor data = Tensor::Vector<float>({1, 2, 3});
  const absl::Status unsorted = run(data, Tensor::Vector<int32_t>({0, 2, 1}));
  EXPECT_EQ(unsorted.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unsorted.message().find("segment_ids[2] = 1 comes after 2"), std::string::npos)
      << unsorted;
  const absl::Status negative = run(data, Tensor::Vector<int32_t>({-1, 0, 1}));
  EXPECT_NE(negative.message().find("segment_ids[0] = -1 is negative"), std::string::npos)
      << negative;
  EXPECT_EQ(run(data, Tensor::Vector<int32_t>({0, 1})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Scalar(1.0f), Tensor::Vector<int32_t>({})).code(),
            StatusCode::kInvalidArgument);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  for (const int64_t last : {huge, huge - 1}) {
    EXPECT_EQ(run(Tensor::Uninitialized(ElementType::kFloat, Shape({1, 2})),
                  Tensor::Vector<int64_t>({last}))
                  .code(),
              StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe::testing
