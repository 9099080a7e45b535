// Element-wise ops of one input against the C library in double precision.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/simd/dispatch.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct UnaryCase {
  const char* op;
  double (*reference)(double);
  double low, high;
};

constexpr double kScale = 1.0507009873554804934193349852946;
constexpr double kScaleAlpha = 1.7580993408473768599402175208123;

const UnaryCase kCases[] = {
    {"Abs", [](double x) { return std::abs(x); }, -5, 5},
    {"Ceil", [](double x) { return std::ceil(x); }, -5, 5},
    {"Cos", [](double x) { return std::cos(x); }, -30, 30},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, -5, 5},
    {"Erf", [](double x) { return std::erf(x); }, -4, 4},
    {"Exp", [](double x) { return std::exp(x); }, -10, 10},
    {"Expm1", [](double x) { return std::expm1(x); }, -3, 3},
    {"Floor", [](double x) { return std::floor(x); }, -5, 5},
    {"Inv", [](double x) { return 1 / x; }, 0.1, 5},
    {"Log", [](double x) { return std::log(x); }, 0.01, 100},
    {"Log1p", [](double x) { return std::log1p(x); }, -0.9, 10},
    {"Neg", [](double x) { return -x; }, -5, 5},
    {"Relu", [](double x) { return x < 0 ? 0 : x; }, -5, 5},
    {"Relu6", [](double x) { return x < 0   ? 0
                                    : x > 6 ? 6
                                            : x; }, -3, 9},
    {"Round", [](double x) { return std::rint(x); }, -5, 5},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 20},
    {"Selu", [](double x) { return x < 0 ? kScaleAlpha * std::expm1(x) : kScale * x; }, -5, 5},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : x; }, -5, 5},
    {"Sin", [](double x) { return std::sin(x); }, -30, 30},
    {"Softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, -40, 40},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, -5, 5},
    {"Sqrt", [](double x) { return std::sqrt(x); }, 0, 50},
    {"Square", [](double x) { return x * x; }, -5, 5},
    {"Tan", [](double x) { return std::tan(x); }, -1.4, 1.4},
    {"Tanh", [](double x) { return std::tanh(x); }, -8, 8},
};

double Tolerance(ElementType type) {
  switch (type) {
    case ElementType::kDouble:
      return 1e-13;
    case ElementType::kFloat:
      return 3e-6;
    case ElementType::kHalf:
      return 1e-3;
    default:
      return 1e-2;
  }
}

TEST(UnaryTest, FloatingTypes) {
  for (const UnaryCase& c : kCases) {
    for (ElementType type :
         {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16}) {
      for (int64_t n : {0, 1, 3, 67, 1300}) {
        SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type) << " " << n);
        const Tensor x = RandomTensor(type, Shape({n}), c.low, c.high);
        Tensor want = Tensor::Uninitialized(type, Shape({n}));
        for (int64_t i = 0; i < n; ++i) Set(&want, i, c.reference(At(x, i)));
        for (bool in_place : {false, true}) {
          OpTest op(c.op);
          op.Input(x, in_place);
          ASSERT_TRUE(op.Run().ok());
          ExpectNear(op.output(0), want, Tolerance(type), Tolerance(type) / 10);
        }
      }
    }
  }
}

TEST(UnaryTest, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // In a long array, so that vectors and the rest of a vector see them.
  for (const UnaryCase& c : kCases) {
    for (ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
      SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type));
      const double special[] = {nan, inf, -inf, 0.0, 1.0, -1.0, 30.0, -30.0, 800.0, -800.0};
      Tensor x = Tensor::Uninitialized(type, Shape({51}));
      Tensor want = Tensor::Uninitialized(type, Shape({51}));
      for (int i = 0; i < 51; ++i) {
        Set(&x, i, special[i % 10]);
        Set(&want, i, c.reference(special[i % 10]));
      }
      OpTest op(c.op);
      op.Input(x);
      ASSERT_TRUE(op.Run().ok());
      ExpectNear(op.output(0), want, 1e-5, 1e-30);
    }
  }
}

TEST(UnaryTest, Integers) {
  for (ElementType type :
       {ElementType::kInt8, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64}) {
    SCOPED_TRACE(ElementTypeName(type));
    const double lowest = -std::pow(2.0, 8 * static_cast<double>(ElementSize(type)) - 1);
    const Tensor x = MakeTensor(type, Shape({5}), {lowest, -3, 0, 2, 11});
    auto run = [&](const char* name) {
      OpTest op(name);
      op.Input(x);
      EXPECT_TRUE(op.Run().ok()) << name;
      return op.output(0);
    };
    ExpectEqual(run("Neg"), MakeTensor(type, Shape({5}), {lowest, 3, 0, -2, -11}));
    ExpectEqual(run("Abs"), MakeTensor(type, Shape({5}), {lowest, 3, 0, 2, 11}));
    ExpectEqual(run("Sign"), MakeTensor(type, Shape({5}), {-1, -1, 0, 1, 1}));
    ExpectEqual(run("Square"), MakeTensor(type, Shape({5}), {0, 9, 0, 4, 121}));
    ExpectEqual(run("Relu"), MakeTensor(type, Shape({5}), {0, 0, 0, 2, 11}));
    ExpectEqual(run("Relu6"), MakeTensor(type, Shape({5}), {0, 0, 0, 2, 6}));
  }
}

TEST(UnaryTest, Predicates) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  OpTest is_nan("IsNan"), is_inf("IsInf"), is_finite("IsFinite");
  const Tensor x = Tensor::Vector<float>({nan, inf, -inf, 0, 3e38f});
  for (OpTest* op : {&is_nan, &is_inf, &is_finite}) {
    op->Input(x);
    ASSERT_TRUE(op->Run().ok());
  }
  ExpectEqual(is_nan.output(0), Tensor::Vector<bool>({true, false, false, false, false}));
  ExpectEqual(is_inf.output(0), Tensor::Vector<bool>({false, true, true, false, false}));
  ExpectEqual(is_finite.output(0), Tensor::Vector<bool>({false, false, false, true, true}));
}

TEST(UnaryTest, ForwardsItsInput) {
  OpTest op("Neg");
  op.Input(Tensor::Scalar(2.0f), true);
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Scalar(-2.0f));
}

// Every variant that this machine can run gives the same results, bit for bit where arithmetic is
// exact or correctly rounded.
TEST(InstructionSetTest, VariantsAgree) {
  const simd::Table* v2 = simd::FunctionsFor(InstructionSet::kV2);
  ASSERT_NE(v2, nullptr);
  constexpr int64_t kN = 1003;
  const Tensor positive = RandomTensor(ElementType::kFloat, Shape({kN}), 0.01, 20);
  const Tensor other = RandomTensor(ElementType::kFloat, Shape({kN}), -20, 20, 2);
  for (InstructionSet set : {InstructionSet::kV3, InstructionSet::kV4}) {
    const simd::Table* table = simd::FunctionsFor(set);
    if (table == nullptr) continue;
    SCOPED_TRACE(InstructionSetName(set));
    for (int op = 0; op < simd::kNumUnaryOps; ++op) {
      const simd::UnaryFn a = v2->unary[simd::kF32][op], b = table->unary[simd::kF32][op];
      ASSERT_EQ(a == nullptr, b == nullptr);
      if (a == nullptr || (op >= simd::kIsNan && op <= simd::kIsFinite)) continue;
      Tensor x = Tensor::Uninitialized(ElementType::kFloat, Shape({kN}));
      Tensor y = Tensor::Uninitialized(ElementType::kFloat, Shape({kN}));
      a(positive.raw_data(), x.mutable_raw_data(), kN);
      b(positive.raw_data(), y.mutable_raw_data(), kN);
      SCOPED_TRACE(op);
      ExpectNear(y, x, 1e-5, 1e-6);
    }
    for (int op = simd::kAdd; op < simd::kLess; ++op) {
      if (op == simd::kPow) continue;
      Tensor x = Tensor::Uninitialized(ElementType::kFloat, Shape({kN}));
      Tensor y = Tensor::Uninitialized(ElementType::kFloat, Shape({kN}));
      v2->binary[simd::kF32][op].aa(positive.raw_data(), other.raw_data(), x.mutable_raw_data(),
                                    kN);
      table->binary[simd::kF32][op].aa(positive.raw_data(), other.raw_data(), y.mutable_raw_data(),
                                       kN);
      SCOPED_TRACE(op);
      ExpectEqual(y, x);
    }
    for (int op = 0; op < simd::kNumReduceOps; ++op) {
      float x = 0, y = 0;
      v2->reduce[simd::kF32][op].rows(other.raw_data(), 1, kN, &x);
      table->reduce[simd::kF32][op].rows(other.raw_data(), 1, kN, &y);
      EXPECT_EQ(x, y) << "reduction " << op;
    }
  }
}

}  // namespace
}  // namespace troupe::testing
