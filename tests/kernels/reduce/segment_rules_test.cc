// Segment ops against plain loops, and what they refuse.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

/// A rule as a plain function of the numbers of a segment in one column.
struct Rule {
  const char* name;
  double (*reduce)(const std::vector<double>& values);
};

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

const Rule kRules[] = {
    {"Max", [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }},
    {"Mean", [](const std::vector<double>& v) { return Sum(v) / static_cast<double>(v.size()); }},
    {"Min", [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }},
    {"Prod",
     [](const std::vector<double>& v) {
       double product = 1;
       for (const double value : v) product *= value;
       return product;
     }},
    {"Sum", Sum},
};

constexpr int kRows = 60;

/// `missing` for segments without a row.
Tensor Expected(const Tensor& data, const std::vector<int32_t>& ids, int segments, double missing,
                const Rule& rule) {
  std::vector<double> want;
  const int64_t columns = data.dim(1);
  for (int s = 0; s < segments; ++s) {
    for (int64_t c = 0; c < columns; ++c) {
      std::vector<double> values;
      for (int r = 0; r < kRows; ++r) {
        if (ids[r] == s) values.push_back(At(data, r * columns + c));
      }
      want.push_back(values.empty() ? missing : rule.reduce(values));
    }
  }
  return MakeTensor(data.type(), Shape({segments, columns}), want);
}

std::vector<ElementType> SomeTypes() {
  return {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf,  ElementType::kBfloat16,
          ElementType::kInt8,  ElementType::kInt64,  ElementType::kUint16};
}

double Tolerance(ElementType type) {
  return type == ElementType::kBfloat16 ? 0.05 : type == ElementType::kHalf ? 0.01 : 1e-5;
}

TEST(SegmentRules, SortedAndUnsorted) {
  std::vector<int32_t> sorted, shuffled;
  for (int r = 0; r < kRows; ++r) {
    sorted.push_back(r / 3 * 2);
    shuffled.push_back(r * 7 % 23 - 2);
  }
  for (const Rule& rule : kRules) {
    for (const ElementType type : SomeTypes()) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(std::string(rule.name) + " of " + ElementTypeName(type));
        const Tensor data = RandomTensor(type, Shape({kRows, 3}), 1, 3, 7);
        OpTest op(std::string("Segment") + rule.name, threads);
        op.Input(data).Input(Tensor::Vector<int32_t>(sorted));
        ASSERT_TRUE(op.Run().ok());
        const bool product = std::string(rule.name) == "Prod";
        const double tolerance = Tolerance(type);
        ExpectNear(op.output(0), Expected(data, sorted, sorted.back() + 1, product ? 1 : 0, rule),
                   tolerance, tolerance);
        if (std::string(rule.name) == "Mean") continue;
        OpTest unsorted(std::string("UnsortedSegment") + rule.name, threads);
        unsorted.Input(data).Input(Tensor::Vector<int32_t>(shuffled));
        unsorted.Input(Tensor::Scalar<int32_t>(21));
        ASSERT_TRUE(unsorted.Run().ok());
        ExpectNear(unsorted.output(0), Expected(data, shuffled, 21, 0, rule), tolerance, tolerance);
      }
    }
  }
}

// Segments of one row, of several, and of so many that sums of few columns go in parallel.
TEST(SegmentRules, RowsOfAnyLength) {
  std::vector<int32_t> ids = {1, 2, 2};
  while (ids.size() < 50) ids.push_back(5);
  while (ids.size() < kRows) ids.push_back(static_cast<int32_t>(ids.size()) / 4);
  const std::vector<int64_t> wide_ids(ids.begin(), ids.end());
  for (const Rule& rule : kRules) {
    const std::string name = rule.name;
    for (const ElementType type : SomeTypes()) {
      // Products of 47 rows are near 1.
      const bool product = name == "Prod", whole = IsInteger(type);
      for (const int64_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 70}) {
        SCOPED_TRACE(name + " of " + ElementTypeName(type) + StrCat(", columns ", columns));
        const Tensor data =
            RandomTensor(type, Shape({kRows, columns}), whole || !product ? 1 : 0.97,
                         whole || !product ? (product ? 1 : 2) : 1.03, 7);
        std::vector<Tensor> outputs;
        for (const int threads : {1, 3}) {
          OpTest op("Segment" + name, threads);
          op.Input(data).Input(Tensor::Vector<int64_t>(wide_ids));
          ASSERT_TRUE(op.Run().ok());
          outputs.push_back(op.output(0));
        }
        EXPECT_EQ(std::memcmp(outputs[0].raw_data(), outputs[1].raw_data(), outputs[0].bytes()), 0);
        const double tolerance = Tolerance(type);
        ExpectNear(outputs[0], Expected(data, ids, ids.back() + 1, product ? 1 : 0, rule),
                   tolerance, tolerance);
        if (name == "Mean") continue;
        std::vector<int32_t> shuffled;  // Some are left out.
        for (int r = 0; r < kRows; ++r) shuffled.push_back(r * 7 % 23 - 2);
        OpTest unsorted("UnsortedSegment" + name);
        unsorted.Input(data).Input(Tensor::Vector<int32_t>(shuffled));
        unsorted.Input(Tensor::Scalar<int32_t>(21));
        ASSERT_TRUE(unsorted.Run().ok());
        ExpectNear(unsorted.output(0), Expected(data, shuffled, 21, 0, rule), tolerance, tolerance);
      }
    }
  }
}

TEST(SegmentRules, ExtremesOfNothing) {
  const auto extreme = [](const char* op, ElementType type) {
    OpTest test(op);
    test.Input(MakeTensor(type, Shape({1}), {1})).Input(Tensor::Vector<int32_t>({-1}));
    test.Input(Tensor::Scalar<int32_t>(1));
    EXPECT_TRUE(test.Run().ok());
    return At(test.output(0), 0);
  };
  EXPECT_EQ(extreme("UnsortedSegmentMax", ElementType::kHalf), -65504);
  EXPECT_EQ(extreme("UnsortedSegmentMin", ElementType::kHalf), 65504);
  EXPECT_EQ(extreme("UnsortedSegmentMin", ElementType::kBfloat16), 0x1.FEp127);
  EXPECT_EQ(extreme("UnsortedSegmentMax", ElementType::kInt8), -128);
  EXPECT_EQ(extreme("UnsortedSegmentMax", ElementType::kUint8), 0);
  EXPECT_EQ(extreme("UnsortedSegmentMin", ElementType::kFloat), std::numeric_limits<float>::max());
}

/// A SparseSegment op on rows 0 to 4 of two columns each.
struct SparseTest : OpTest {
  SparseTest(const std::string& op, ElementType type, Tensor indices, Tensor ids) : OpTest(op) {
    Input(MakeTensor(type, Shape({5, 2}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    Input(std::move(indices)).Input(std::move(ids));
  }
};

TEST(SparseSegment, PickedRows) {
  for (const ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16}) {
    const auto run = [type](const std::string& op, double first, double second) {
      SCOPED_TRACE(op + " of " + ElementTypeName(type));
      SparseTest test(op, type, Tensor::Vector<int64_t>({4, 1, 4, 0}),
                      Tensor::Vector<int32_t>({0, 0, 0, 2}));
      ASSERT_TRUE(test.Run().ok());
      const Tensor want = MakeTensor(type, Shape({3, 2}), {first, second, 0, 0, 1, 2});
      ExpectNear(test.output(0), want, Tolerance(type));
      test.Input(Tensor::Scalar<int32_t>(4));
      SparseTest more(op + "WithNumSegments", type, Tensor::Vector<int64_t>({4, 1, 4, 0}),
                      Tensor::Vector<int32_t>({0, 0, 0, 2}));
      more.Input(Tensor::Scalar<int32_t>(4));
      ASSERT_TRUE(more.Run().ok());
      const Tensor longer = MakeTensor(type, Shape({4, 2}), {first, second, 0, 0, 1, 2, 0, 0});
      ExpectNear(more.output(0), longer, Tolerance(type));
    };
    run("SparseSegmentSum", 21, 24);
    run("SparseSegmentMean", 7, 8);
    run("SparseSegmentSqrtN", 21 / std::sqrt(3), 24 / std::sqrt(3));
  }
  SparseTest integers("SparseSegmentSum", ElementType::kInt8, Tensor::Vector<int32_t>({4, 4}),
                      Tensor::Vector<int64_t>({1, 1}));
  ASSERT_TRUE(integers.Run().ok());
  ExpectEqual(integers.output(0), MakeTensor(ElementType::kInt8, Shape({2, 2}), {0, 0, 18, 20}));
}

TEST(SparseSegment, Gradients) {
  const auto make = [](const std::string& op, int rows) {
    OpTest test(op, 2);
    test.Input(MakeTensor(ElementType::kFloat, Shape({2, 1}), {6, 10}));
    test.Input(Tensor::Vector<int32_t>({3, 0, 3})).Input(Tensor::Vector<int32_t>({1, 0, 1}));
    test.Input(Tensor::Scalar<int32_t>(rows));
    return test.Run().ok() ? test.output(0) : Tensor();
  };
  const auto column = [](std::initializer_list<double> values) {
    return MakeTensor(ElementType::kFloat, Shape({static_cast<int64_t>(values.size()), 1}), values);
  };
  ExpectNear(make("SparseSegmentSumGrad", 5), column({6, 0, 0, 20, 0}));
  ExpectNear(make("SparseSegmentMeanGrad", 5), column({6, 0, 0, 10, 0}));
  ExpectNear(make("SparseSegmentSqrtNGrad", 4), column({6, 0, 0, 20 / std::sqrt(2.0)}));
  ExpectNear(make("SparseSegmentSumGradV2", 5), column({6, 20}));
  EXPECT_FALSE(make("SparseSegmentSumGrad", 3).valid());
  EXPECT_FALSE(make("SparseSegmentSumGrad", -1).valid());
}

TEST(SparseSegment, BadInput) {
  const auto code = [](std::vector<int32_t> indices, std::vector<int32_t> ids, int segments) {
    SparseTest test("SparseSegmentSumWithNumSegments", ElementType::kFloat,
                    Tensor::Vector<int32_t>(indices), Tensor::Vector<int32_t>(ids));
    test.Input(Tensor::Scalar<int32_t>(segments));
    return test.Run().code();
  };
  EXPECT_EQ(code({0, 1}, {0, 1}, 2), StatusCode::kOk);
  EXPECT_EQ(code({0, 5}, {0, 1}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, -1}, {0, 1}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}, {1, 0}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}, {-1, 0}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}, {0, 2}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}, {0}, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({}, {}, -1), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
