// Ops that look for places and differences, and those that count or combine equal ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

TEST(Bounds, CountSmallerNumbers) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16,
                                 ElementType::kInt8, ElementType::kUint64}) {
    for (const bool upper : {false, true}) {
      OpTest op(upper ? "UpperBound" : "LowerBound");
      op.Input(MakeTensor(type, Shape({2, 4}), {1, 3, 3, 5, 0, 0, 0, 9}));
      op.Input(MakeTensor(type, Shape({2, 3}), {3, 0, 6, 0, 9, 10}));
      ASSERT_TRUE(op.Run().ok());
      const std::vector<int32_t> want =
          upper ? std::vector<int32_t>{3, 0, 4, 3, 4, 4} : std::vector<int32_t>{1, 0, 4, 0, 3, 4};
      ExpectEqual(op.output(0),
                  Tensor::FromValues<int32_t>(absl::MakeConstSpan(want), Shape({2, 3})).value());
    }
  }
  OpTest bad("LowerBound");
  bad.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({2, 4})));
  bad.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({3, 4})));
  EXPECT_EQ(bad.Run().code(), StatusCode::kInvalidArgument);
}

TEST(Bounds, AreTheStandardLibrarysForRowsOfAnyLength) {
  std::vector<float> sorted, values;
  for (int i = -1; i <= 90; ++i) values.push_back(static_cast<float>(i) / 2);
  values.insert(values.end(), {-std::numeric_limits<float>::infinity(), std::nanf("")});
  for (int length = 0; length <= 70; ++length) {
    for (const bool upper : {false, true}) {
      OpTest op(upper ? "UpperBound" : "LowerBound");
      op.Input(Tensor::Vector<float>(sorted).Reshaped({1, length}));
      op.Input(Tensor::Vector<float>(values).Reshaped({1, static_cast<int64_t>(values.size())}));
      ASSERT_EQ(op.Run(), absl::OkStatus());
      for (size_t i = 0; i < values.size(); ++i) {
        const auto want = upper ? std::upper_bound(sorted.begin(), sorted.end(), values[i])
                                : std::lower_bound(sorted.begin(), sorted.end(), values[i]);
        EXPECT_EQ(op.output(0).unchecked_data<int32_t>()[i], want - sorted.begin()) << values[i];
      }
    }
    sorted.push_back(static_cast<float>(length - length % 3));  // Some are equal.
  }
}

TEST(NthElement, FromEitherEnd) {
  for (const ElementType type : {ElementType::kDouble, ElementType::kHalf, ElementType::kInt16}) {
    for (const bool reverse : {false, true}) {
      OpTest op("NthElement", 2);
      op.Attr("reverse", reverse).Input(MakeTensor(type, Shape({2, 4}), {4, 1, 3, 2, 8, 8, 7, 9}));
      op.Input(Tensor::Scalar<int32_t>(1));
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(op.output(0), MakeTensor(type, Shape({2}), {reverse ? 3.0 : 2.0, 8}));
    }
  }
  const float nan = std::nanf("");
  for (const int32_t n : {0, 3, 4, -1}) {
    OpTest op("NthElement");
    op.Input(Tensor::Vector<float>({nan, 2, nan, 1})).Input(Tensor::Scalar<int32_t>(n));
    EXPECT_EQ(op.Run().ok(), n == 0 || n == 3) << n;
    if (n == 0) {
      EXPECT_EQ(At(op.output(0), 0), 1);
    }
  }
}

TEST(UnravelIndex, Coordinates) {
  const auto run = [](const Tensor& indices, std::vector<int32_t> dims) {
    OpTest op("UnravelIndex");
    op.Input(indices).Input(Tensor::Vector<int32_t>(dims));
    return op.Run().ok() ? op.output(0) : Tensor();
  };
  ExpectEqual(run(Tensor::Vector<int32_t>({22, 41, 37}), {7, 6}),
              Tensor::FromValues<int32_t>({3, 6, 6, 4, 5, 1}, Shape({2, 3})).value());
  ExpectEqual(run(Tensor::Scalar<int32_t>(5), {2, 3}), Tensor::Vector<int32_t>({1, 2}));
  EXPECT_FALSE(run(Tensor::Scalar<int32_t>(6), {2, 3}).valid());
  EXPECT_FALSE(run(Tensor::Scalar<int32_t>(-1), {2, 3}).valid());
  EXPECT_FALSE(run(Tensor::Scalar<int32_t>(0), {2, 0}).valid());
  EXPECT_FALSE(run(Tensor::Scalar<int32_t>(0), {1 << 30, 1 << 30, 1 << 30}).valid());
}

TEST(Bucketize, CountsBoundaries) {
  // Lists of floats are set in a graph only: the golden cases have them.
  OpTest none("Bucketize");
  none.Input(Tensor::Vector<int32_t>({-5, 5}));
  ASSERT_TRUE(none.Run().ok());
  ExpectEqual(none.output(0), Tensor::Vector<int32_t>({0, 0}));
}

struct Sparse {
  std::vector<int64_t> indices;
  std::vector<std::string> values;
  std::vector<int64_t> shape;
};

absl::StatusOr<Tensor> Distance(const Sparse& hypothesis, const Sparse& truth, bool normalize) {
  OpTest op("EditDistance");
  op.Attr("normalize", normalize);
  for (const Sparse* sparse : {&hypothesis, &truth}) {
    const int64_t n = static_cast<int64_t>(sparse->values.size());
    const int64_t rank = static_cast<int64_t>(sparse->shape.size());
    op.Input(Tensor::FromValues<int64_t>(absl::MakeConstSpan(sparse->indices), Shape({n, rank}))
                 .value());
    op.Input(Tensor::Vector<std::string>(sparse->values));
    op.Input(Tensor::Vector<int64_t>(sparse->shape));
  }
  const absl::Status status = op.Run();
  if (!status.ok()) return status;
  return op.output(0);
}

TEST(EditDistance, SequencesOfWords) {
  // Row 0: "a b" for "a c d"; row 1: nothing for "x"; row 2: "y" for nothing; row 3: neither.
  const Sparse hypothesis = {{0, 0, 0, 1, 2, 0}, {"a", "b", "y"}, {4, 2}};
  const Sparse truth = {{0, 0, 0, 1, 0, 2, 1, 0}, {"a", "c", "d", "x"}, {3, 3}};
  ExpectEqual(Distance(hypothesis, truth, false).value(), Tensor::Vector<float>({2, 1, 1, 0}));
  const float inf = std::numeric_limits<float>::infinity();
  ExpectNear(Distance(hypothesis, truth, true).value(),
             Tensor::Vector<float>({2.0f / 3, 1, inf, 0}));
}

TEST(EditDistance, BadInput) {
  const Sparse good = {{0, 0}, {"a"}, {2, 2}};
  const auto code = [&](const Sparse& other) {
    return Distance(other, good, true).status().code();
  };
  EXPECT_EQ(code(good), StatusCode::kOk);
  EXPECT_EQ(code({{2, 0}, {"a"}, {2, 2}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{-1, 0}, {"a"}, {2, 2}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{0}, {"a"}, {2}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {"a"}, {-2, 2}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{0, 0}, {"a"}, {int64_t{1} << 62, 2}}), StatusCode::kResourceExhausted);
}

TEST(UniqueWithCounts, ElementsAndSlices) {
  OpTest op("UniqueWithCounts"), slices("UniqueWithCountsV2");
  op.Input(Tensor::Vector<int64_t>({7, 4, 7, 7, 1}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Vector<int64_t>({7, 4, 1}));
  ExpectEqual(op.output(1), Tensor::Vector<int32_t>({0, 1, 0, 0, 2}));
  ExpectEqual(op.output(2), Tensor::Vector<int32_t>({3, 1, 1}));
  slices.Input(MakeTensor(ElementType::kFloat, Shape({3, 2}), {1, 2, 3, 4, 1, 2}));
  slices.Input(Tensor::Vector<int64_t>({0}));
  ASSERT_TRUE(slices.Run().ok());
  ExpectEqual(slices.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 2, 3, 4}));
  ExpectEqual(slices.output(2), Tensor::Vector<int32_t>({2, 1}));
}

TEST(TensorScatters, CombineInOrder) {
  const auto run = [](const char* op) {
    OpTest test(op);
    test.Input(MakeTensor(ElementType::kFloat, Shape({3}), {5, 5, 5}));
    test.Input(Tensor::FromValues<int32_t>({2, 0, 2}, Shape({3, 1})).value());
    test.Input(MakeTensor(ElementType::kFloat, Shape({3}), {1, 7, 2}));
    return test.Run().ok() ? test.output(0) : Tensor();
  };
  ExpectEqual(run("TensorScatterMax"), Tensor::Vector<float>({7, 5, 5}));
  ExpectEqual(run("TensorScatterMin"), Tensor::Vector<float>({5, 5, 1}));
  ExpectEqual(run("TensorScatterSub"), Tensor::Vector<float>({-2, 5, 2}));
  ExpectEqual(run("ScatterNdNonAliasingAdd"), Tensor::Vector<float>({12, 5, 8}));
}

// As a stable sort by value, NaNs first. Numbers repeat, and some fill whole blocks.
TEST(TopK, AsAStableSort) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                                 ElementType::kUint8, ElementType::kBfloat16}) {
    for (const int64_t n : {1, 255, 257, 3000}) {
      for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{40}, n / 2, n}) {
        if (k < 1 || k > n) continue;
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", k, " of ", n));
        Tensor x = RandomTensor(type, Shape({3, n}), 0, 120, 7);
        if (type == ElementType::kFloat) {
          float* values = x.mutable_data<float>();
          for (int64_t i = 0; i < n; ++i) values[i] = 1;  // The first row is all the same,
          values[2 * n] = values[3 * n - 1] = NAN;        // the last has two NaNs.
        }
        OpTest op("TopKV2", 2);
        ASSERT_EQ(op.Input(x).Input(Tensor::Scalar(static_cast<int32_t>(k))).Run(),
                  absl::OkStatus());
        for (int64_t row = 0; row < 3; ++row) {
          std::vector<int64_t> order(n);
          std::iota(order.begin(), order.end(), row * n);
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const double u = At(x, a), v = At(x, b);
            return u > v || (std::isnan(u) && !std::isnan(v));
          });
          for (int64_t i = 0; i < k; ++i) {
            ASSERT_EQ(At(op.output(1), row * k + i), order[i] - row * n) << "place " << i;
            const double got = At(op.output(0), row * k + i), want = At(x, order[i]);
            ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)));
          }
        }
      }
    }
  }
}

TEST(TopK, ByAttribute) {
  for (const int k : {2, 4}) {
    OpTest op("TopK");
    op.Attr("k", k).Input(Tensor::Vector<float>({1, 3, 2}));
    EXPECT_EQ(op.Run().ok(), k == 2);
    if (k == 2) {
      ExpectEqual(op.output(1), Tensor::Vector<int32_t>({1, 2}));
    }
  }
}

}  // namespace
}  // namespace troupe::testing
