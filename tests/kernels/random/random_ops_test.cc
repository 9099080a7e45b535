// The expected numbers are TensorFlow's (2.21, CPU) for the same seeds.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/common/philox.h"
#include "kernels/simd/random.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct FillCase {
  const char* op;
  ElementType type;
  std::vector<double> first_run, second_run;
  double tolerance;
};

Tensor ShapeOf(int n) { return Tensor::Vector<int32_t>({n}); }

OpTest& Seeded(OpTest& op) { return op.Attr("seed", int64_t{12345}).Attr("seed2", int64_t{-67}); }

TEST(RandomOpsTest, GivesTensorFlowsNumbers) {
  const FillCase cases[] = {
      {"RandomUniform",
       ElementType::kFloat,
       {0.27488434314727783, 0.7567589282989502, 0.08958888053894043, 0.5716226100921631,
        0.6017260551452637, 0.9533637762069702, 0.5569881200790405},
       {0.5784915685653687, 0.7413860559463501, 0.5810019969940186, 0.256600022315979,
        0.15053534507751465, 0.31608808040618896, 0.7265478372573853},
       0},
      {"RandomUniform",
       ElementType::kDouble,
       {0.1990748490332792, 0.7167116451479916, 0.8138092662270437, 0.4559051779619754,
        0.29726062982887513, 0.4680670235432416, 0.5498872221562068},
       {0.6279328553776928, 0.6480163098435849, 0.2042829567866178, 0.8123829866068377,
        0.027248137648739013, 0.6097162150859252, 0.37656218034935907},
       0},
      {"RandomUniform",
       ElementType::kHalf,
       {0.8525390625, 0.369140625, 0.912109375, 0.732421875, 0.33984375, 0.9560546875,
        0.8466796875},
       {0.0029296875, 0.4345703125, 0.568359375, 0.0673828125, 0.185546875, 0.3935546875,
        0.8798828125},
       0},
      {"RandomUniform",
       ElementType::kBfloat16,
       {0.8203125, 0.953125, 0.296875, 0.859375, 0.71875, 0.6484375, 0.7734375},
       {0.0234375, 0.4765625, 0.546875, 0.5390625, 0.484375, 0.1484375, 0.0390625},
       0},
      {"RandomStandardNormal",
       ElementType::kFloat,
       {-1.6056631803512573, 0.06822969764471054, -0.9554806351661682, -1.977904200553894,
        -0.2911366820335388, 0.9649587273597717, -0.9729361534118652},
       {-1.044729232788086, -0.05659906938672066, 1.0412182807922363, -0.0432031974196434,
        1.7806718349456787, -0.7850621342658997, -0.4159398376941681},
       1e-6},
      {"RandomStandardNormal",
       ElementType::kDouble,
       {-1.7575481687803822, -0.3730592885540017, 0.17558060829083616, -0.6174382270422544,
        0.31043665815661975, -1.526407890518645, 0.8557274070273176},
       {-0.7733299372205287, -0.5767190659545238, -1.6471069054535141, 0.6808356984259849,
        -1.7073553211196542, -2.0713469082199274, -0.8522789063994809},
       1e-12},
      {"RandomStandardNormal",
       ElementType::kHalf,
       {-1.60546875, 0.0682373046875, -0.95556640625, -1.9775390625, -0.291015625, 0.96484375,
        -0.97314453125},
       {-1.044921875, -0.056610107421875, 1.041015625, -0.043212890625, 1.7802734375, -0.78515625,
        -0.416015625},
       1e-3},
      {"TruncatedNormal",
       ElementType::kFloat,
       {-1.6056631803512573, 0.06822969764471054, -0.9554806351661682, -1.977904200553894,
        0.1608147919178009, 0.8300237655639648, -1.3238824605941772},
       {-1.044729232788086, -0.05659906938672066, 1.0412182807922363, -0.0432031974196434,
        0.8917633295059204, -0.9118553996086121, 1.109074592590332},
       1e-6},
      {"TruncatedNormal",
       ElementType::kDouble,
       {-1.7575481687803822, -0.3730592885540017, -0.29626634993502554, 0.3870104379147858,
        -0.746608164402687, 0.6912383922555708, -0.30583006428033527},
       {-0.7733299372205287, -0.5767190659545238, -0.9809895728647396, -1.1353488032040726,
        -0.8341676243835051, 0.7148842175187012, -0.5569087806333821},
       1e-12},
      {"TruncatedNormal",
       ElementType::kBfloat16,
       {-1.609375, 0.068359375, -0.95703125, -1.9765625, 0.1611328125, 0.828125, -1.3203125},
       {-1.046875, -0.056640625, 1.0390625, -0.043212890625, 0.890625, -0.91015625, 1.109375},
       1e-2},
  };
  for (const FillCase& c : cases) {
    SCOPED_TRACE(std::string(c.op) + " " + ElementTypeName(c.type));
    OpTest op(c.op);
    Seeded(op).Attr("dtype", c.type).Input(ShapeOf(7));
    for (const std::vector<double>* want : {&c.first_run, &c.second_run}) {
      ASSERT_EQ(op.Run(), absl::OkStatus());
      ExpectNear(op.output(0), MakeTensor(c.type, Shape({7}), *want), c.tolerance, c.tolerance);
    }
  }
}

TEST(RandomOpsTest, LargeTensorsAreTensorFlowsToo) {
  const struct {
    const char* op;
    double second_run_last, second_run_sum;
  } cases[] = {{"RandomUniform", 0.35652101039886475, 50042.456231832504},
               {"RandomStandardNormal", -0.4239747226238251, -367.82513514333914},
               {"TruncatedNormal", -0.5884762406349182, 19.795818722061085}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    OpTest op(c.op);
    Seeded(op).Attr("dtype", ElementType::kFloat).Input(ShapeOf(100003));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ASSERT_EQ(op.Run(), absl::OkStatus());
    const Tensor& out = op.output(0);
    double sum = 0;
    for (float x : out.unchecked_values<float>()) sum += x;
    EXPECT_NEAR(out.unchecked_data<float>()[100002], c.second_run_last, 1e-6);
    EXPECT_NEAR(sum, c.second_run_sum, 0.01);
  }
}

TEST(RandomOpsTest, RandomUniformIntGivesTensorFlowsNumbers) {
  OpTest op32("RandomUniformInt");
  Seeded(op32).Input(ShapeOf(7)).Input(Tensor::Scalar(-1000)).Input(Tensor::Scalar(3000));
  ASSERT_EQ(op32.Run(), absl::OkStatus());
  ExpectEqual(op32.output(0), Tensor::Vector<int32_t>({-863, 594, 2046, 1894, 2324, 1131, 2587}));
  ASSERT_EQ(op32.Run(), absl::OkStatus());
  ExpectEqual(op32.output(0), Tensor::Vector<int32_t>({1467, 1909, -386, 349, 1622, 2379, 477}));

  OpTest op64("RandomUniformInt");
  Seeded(op64)
      .Input(ShapeOf(7))
      .Input(Tensor::Scalar(int64_t{-1000}))
      .Input(Tensor::Scalar(int64_t{3000}));
  ASSERT_EQ(op64.Run(), absl::OkStatus());
  ExpectEqual(op64.output(0), Tensor::Vector<int64_t>({961, 670, 2100, 443, -340, 1163, -466}));
  ASSERT_EQ(op64.Run(), absl::OkStatus());
  ExpectEqual(op64.output(0), Tensor::Vector<int64_t>({1531, 1918, 2806, 2717, 2579, -131, 1438}));
}

TEST(RandomOpsTest, RandomUniformIntRefusesEmptyRanges) {
  OpTest op("RandomUniformInt");
  op.Input(ShapeOf(2)).Input(Tensor::Scalar(3)).Input(Tensor::Scalar(3));
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
  OpTest nothing("RandomUniformInt");
  nothing.Input(ShapeOf(0)).Input(Tensor::Scalar(3)).Input(Tensor::Scalar(3));
  EXPECT_EQ(nothing.Run(), absl::OkStatus());
}

TEST(RandomOpsTest, RandomShuffleGivesTensorFlowsOrder) {
  Tensor numbers = Tensor::Uninitialized(ElementType::kInt32, Shape({10}));
  for (int i = 0; i < 10; ++i) numbers.mutable_data<int32_t>()[i] = i;
  OpTest op("RandomShuffle");
  Seeded(op).Input(numbers);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), Tensor::Vector<int32_t>({7, 1, 8, 9, 4, 6, 3, 2, 0, 5}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), Tensor::Vector<int32_t>({2, 5, 3, 4, 0, 1, 8, 7, 6, 9}));

  OpTest rows("RandomShuffle");
  Seeded(rows).Input(
      Tensor::FromValues<std::string>(
          {"a", "A", "b", "B", "c", "C", "d", "D", "e", "E", "f", "F", "g", "G"}, Shape({7, 2}))
          .value());
  ASSERT_EQ(rows.Run(), absl::OkStatus());
  EXPECT_THAT(
      rows.output(0).unchecked_values<std::string>(),
      ::testing::ElementsAre("c", "C", "b", "B", "d", "D", "f", "F", "e", "E", "g", "G", "a", "A"));
}

TEST(RandomOpsTest, RefusesNegativeAndHugeShapes) {
  for (const char* name : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    OpTest negative(name);
    negative.Attr("dtype", ElementType::kFloat).Input(Tensor::Vector<int32_t>({2, -1}));
    EXPECT_EQ(negative.Run().code(), absl::StatusCode::kInvalidArgument);
    OpTest overflow(name);
    overflow.Attr("dtype", ElementType::kFloat)
        .Input(Tensor::Vector<int64_t>({int64_t{1} << 40, int64_t{1} << 40}));
    EXPECT_EQ(overflow.Run().code(), absl::StatusCode::kInvalidArgument);
    OpTest huge(name);
    huge.Attr("dtype", ElementType::kFloat).Input(Tensor::Vector<int64_t>({int64_t{1} << 50}));
    EXPECT_EQ(huge.Run().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(RandomOpsTest, SameNumbersWithTwoThreads) {
  for (const char* name : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    for (ElementType type : {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf}) {
      std::vector<Tensor> outs;
      for (int threads : {1, 2}) {
        OpTest op(name, threads);
        Seeded(op).Attr("dtype", type).Input(ShapeOf(200001));
        ASSERT_EQ(op.Run(), absl::OkStatus());
        outs.push_back(op.output(0));
      }
      ExpectEqual(outs[0], outs[1]);
    }
  }
}

TEST(RandomOpsTest, WithoutSeedsNumbersDiffer) {
  std::vector<float> first;
  for (int i = 0; i < 2; ++i) {
    OpTest op("RandomUniform");
    op.Attr("dtype", ElementType::kFloat).Input(ShapeOf(1));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    first.push_back(op.output(0).unchecked_data<float>()[0]);
  }
  EXPECT_NE(first[0], first[1]);
}

TEST(PhiloxTest, BulkAgreesWithOneByOne) {
  // A counter that carries into its upper half on the way.
  const uint64_t low = ~uint64_t{0} - 20;
  for (uint64_t stride : {1, 256}) {
    uint32_t words[4 * 37];
    Random().words({.key = 0x1234567890abcdef, .low = low, .high = 5, .stride = stride}, 37, words);
    for (uint64_t i = 0; i < 37; ++i) {
      const uint64_t at = low + i * stride;
      const Philox::Block block = Philox::Compute(0x1234567890abcdef, at, at < low ? 6 : 5);
      for (int j = 0; j < 4; ++j) EXPECT_EQ(words[4 * i + j], block[j]) << i;
    }
  }
}

TEST(PhiloxTest, NormalsAreAccurate) {
  constexpr int kBlocks = 50000;
  std::vector<uint32_t> words(4 * kBlocks);
  std::vector<float> normals(4 * kBlocks);
  const PhiloxBlocks blocks{.key = 3};
  Random().words(blocks, kBlocks, words.data());
  Random().normal(blocks, kBlocks, normals.data());
  const auto uniform = [](uint32_t w) {
    return std::ldexp(static_cast<double>(w & 0x7fffff), -23);
  };
  for (int i = 0; i < 4 * kBlocks; i += 2) {
    const double radius = std::sqrt(-2 * std::log(std::max(uniform(words[i]), 1e-7)));
    // The angle is a float, as TensorFlow's is.
    const float angle = static_cast<float>(2 * M_PI * uniform(words[i + 1]));
    EXPECT_NEAR(normals[i], radius * std::sin(static_cast<double>(angle)), 1e-6);
    EXPECT_NEAR(normals[i + 1], radius * std::cos(static_cast<double>(angle)), 1e-6);
  }
}

}  // namespace
}  // namespace troupe::testing
