// Bands of diagonals, element by element.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

constexpr double kPadding = 77;

/// The diagonals of matrices [batch, rows, columns], highest first, as the op's documentation says.
std::vector<double> NaiveDiagonals(const Tensor& m, int64_t lower, int64_t upper,
                                   const std::string& align) {
  const int64_t rows = m.dim(1), columns = m.dim(2);
  const auto length = [&](int64_t d) {
    return std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
  };
  int64_t width = 0;
  for (int64_t d = lower; d <= upper; ++d) width = std::max(width, length(d));
  std::vector<double> diagonals;
  for (int64_t b = 0; b < m.dim(0); ++b) {
    for (int64_t d = upper; d >= lower; --d) {
      const std::string side =
          d >= 0 ? align.substr(0, align.find('_')) : align.substr(align.find('_') + 1);
      const int64_t first = side == "LEFT" ? 0 : width - length(d);
      for (int64_t i = 0; i < width; ++i) {
        const int64_t k = i - first, row = k + std::max<int64_t>(-d, 0),
                      column = k + std::max<int64_t>(d, 0);
        diagonals.push_back(k < 0 || k >= length(d) ? kPadding
                                                    : At(m, (b * rows + row) * columns + column));
      }
    }
  }
  return diagonals;
}

TEST(DiagonalBands, EveryBandAndAlignment) {
  const int64_t rows = 3, columns = 4;
  const Tensor m = RandomTensor(ElementType::kFloat, Shape({2, rows, columns}), -1, 1);
  for (const char* align : {"LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"}) {
    for (int32_t lower = -2; lower <= 3; ++lower) {
      for (int32_t upper = lower; upper <= 3; ++upper) {
        SCOPED_TRACE(absl::StrCat(align, " ", lower, " ", upper));
        const Tensor k = Tensor::Vector<int32_t>({lower, upper});
        OpTest part("MatrixDiagPartV3");
        part.Attr("align", align).Input(m).Input(k).Input(Tensor::Scalar<float>(kPadding));
        ASSERT_EQ(part.Run(), absl::OkStatus());
        const Tensor& diagonals = part.output(0);
        // The diagonal of 0 has no side of its own where both are the longest.
        const std::vector<double> want = NaiveDiagonals(m, lower, upper, align);
        ASSERT_EQ(diagonals.num_elements(), static_cast<int64_t>(want.size()));
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(At(diagonals, static_cast<int64_t>(i)), static_cast<float>(want[i])) << i;
        }
        // Put where they were taken from they change nothing.
        OpTest set("MatrixSetDiagV3");
        set.Attr("align", align).Input(m).Input(diagonals).Input(k);
        ASSERT_EQ(set.Run(), absl::OkStatus());
        ExpectEqual(set.output(0), m);
        // Matrices of nothing else have the same diagonals.
        OpTest diag("MatrixDiagV3");
        diag.Attr("align", align).Input(diagonals).Input(k);
        diag.Input(Tensor::Scalar<int32_t>(rows)).Input(Tensor::Scalar<int32_t>(columns));
        diag.Input(Tensor::Scalar<float>(5));
        ASSERT_EQ(diag.Run(), absl::OkStatus());
        for (int64_t i = 0; i < m.num_elements(); ++i) {
          const int64_t d = i % columns - i / columns % rows;
          EXPECT_EQ(At(diag.output(0), i), d >= lower && d <= upper ? At(m, i) : 5) << i;
        }
      }
    }
  }
}

TEST(DiagonalBands, RefusesWhatDoesNotFit) {
  const Tensor zero = Tensor::Scalar<float>(0);
  const auto number = [](int32_t n) { return Tensor::Scalar<int32_t>(n); };
  const auto part = [&](const Shape& shape, const Tensor& k) {
    OpTest op("MatrixDiagPartV3");
    op.Input(RandomTensor(ElementType::kFloat, shape, 0, 1)).Input(k).Input(zero);
    return op.Run().code();
  };
  const auto diag = [&](const Shape& shape, const Tensor& k, int32_t rows, int32_t columns) {
    OpTest op("MatrixDiagV2");
    op.Input(RandomTensor(ElementType::kFloat, shape, 0, 1)).Input(k);
    op.Input(number(rows)).Input(number(columns)).Input(zero);
    return op.Run().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(part(Shape({2, 2}), number(2)), invalid);
  EXPECT_EQ(part(Shape({2, 2}), number(INT32_MIN)), invalid);
  EXPECT_EQ(part(Shape({2, 2}), Tensor::Vector<int32_t>({1, 0})), invalid);
  EXPECT_EQ(part(Shape({2, 2}), Tensor::Vector<int32_t>({0, 0, 0})), invalid);
  EXPECT_EQ(part(Shape({2}), number(0)), invalid);
  EXPECT_EQ(diag(Shape({2}), number(0), 1, -1), invalid);
  EXPECT_EQ(diag(Shape({2}), number(0), 3, 3), invalid);
  EXPECT_EQ(diag(Shape({3, 2}), Tensor::Vector<int32_t>({0, 1}), -1, -1), invalid);
  EXPECT_EQ(diag(Shape({2}), Tensor::Vector<int32_t>({INT32_MIN, INT32_MAX}), -1, -1), invalid);
  EXPECT_EQ(diag(Shape(), number(0), -1, -1), invalid);
  OpTest set("MatrixSetDiagV2");
  set.Input(RandomTensor(ElementType::kFloat, Shape({2, 2}), 0, 1));
  set.Input(RandomTensor(ElementType::kFloat, Shape({2}), 0, 1)).Input(number(1));
  EXPECT_EQ(set.Run().code(), invalid);
}

}  // namespace
}  // namespace troupe::testing
