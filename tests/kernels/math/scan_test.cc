// CumulativeLogsumexp, CheckNumericsV2, data formats, Timestamp.
#include <cmath>
#include <limits>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr double kNoSum = -std::numeric_limits<double>::infinity();

TEST(CumulativeLogsumexpTest, EqualsNaiveSums) {
  for (const ElementType type : {kFloat, kDouble, kHalf, kBfloat16}) {
    const double tolerance = type == kDouble ? 1e-12 : type == kFloat ? 1e-5 : 3e-2;
    const Tensor x = RandomTensor(type, Shape({2, 5, 3}), -3, 3);
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        SCOPED_TRACE(::testing::Message() << ElementTypeName(type) << exclusive << reverse);
        Tensor want = Tensor::Uninitialized(type, x.shape());
        for (int64_t i = 0; i < 30; ++i) {
          const int64_t row = i / 3 % 5;
          double sum = 0;
          for (int64_t k = 0; k < 5; ++k) {
            const bool before = reverse ? k > row : k < row;
            if (before || (k == row && !exclusive)) sum += std::exp(At(x, i + (k - row) * 3));
          }
          Set(&want, i, std::log(sum));
        }
        OpTest op("CumulativeLogsumexp");
        op.Input(x).Input(Tensor::Scalar<int32_t>(-2));
        op.Attr("exclusive", exclusive).Attr("reverse", reverse);
        ASSERT_TRUE(op.Run().ok());
        ExpectNear(op.output(0), want, tolerance, tolerance);
      }
    }
  }
}

TEST(CumulativeLogsumexpTest, SpecialValues) {
  OpTest op("CumulativeLogsumexp");
  op.Input(Tensor::Vector<double>({NAN, kNoSum, 1000, 1000, -kNoSum, 0}))
      .Input(Tensor::Scalar<int64_t>(0));
  ASSERT_TRUE(op.Run().ok());
  ExpectNear(op.output(0), Tensor::Vector<double>(
                               {kNoSum, kNoSum, 1000, 1000 + std::log(2.0), -kNoSum, -kNoSum}));
  OpTest axis("CumulativeLogsumexp");
  axis.Input(Tensor::Vector<float>({1})).Input(Tensor::Scalar<int32_t>(1));
  EXPECT_EQ(axis.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckNumericsV2Test, SaysWhat) {
  OpTest op("CheckNumericsV2");
  op.Attr("message", "loss").Input(Tensor::Vector<float>({1, NAN, -INFINITY, INFINITY}));
  const absl::Status status = op.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("loss : Tensor had -Inf and +Inf and NaN values"),
            std::string::npos)
      << status;
  OpTest finite("CheckNumericsV2");
  finite.Attr("message", "").Input(Tensor::Vector<double>({1, -1e308}));
  ASSERT_TRUE(finite.Run().ok());
  ExpectEqual(finite.output(0), Tensor::Vector<double>({1, -1e308}));
}

absl::StatusOr<Tensor> RunFormat(const char* name, const Tensor& x, const char* source,
                                 const char* target) {
  OpTest op(name);
  op.Input(x).Attr("src_format", source).Attr("dst_format", target);
  const absl::Status status = op.Run();
  if (!status.ok()) return status;
  return op.output(0);
}

TEST(DataFormatTest, MapsDimensions) {
  const Tensor x = Tensor::Vector<int32_t>({0, 1, 2, 3, -1, -4});
  ExpectEqual(RunFormat("DataFormatDimMap", x, "NHWC", "NCHW").value(),
              Tensor::Vector<int32_t>({0, 2, 3, 1, 1, 0}));
  const Tensor far = Tensor::Vector<int64_t>({INT64_MAX, INT64_MIN});
  EXPECT_TRUE(RunFormat("DataFormatDimMap", far, "NDHWC", "NCDHW").ok());
}

TEST(DataFormatTest, PermutesVectors) {
  const Tensor x = Tensor::Vector<int64_t>({7, 8, 9, 10});
  ExpectEqual(RunFormat("DataFormatVecPermute", x, "NHWC", "NCHW").value(),
              Tensor::Vector<int64_t>({7, 10, 8, 9}));
  ExpectEqual(
      RunFormat("DataFormatVecPermute", Tensor::Vector<int32_t>({1, 2}), "NHWC", "NWHC").value(),
      Tensor::Vector<int32_t>({2, 1}));
  const Tensor pairs = Tensor::FromValues<int32_t>({1, 2, 3, 4, 5, 6, 7, 8}, Shape({4, 2})).value();
  ExpectEqual(RunFormat("DataFormatVecPermute", pairs, "NCHW", "NHWC").value(),
              Tensor::FromValues<int32_t>({1, 2, 5, 6, 7, 8, 3, 4}, Shape({4, 2})).value());
}

TEST(DataFormatTest, BadFormats) {
  const Tensor x = Tensor::Vector<int32_t>({1, 2, 3, 4});
  for (const char* op : {"DataFormatDimMap", "DataFormatVecPermute"}) {
    for (const char* target : {"", "NCH", "NCHX", "NHHC", "NCDHW", "NCDHWX"}) {
      EXPECT_EQ(RunFormat(op, x, "NHWC", target).status().code(),
                absl::StatusCode::kInvalidArgument)
          << op << " " << target;
    }
  }
  for (const Tensor& wrong :
       {Tensor::Scalar<int32_t>(1), Tensor::Vector<int32_t>({1, 2, 3}),
        Tensor::Uninitialized(kInt32, Shape({4, 3})),
        Tensor::Uninitialized(kInt32, Shape({4, 2, 1})), Tensor::Vector<int32_t>({})}) {
    EXPECT_FALSE(RunFormat("DataFormatVecPermute", wrong, "NHWC", "NCHW").ok());
  }
  EXPECT_FALSE(
      RunFormat("DataFormatVecPermute", Tensor::Vector<int32_t>({1, 2}), "ABCD", "DCBA").ok());
}

TEST(TimestampTest, IsNow) {
  OpTest op("Timestamp");
  ASSERT_TRUE(op.Run().ok());
  EXPECT_NEAR(At(op.output(0), 0), absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 60);
}

}  // namespace
}  // namespace troupe::testing
