// Ops that draw numbers of a seed, or of a key and a counter. The expected numbers are TensorFlow's
// (2.21, CPU).
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Seed() { return Tensor::Vector<int64_t>({12345, -67}); }
Tensor Key() { return Tensor::Vector<uint64_t>({18379963506800609994u}); }
Tensor Counter() { return Tensor::Vector<uint64_t>({0, 833855440846489242u}); }
Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }

TEST(StatelessRandom, GivesTensorFlowsNumbers) {
  const struct {
    const char *op, *second_op;
    ElementType type;
    std::initializer_list<double> want;
    double tolerance;
  } cases[] = {
      {"StatelessRandomUniform",
       "StatelessRandomUniformV2",
       ElementType::kFloat,
       {0.795278787612915, 0.8578983545303345, 0.9267672300338745},
       0},
      {"StatelessRandomUniform",
       "StatelessRandomUniformV2",
       ElementType::kDouble,
       {0.3622305967992141, 0.4141381861170883, 0.3068280287474674},
       0},
      {"StatelessRandomUniform",
       "StatelessRandomUniformV2",
       ElementType::kHalf,
       {0.923828125, 0.9033203125, 0.0771484375},
       0},
      {"StatelessRandomUniform",
       "StatelessRandomUniformV2",
       ElementType::kBfloat16,
       {0.390625, 0.2265625, 0.6171875},
       0},
      {"StatelessRandomNormal",
       "StatelessRandomNormalV2",
       ElementType::kFloat,
       {-0.5271730422973633, 0.42451584339141846, -0.34717243909835815},
       1e-6},
      {"StatelessRandomNormal",
       "StatelessRandomNormalV2",
       ElementType::kDouble,
       {0.7320733914360564, -1.2227089081238356, 0.6666023832192042},
       1e-12},
      {"StatelessTruncatedNormal",
       "StatelessTruncatedNormalV2",
       ElementType::kHalf,
       {-0.52734375, 0.424560546875, -0.34716796875},
       1e-3},
      {"StatelessTruncatedNormal",
       "StatelessTruncatedNormalV2",
       ElementType::kDouble,
       {0.7320733914360564, -1.2227089081238356, -0.303696574289727},
       1e-12},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.op) + " " + ElementTypeName(c.type));
    const Tensor want = MakeTensor(c.type, Shape({3}), c.want);
    OpTest seeded(c.op);
    seeded.Attr("dtype", c.type).Input(Ints({3})).Input(Seed());
    OpTest keyed(c.second_op);
    keyed.Attr("dtype", c.type).Input(Ints({3})).Input(Key()).Input(Counter());
    keyed.Input(Tensor::Scalar<int32_t>(1));
    for (OpTest* op : {&seeded, &keyed}) {
      for (int run = 0; run < 2; ++run) {
        ASSERT_EQ(op->Run(), absl::OkStatus());
        ExpectNear(op->output(0), want, c.tolerance, c.tolerance);
      }
    }
  }
}

TEST(StatelessRandom, IntegersAreTensorFlowsToo) {
  OpTest range("StatelessRandomUniformInt");
  range.Input(Ints({5})).Input(Seed()).Input(Tensor::Scalar(-10)).Input(Tensor::Scalar(10));
  ASSERT_EQ(range.Run(), absl::OkStatus());
  ExpectEqual(range.output(0), Ints({0, 7, 1, 2, -6}));
  const auto full = [](ElementType type) {
    OpTest op("StatelessRandomUniformFullInt");
    op.Attr("dtype", type).Input(Ints({3})).Input(Seed());
    EXPECT_EQ(op.Run(), absl::OkStatus());
    return op.output(0);
  };
  ExpectEqual(full(ElementType::kInt32), Ints({1776667570, 1332596637, 578199631}));
  ExpectEqual(
      full(ElementType::kUint64),
      Tensor::Vector<uint64_t>({5723458976451251122u, 6689636328326733903u, 9353825650897905860u}));
  OpTest keys("StatelessRandomGetKeyCounterAlg");
  keys.Input(Seed());
  ASSERT_EQ(keys.Run(), absl::OkStatus());
  ExpectEqual(keys.output(0), Key());
  ExpectEqual(keys.output(1), Counter());
  ExpectEqual(keys.output(2), Tensor::Scalar<int32_t>(1));
}

TEST(StatelessRandom, ShufflesAndClassesAreTensorFlowsToo) {
  OpTest shuffle("StatelessShuffle");
  shuffle.Input(Ints({0, 1, 2, 3, 4, 5, 6, 7})).Input(Key()).Input(Counter());
  shuffle.Input(Tensor::Scalar<int32_t>(1));
  ASSERT_EQ(shuffle.Run(), absl::OkStatus());
  ExpectEqual(shuffle.output(0), Ints({2, 0, 3, 5, 4, 6, 1, 7}));
  OpTest classes("StatelessMultinomial");
  classes.Attr("output_dtype", ElementType::kInt32)
      .Input(MakeTensor(ElementType::kFloat, Shape({2, 3}), {0, 1, 2, 1, 0, -1}))
      .Input(Tensor::Scalar<int32_t>(6))
      .Input(Seed());
  ASSERT_EQ(classes.Run(), absl::OkStatus());
  ExpectEqual(
      classes.output(0),
      Tensor::FromValues<int32_t>({2, 2, 1, 2, 2, 2, 0, 1, 2, 0, 1, 0}, Shape({2, 6})).value());
}

TEST(StatelessRandom, BadInputs) {
  const auto seeded = [](Tensor shape, Tensor seed) {
    OpTest op("StatelessRandomUniform");
    op.Input(std::move(shape)).Input(std::move(seed));
    return op.Run().code();
  };
  EXPECT_EQ(seeded(Ints({2}), Tensor::Vector<int64_t>({1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(seeded(Ints({-1}), Seed()), StatusCode::kInvalidArgument);
  EXPECT_EQ(seeded(Tensor::Vector<int64_t>({int64_t{1} << 50}), Seed()),
            StatusCode::kResourceExhausted);
  const auto keyed = [](Tensor key, Tensor counter, Tensor algorithm, int size) {
    OpTest op("StatelessRandomNormalV2");
    op.Input(Ints({size})).Input(std::move(key)).Input(std::move(counter));
    op.Input(std::move(algorithm));
    return op.Run().code();
  };
  const Tensor philox = Tensor::Scalar<int32_t>(1), threefry = Tensor::Scalar<int32_t>(2);
  EXPECT_EQ(keyed(Counter(), Counter(), philox, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(keyed(Key(), Key(), philox, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(keyed(Key(), Counter(), Ints({1}), 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(keyed(Key(), Counter(), threefry, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(keyed(Key(), Counter(), threefry, 0), StatusCode::kOk);
  OpTest range("StatelessRandomUniformInt");
  range.Input(Ints({5})).Input(Seed()).Input(Tensor::Scalar(3)).Input(Tensor::Scalar(3));
  EXPECT_EQ(range.Run().code(), StatusCode::kInvalidArgument);
}

TEST(RandomIndexShuffle, GivesTensorFlowsPermutations) {
  OpTest ten("RandomIndexShuffle");
  ten.Input(Ints({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})).Input(Ints({1, 2, 3})).Input(Tensor::Scalar(9));
  ASSERT_EQ(ten.Run(), absl::OkStatus());
  ExpectEqual(ten.output(0), Ints({2, 0, 6, 4, 8, 1, 7, 9, 5, 3}));
  OpTest large("RandomIndexShuffle");
  large.Attr("rounds", 8)
      .Input(Tensor::Vector<int64_t>({5, int64_t{1} << 40}))
      .Input(Ints({1, 2, 3}))
      .Input(Tensor::Scalar<int64_t>(int64_t{1} << 40));
  ASSERT_EQ(large.Run(), absl::OkStatus());
  ExpectEqual(large.output(0), Tensor::Vector<int64_t>({753965746516, 124730561169}));
}

TEST(RandomIndexShuffle, BadInputs) {
  const auto run = [](Tensor index, Tensor seed, int max_index, int64_t rounds) {
    OpTest op("RandomIndexShuffle");
    op.Attr("rounds", rounds);
    op.Input(std::move(index)).Input(std::move(seed)).Input(Tensor::Scalar(max_index));
    return op.Run().code();
  };
  const Tensor seed = Ints({1, 2, 3});
  EXPECT_EQ(run(Tensor::Scalar(3), seed, 3, 4), StatusCode::kOk);
  EXPECT_EQ(run(Tensor::Scalar(4), seed, 3, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Scalar(-1), seed, 3, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Scalar(0), seed, -1, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Scalar(3), Ints({1, 2}), 3, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Ints({}), seed, 3, 4), StatusCode::kInvalidArgument);
  for (const int64_t rounds : {int64_t{0}, int64_t{5}, int64_t{1} << 40}) {
    EXPECT_EQ(run(Tensor::Scalar(3), seed, 3, rounds), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe::testing
