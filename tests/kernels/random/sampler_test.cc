// Classes drawn at random. The golden cases have TensorFlow's own numbers; here is what must hold
// for any.
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Classes(std::initializer_list<int64_t> values, int64_t columns) {
  return Tensor::FromValues<int64_t>(
             absl::MakeConstSpan(values.begin(), values.size()),
             Shape({static_cast<int64_t>(values.size()) / columns, columns}))
      .value();
}

OpTest& Sampler(OpTest& op, int sampled, int range, bool unique) {
  return op.Attr("num_true", 1)
      .Attr("num_sampled", sampled)
      .Attr("range_max", range)
      .Attr("unique", unique)
      .Attr("seed", 11)
      .Attr("seed2", 12);
}

TEST(CandidateSamplers, DistinctClassesAreAllOfASmallRange) {
  for (const char* name : {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    SCOPED_TRACE(name);
    OpTest op(name);
    Sampler(op, 20, 20, true).Input(Classes({0, 19}, 1));
    for (int run = 0; run < 3; ++run) {
      ASSERT_TRUE(op.Run().ok());
      const auto values = op.output(0).unchecked_values<int64_t>();
      EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()).size(), 20u);
      EXPECT_EQ(op.output(1).shape(), Shape({2, 1}));
    }
  }
}

TEST(CandidateSamplers, FrequenciesAreAsExpected) {
  struct Case {
    const char* op;
    double (*probability)(double);
  };
  const Case cases[] = {{"UniformCandidateSampler", [](double) { return 0.1; }},
                        {"LogUniformCandidateSampler", [](double k) {
                           return (std::log(k + 2) - std::log(k + 1)) / std::log(11.0);
                         }}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op);
    constexpr int kCount = 100000;
    OpTest op(c.op);
    Sampler(op, kCount, 10, false).Input(Classes({3}, 1));
    ASSERT_TRUE(op.Run().ok());
    std::vector<int> counts(10);
    for (const int64_t value : op.output(0).unchecked_values<int64_t>()) {
      ASSERT_TRUE(value >= 0 && value < 10);
      ++counts[value];
    }
    for (int k = 0; k < 10; ++k) {
      const double p = c.probability(k), expected = kCount * p;
      EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected * (1 - p))) << "class " << k;
    }
    EXPECT_NEAR(At(op.output(1), 0), kCount * c.probability(3), 1);
  }
}

TEST(CandidateSamplers, BadInput) {
  for (const char* name : {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    OpTest too_many(name);
    Sampler(too_many, 5, 4, true).Input(Classes({1}, 1));
    EXPECT_EQ(too_many.Run().code(), StatusCode::kInvalidArgument);
    OpTest columns(name);
    Sampler(columns, 2, 4, true).Input(Classes({1, 2}, 2));
    EXPECT_EQ(columns.Run().code(), StatusCode::kInvalidArgument);
  }
}

TEST(ComputeAccidentalHits, FindsRowsAndPositions) {
  OpTest op("ComputeAccidentalHits");
  op.Attr("num_true", 2)
      .Input(Classes({1, 2, 9, 9, 3, 1}, 2))
      .Input(Tensor::Vector<int64_t>({3, 1, 7, 1}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Vector<int32_t>({0, 2, 2}));
  ExpectEqual(op.output(1), Tensor::Vector<int64_t>({3, 0, 3}));
  const float lowest = std::numeric_limits<float>::lowest();
  ExpectEqual(op.output(2), Tensor::Vector<float>({lowest, lowest, lowest}));
}

TEST(Multinomial, TheSameOnAnyNumberOfThreads) {
  const Tensor logits = RandomTensor(ElementType::kFloat, Shape({301, 17}), -3, 3);
  for (const int samples : {1, 7, 64}) {
    Tensor one;
    for (const int threads : {1, 3}) {
      OpTest op("Multinomial", threads);
      op.Attr("seed", 5).Attr("seed2", 6);
      op.Input(logits).Input(Tensor::Scalar<int32_t>(samples));
      ASSERT_TRUE(op.Run().ok());
      if (threads == 1) {
        one = op.output(0);
      } else {
        ExpectEqual(op.output(0), one);
      }
    }
  }
}

TEST(Multinomial, InfiniteLogitsHaveNoShare) {
  const double inf = std::numeric_limits<double>::infinity();
  OpTest op("Multinomial");
  op.Attr("seed", 5).Attr("output_dtype", ElementType::kInt32);
  op.Input(MakeTensor(ElementType::kDouble, Shape({2, 3}), {-inf, 0, -inf, 1000, -1000, -inf}))
      .Input(Tensor::Scalar<int32_t>(2));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::FromValues<int32_t>({1, 1, 0, 0}, Shape({2, 2})).value());
  const auto run = [](const Shape& shape, int samples) {
    OpTest bad("Multinomial");
    bad.Input(RandomTensor(ElementType::kFloat, shape, -1, 1))
        .Input(Tensor::Scalar<int32_t>(samples));
    return bad.Run().code();
  };
  EXPECT_EQ(run({2, 0}, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3}, -1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3}, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3}, 0), StatusCode::kOk);
}

}  // namespace
}  // namespace troupe::testing
