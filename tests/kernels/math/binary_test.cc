// Element-wise ops of two inputs: functions, broadcasting, errors.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/common/broadcast.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

struct BinaryCase {
  const char* op;
  double (*reference)(double, double);
  bool integers = true;
  bool to_bool = false;
};

double FloorMod(double a, double b) { return a - b * std::floor(a / b); }

const BinaryCase kCases[] = {
    {"AddV2", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"RealDiv", [](double a, double b) { return a / b; }, false},
    {"DivNoNan", [](double a, double b) { return b == 0 ? 0 : a / b; }, false},
    {"FloorDiv", [](double a, double b) { return std::floor(a / b); }},
    {"FloorMod", FloorMod},
    {"TruncateDiv", [](double a, double b) { return std::trunc(a / b); }},
    {"Maximum", [](double a, double b) { return std::max(a, b); }},
    {"Minimum", [](double a, double b) { return std::min(a, b); }},
    {"SquaredDifference", [](double a, double b) { return (a - b) * (a - b); }, false},
    {"Less", [](double a, double b) { return double(a < b); }, true, true},
    {"LessEqual", [](double a, double b) { return double(a <= b); }, true, true},
    {"Greater", [](double a, double b) { return double(a > b); }, true, true},
    {"GreaterEqual", [](double a, double b) { return double(a >= b); }, true, true},
    {"Equal", [](double a, double b) { return double(a == b); }, true, true},
    {"NotEqual", [](double a, double b) { return double(a != b); }, true, true},
};

// Element `i` of `out`, looked up in an operand that is broadcast to it.
int64_t SourceIndex(const Shape& out, const Shape& operand, int64_t i) {
  int64_t index = 0, stride = 1;
  for (int d = out.rank() - 1; d >= 0; --d) {
    const int64_t at = i % out.dim(d);
    i /= out.dim(d);
    const int k = d - (out.rank() - operand.rank());
    if (k < 0) continue;
    if (operand.dim(k) != 1) index += at * stride;
    stride *= operand.dim(k);
  }
  return index;
}

const std::pair<Shape, Shape> kShapes[] = {
    {Shape({7}), Shape({7})},
    {Shape(), Shape()},
    {Shape({3, 5}), Shape()},
    {Shape(), Shape({3, 5})},
    {Shape({1, 1}), Shape({4})},
    {Shape({37, 5}), Shape({5})},
    {Shape({5}), Shape({37, 5})},
    {Shape({6, 1}), Shape({6, 4})},
    {Shape({6, 1}), Shape({1, 4})},
    {Shape({2, 3, 4}), Shape({3, 1})},
    {Shape({2, 1, 4, 1, 3}), Shape({5, 1, 2, 1})},
    {Shape({2, 0, 3}), Shape({1, 3})},
    {Shape({300, 700}), Shape({700})},
    {Shape({1, 300000}), Shape({300000})},
};

TEST(BinaryTest, BroadcastsLikeNumPy) {
  for (const BinaryCase& c : kCases) {
    for (ElementType type : {kFloat, kDouble, kHalf, kInt32, kInt8, kUint16}) {
      const bool floating = IsFloating(type);
      if (!floating && !c.integers) continue;
      for (const auto& [a_shape, b_shape] : kShapes) {
        if (a_shape.num_elements() > 1000 && std::string(c.op) != "AddV2") continue;
        SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type) << " "
                                          << a_shape.ToString() << " " << b_shape.ToString());
        // Integers in half's exact range; divisors not 0.
        const bool is_signed = type != kUint16;
        Tensor a = RandomTensor(type, a_shape, is_signed ? -6 : 0, 6, 3);
        Tensor b = RandomTensor(type, b_shape, 1, 5, 4);
        const auto shape = BroadcastShapes(a_shape, b_shape);
        ASSERT_TRUE(shape.ok());
        Tensor want = Tensor::Uninitialized(c.to_bool ? kBool : type, *shape);
        if (floating) {  // Away from where rounding changes a quotient's floor.
          for (Tensor* t : {&a, &b}) {
            for (int64_t i = 0; i < t->num_elements(); ++i) Set(t, i, std::rint(At(*t, i) * 2) / 2);
          }
        }
        for (int64_t i = 0; i < shape->num_elements(); ++i) {
          double value = c.reference(At(a, SourceIndex(*shape, a_shape, i)),
                                     At(b, SourceIndex(*shape, b_shape, i)));
          if (type == kUint16 && value < 0) value += 65536;
          Set(&want, i, value);
        }
        for (bool in_place : {false, true}) {
          OpTest op(c.op, in_place ? 2 : 1);
          op.Input(a, in_place).Input(b, in_place);
          ASSERT_TRUE(op.Run().ok());
          ExpectNear(op.output(0), want, type == kHalf ? 2e-3 : 1e-6, type == kHalf ? 1e-3 : 1e-6);
        }
      }
    }
  }
}

absl::Status RunBinary(const char* name, Tensor a, Tensor b, Tensor* out = nullptr) {
  OpTest op(name);
  op.Input(std::move(a)).Input(std::move(b));
  absl::Status status = op.Run();
  if (status.ok() && out != nullptr) *out = op.output(0);
  return status;
}

// Every bit of a remainder is the C library's, whatever the numbers are.
template <typename T, typename Bits>
void TestRemainders() {
  std::mt19937_64 random(3);
  std::vector<T> x, y;
  for (int i = 0; i < 300000; ++i) {
    const auto bits = static_cast<Bits>(random());
    x.push_back(std::bit_cast<T>(bits));
    // Some of the same size, some of any.
    const auto other = static_cast<Bits>(random());
    y.push_back(std::bit_cast<T>(i % 2 == 0 ? bits - (other >> (i % 31)) : other));
  }
  // Quotients that are nearly whole.
  for (int i = 1; i < 20000; ++i) {
    const T divisor = T(1) / static_cast<T>(i);
    for (const int n : {i, 3 * i, 4097 * i}) {
      for (const T towards : {T(0), T(1e9)}) {
        x.push_back(std::nextafter(static_cast<T>(n) * divisor, towards));
        y.push_back(divisor);
      }
    }
  }
  const auto small = [](T v) { return std::abs(v) < std::numeric_limits<T>::min(); };
  OpTest op("Mod");
  op.Input(Tensor::Vector<T>(x)).Input(Tensor::Vector<T>(y));
  ASSERT_TRUE(op.Run().ok());
  const T* got = op.output(0).template unchecked_data<T>();
  for (size_t i = 0; i < x.size(); ++i) {
    const T want = std::fmod(x[i], y[i]);
    if (std::isnan(want) && std::isnan(got[i])) continue;
    if (small(x[i]) || small(y[i]) || small(want)) continue;  // Denormal numbers may count as 0.
    ASSERT_EQ(got[i], want) << x[i] << " by " << y[i];
  }
}
TEST(BinaryTest, RemaindersAreExact) {
  TestRemainders<float, uint32_t>();
  TestRemainders<double, uint64_t>();
}

TEST(BinaryTest, IntegerDivisionErrors) {
  const Tensor a = Tensor::Vector<int32_t>({1, 2}), zero = Tensor::Vector<int32_t>({1, 0});
  for (const char* op : {"Div", "FloorDiv", "FloorMod", "Mod"}) {
    EXPECT_EQ(RunBinary(op, a, zero).code(), absl::StatusCode::kInvalidArgument) << op;
  }
  EXPECT_EQ(RunBinary("TruncateDiv", a, zero).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunBinary("Pow", a, Tensor::Vector<int32_t>({1, -1})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunBinary("AddV2", a, Tensor::Vector<int32_t>({1, 2, 3})).code(),
            absl::StatusCode::kInvalidArgument);
  // A broadcast result that is too large for any machine.
  const Tensor column = Tensor::Uninitialized(kFloat, Shape({0}));
  EXPECT_FALSE(RunBinary("AddV2", column.Reshaped(Shape({int64_t{1} << 40, 1, 0})),
                         column.Reshaped(Shape({int64_t{1} << 40, 1, 1, 0})))
                   .ok());
}

TEST(BinaryTest, TheLowestIntegerDividedByMinusOneWrapsAround) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  Tensor out;
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv"}) {
    ASSERT_TRUE(RunBinary(op, Tensor::Scalar(lowest), Tensor::Scalar(int64_t{-1}), &out).ok());
    ExpectEqual(out, Tensor::Scalar(lowest));
  }
  ASSERT_TRUE(
      RunBinary("FloorMod", Tensor::Scalar(lowest), Tensor::Scalar(int64_t{-1}), &out).ok());
  ExpectEqual(out, Tensor::Scalar(int64_t{0}));
}

/// a op b of integers that have a quotient, in numbers that hold those of all types.
__int128 Divided(const std::string& op, __int128 a, __int128 b) {
  const __int128 quotient = a / b, rest = a % b;
  const bool above = rest != 0 && (a < 0) != (b < 0);
  if (op == "FloorDiv") return quotient - above;
  if (op == "FloorMod") return above ? rest + b : rest;
  return op == "Mod" ? rest : quotient;
}

template <typename T>
void CheckIntegerDivision() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers = {1, 2, 3, 7, 100, Limits::max(), Limits::max() - 1, Limits::max() / 2};
  if constexpr (std::is_signed_v<T>) {
    for (const T x : std::vector<T>(numbers)) numbers.push_back(static_cast<T>(-x));
    numbers.push_back(Limits::lowest());
  }
  std::vector<T> a, b;
  for (const T x : numbers) {
    for (const T y : numbers) {
      for (const T less : {0, 1}) {  // Multiples, and what is next to them.
        a.push_back(static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) - less));
        b.push_back(y);
        a.push_back(static_cast<T>(x - (x > 0 ? less : 0)));
        b.push_back(y);
      }
    }
  }
  for (const char* name : {"Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv"}) {
    if (std::string(name) == "Mod" && (sizeof(T) < 4 || std::is_unsigned_v<T>)) continue;
    SCOPED_TRACE(::testing::Message() << name << " " << ElementTypeName(kElementType<T>));
    Tensor out;
    ASSERT_EQ(RunBinary(name, Tensor::Vector<T>(absl::MakeConstSpan(a)),
                        Tensor::Vector<T>(absl::MakeConstSpan(b)), &out),
              absl::OkStatus());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(out.unchecked_data<T>()[i], static_cast<T>(Divided(name, a[i], b[i])))
          << +a[i] << " " << +b[i];
    }
  }
}

TEST(BinaryTest, IntegersAreDividedExactly) {
  CheckIntegerDivision<int8_t>();
  CheckIntegerDivision<int16_t>();
  CheckIntegerDivision<int32_t>();
  CheckIntegerDivision<int64_t>();
  CheckIntegerDivision<uint8_t>();
  CheckIntegerDivision<uint16_t>();
  CheckIntegerDivision<uint32_t>();
  CheckIntegerDivision<uint64_t>();
}

template <typename T>
void CheckBits() {
  constexpr int kBits = 8 * sizeof(T);
  for (const int64_t n : {1, 15, 64, 131}) {
    std::vector<T> x(n), places(n), left(n), right(n);
    std::vector<uint8_t> counts(n);
    for (int64_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(0x9e3779b97f4a7c15u * static_cast<uint64_t>(i) >> 7);
      places[i] = static_cast<T>(i % (kBits + 3) - 1);
      const int shift = static_cast<int>(std::clamp<T>(places[i], 0, kBits - 1));
      left[i] = static_cast<T>(static_cast<uint64_t>(x[i]) << shift);
      right[i] = static_cast<T>(x[i] >> shift);
      for (int b = 0; b < kBits; ++b) counts[i] += x[i] >> b & 1;
    }
    const auto tensor = [](const auto& values) {
      return Tensor::Vector<typename std::decay_t<decltype(values)>::value_type>(
          absl::MakeConstSpan(values));
    };
    Tensor out;
    ASSERT_EQ(RunBinary("LeftShift", tensor(x), tensor(places), &out), absl::OkStatus());
    ExpectEqual(out, tensor(left));
    ASSERT_EQ(RunBinary("RightShift", tensor(x), tensor(places), &out), absl::OkStatus());
    ExpectEqual(out, tensor(right));
    ASSERT_EQ(RunBinary("RightShift", tensor(x), Tensor::Scalar<T>(3), &out), absl::OkStatus());
    EXPECT_EQ(out.unchecked_data<T>()[n - 1], static_cast<T>(x[n - 1] >> 3));
    OpTest count("PopulationCount");
    count.Input(tensor(x));
    ASSERT_EQ(count.Run(), absl::OkStatus());
    ExpectEqual(count.output(0), tensor(counts));
  }
}

TEST(BinaryTest, ShiftsAndCountsOfBits) {
  CheckBits<int8_t>();
  CheckBits<int16_t>();
  CheckBits<int32_t>();
  CheckBits<int64_t>();
  CheckBits<uint8_t>();
  CheckBits<uint16_t>();
  CheckBits<uint32_t>();
  CheckBits<uint64_t>();
}

TEST(BinaryTest, NanPropagates) {
  const float nan = std::nanf("");
  Tensor out;
  for (const char* op : {"Maximum", "Minimum"}) {
    ASSERT_TRUE(RunBinary(op, Tensor::Vector<float>({nan, 1, nan}),
                          Tensor::Vector<float>({1, nan, nan}), &out)
                    .ok());
    ExpectEqual(out, Tensor::Vector<float>({nan, nan, nan}));
  }
}

TEST(BinaryTest, Powers) {
  Tensor out;
  ASSERT_TRUE(RunBinary("Pow", Tensor::Vector<int32_t>({2, -3, 0, 7, 3}),
                        Tensor::Vector<int32_t>({10, 3, 0, 0, 40}), &out)
                  .ok());
  ExpectEqual(out, Tensor::Vector<int32_t>(
                       {1024, -27, 1, 1, static_cast<int32_t>(12157665459056928801ull)}));
  const Tensor a = RandomTensor(kFloat, Shape({100}), 0.1, 5);
  for (double exponent : {2.0, 0.5, -1.5, 3.0}) {
    Tensor want = Tensor::Uninitialized(kFloat, Shape({100}));
    for (int i = 0; i < 100; ++i) Set(&want, i, std::pow(At(a, i), exponent));
    ASSERT_TRUE(RunBinary("Pow", a, Tensor::Scalar(static_cast<float>(exponent)), &out).ok());
    ExpectNear(out, want, 1e-6);
  }
}

TEST(BinaryTest, PowersOfSpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double values[] = {0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, inf, -inf, nan};
  for (ElementType type : {kFloat, kDouble}) {
    Tensor a = Tensor::Uninitialized(type, Shape({13, 13}));
    Tensor b = Tensor::Uninitialized(type, Shape({13, 13}));
    Tensor want = Tensor::Uninitialized(type, Shape({13, 13})), out;
    for (int i = 0; i < 169; ++i) {
      Set(&a, i, values[i / 13]);
      Set(&b, i, values[i % 13]);
      Set(&want, i, std::pow(values[i / 13], values[i % 13]));
    }
    ASSERT_TRUE(RunBinary("Pow", a, b, &out).ok());
    ExpectNear(out, want, 1e-6);
  }
}

TEST(BinaryTest, Strings) {
  Tensor out;
  const Tensor a = Tensor::Vector<std::string>({"a", "b"}), b = Tensor::Scalar("b");
  ASSERT_TRUE(RunBinary("Add", a, b, &out).ok());
  ExpectEqual(out, Tensor::Vector<std::string>({"ab", "bb"}));
  ASSERT_TRUE(RunBinary("Equal", a, b, &out).ok());
  ExpectEqual(out, Tensor::Vector<bool>({false, true}));
}

TEST(BinaryTest, EqualOfIncompatibleShapes) {
  for (const char* name : {"Equal", "NotEqual"}) {
    OpTest op(name);
    op.Input(Tensor::Vector<float>({1, 2})).Input(Tensor::Vector<float>({1, 2, 3}));
    op.Attr("incompatible_shape_error", false);
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Tensor::Scalar(std::string(name) == "NotEqual"));
  }
}

// Gradient ops against numeric derivatives of the forward op.
TEST(BinaryTest, GradientOps) {
  struct Case {
    const char* op;
    const char* forward;
    double low, high;
    bool gradient_first;  // (gradients, features or outputs) or (y, dy)
    bool of_output;
  };
  for (const Case& c : std::vector<Case>{{"TanhGrad", "Tanh", -2, 2, false, true},
                                         {"SigmoidGrad", "Sigmoid", -3, 3, false, true},
                                         {"SqrtGrad", "Sqrt", 0.5, 4, false, true},
                                         {"RsqrtGrad", "Rsqrt", 0.5, 4, false, true},
                                         {"InvGrad", "Inv", 0.5, 4, false, true},
                                         {"ReluGrad", "Relu", 0.2, 4, true, false},
                                         {"Relu6Grad", "Relu6", 0.2, 5, true, false},
                                         {"EluGrad", "Elu", -3, -0.1, true, true},
                                         {"SeluGrad", "Selu", -3, -0.1, true, true},
                                         {"SoftplusGrad", "Softplus", -3, 3, true, false},
                                         {"SoftsignGrad", "Softsign", 0.1, 3, true, false},
                                         {"LeakyReluGrad", "LeakyRelu", -3, -0.1, true, false}}) {
    SCOPED_TRACE(c.op);
    const Shape shape({40});
    const Tensor x = RandomTensor(kDouble, shape, c.low, c.high);
    const Tensor dy = RandomTensor(kDouble, shape, -2, 2, 7);
    auto forward = [&](double shift) {
      Tensor moved = *x.Clone();
      for (int i = 0; i < 40; ++i) Set(&moved, i, At(x, i) + shift);
      OpTest op(c.forward);
      op.Input(moved);
      EXPECT_TRUE(op.Run().ok());
      return op.output(0);
    };
    const double h = 1e-6;
    const Tensor up = forward(h), down = forward(-h), y = forward(0);
    Tensor want = Tensor::Uninitialized(kDouble, shape);
    for (int i = 0; i < 40; ++i) Set(&want, i, At(dy, i) * (At(up, i) - At(down, i)) / (2 * h));
    const Tensor& value = c.of_output ? y : x;
    OpTest op(c.op);
    op.Input(c.gradient_first ? dy : value).Input(c.gradient_first ? value : dy);
    ASSERT_TRUE(op.Run().ok());
    ExpectNear(op.output(0), want, 1e-6, 1e-7);
    OpTest wrong(c.op);
    wrong.Input(dy).Input(Tensor::Vector<double>({1}));
    EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Less than a piece of work goes to two threads while a worker is awake.
TEST(ElementwiseTest, SameBitsWhenSharedWithAnAwakeWorker) {
  const Tensor x = RandomTensor(ElementType::kFloat, Shape({1123, 17}), -1, 1, 1);
  const Tensor y = RandomTensor(ElementType::kFloat, Shape({1123, 17}), -1, 1, 2);
  const Tensor row = RandomTensor(ElementType::kFloat, Shape({17}), -1, 1, 3);
  const Tensor one = Tensor::Scalar(3.0f);
  const std::pair<const char*, std::vector<Tensor>> cases[] = {{"Relu", {x}},
                                                               {"AddV2", {x, y}},
                                                               {"Mul", {x, one}},
                                                               {"AddV2", {x, row}},
                                                               {"BiasAdd", {x, row}}};
  for (const auto& [name, inputs] : cases) {
    SCOPED_TRACE(name);
    OpTest alone(name), shared(name, 2);
    for (const Tensor& input : inputs) {
      alone.Input(input);
      shared.Input(input);
    }
    ASSERT_EQ(alone.Run(), absl::OkStatus());
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(shared.Run(), absl::OkStatus());
      ExpectEqual(shared.output(0), alone.output(0));
    }
  }
}

}  // namespace
}  // namespace troupe::testing
