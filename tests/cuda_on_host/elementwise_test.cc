// Element-wise ops of cards against the CPU's, for all types that both have: numbers of all sizes,
// infinities and NaNs, lengths around those of packs, broadcasts, buffers that are not aligned and
// such that are taken over.
#include "devices/narrow_types.h"
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr uint64_t kSeeds[] = {1, 2};
constexpr int64_t kLengths[] = {0, 1, 7, 33, 2501};
constexpr Operand::As kPlacings[] = {Operand::kConstant, Operand::kView, Operand::kCopy};

/// Those of both devices.
std::vector<ElementType> SharedTypes(const char* op, const char* attr = "T") {
  std::vector<ElementType> types;
  const std::set<ElementType> here = KernelTypes(op, "CPU", attr);
  for (const ElementType type : KernelTypes(op, "GPU", attr)) {
    // The host computes with int32.
    if (type != kInt32 && here.count(type) != 0) types.push_back(type);
  }
  EXPECT_FALSE(types.empty()) << op;
  return types;
}

/// Functions may differ by some places; those of small types are rounded from the same floats, or
/// from their neighbours. The library of a real card has functions of its own, with errors of up to
/// 4 units in the last place, and joins products and sums to one operation.
struct OpCase {
  const char* op;
  double ulps = 0;
  Values values = Values::kAny;
  double complex_ulps = 0;
  double absolute = 0;

  Within For(ElementType type) const {
    // Products that are denormal count as 0 unless they are added in the same instruction.
    const double least = type == kComplex64 ? 0x1p-125 : 0x1p-1021;  // of two of them
    const double more = OnRealCard() ? 4 : 1;
    if (IsComplex(type)) return {more * complex_ulps, complex_ulps == 0 ? 0 : least};
    if (type == kHalf || type == kBfloat16) return {std::min(ulps, 1.0), absolute};
    return {more * ulps, absolute};
  }
};

class Elementwise : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

TEST_F(Elementwise, FunctionsOfOneNumber) {
  const OpCase cases[] = {
      {"Abs"},
      {"Acos", 4},
      {"Acosh", 4},
      {"Asin", 4},
      {"Asinh", 4},
      {"Atan", 4},
      {"Atanh", 4},
      {"Ceil"},
      {"Conj"},
      {"Cos", 4, Values::kModerate, 4},
      {"Cosh", 4, Values::kAny, 4},
      {"Elu", 4},
      {"Erf", 4, Values::kAny, 0, 1e-35},  // The CPU's of very small numbers is 0.
      {"Erfc", 16},
      {"Exp", 4, Values::kAny, 4},
      {"Expm1", 4},
      {"Floor"},
      {"Inv", 0, Values::kAny, 4},
      {"Reciprocal", 0, Values::kAny, 4},
      {"Log", 4},
      {"Log1p", 4},
      {"Neg"},
      {"Relu"},
      {"Relu6"},
      {"Rint"},
      {"Round"},
      {"Rsqrt", 2},
      {"Selu", 4},
      {"Sigmoid", 8},
      {"Sign", 0, Values::kAny, 2},
      {"Sin", 4, Values::kModerate, 4},
      {"Sinh", 4, Values::kAny, 4},
      {"Softplus", 8},
      {"Softsign", 1},
      {"Sqrt"},
      {"Square"},
      {"Tan", 4, Values::kModerate, 8},
      {"Tanh", 6},
      {"LeakyRelu"},
      {"IsFinite"},
      {"IsInf"},
      {"IsNan"},
  };
  for (const OpCase& c : cases) {
    AgainstCpu both;
    for (const ElementType type : SharedTypes(c.op)) {
      // Functions of complex numbers that are very large are not the same everywhere.
      const Values values = IsComplex(type) && c.complex_ulps != 0 ? Values::kModerate : c.values;
      for (const uint64_t seed : kSeeds) {
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), seed, values);
          for (const Operand::As as : kPlacings) both.Add(c.op, {{x, as}}, c.For(type));
        }
        both.Add(c.op, {{Numbers(type, Shape(), seed, values)}}, c.For(type));
      }
    }
    both.Compare();
  }
  AgainstCpu both;
  for (const int64_t n : kLengths) both.Add("LogicalNot", {{Numbers(kBool, Shape({n}), 1)}});
  both.Compare();
}

/// Shapes of two operands.
std::vector<std::pair<Shape, Shape>> Broadcasts() {
  return {{Shape(), Shape()},
          {Shape({7}), Shape({7})},
          {Shape({0}), Shape({0})},
          {Shape({0}), Shape({1})},
          {Shape(), Shape({33})},
          {Shape({1001}), Shape({1})},
          {Shape({3, 1}), Shape({1, 4})},
          {Shape({33, 5}), Shape({33, 1})},
          {Shape({64, 8}), Shape({8})},
          {Shape({2, 3, 4}), Shape({3, 1})},
          {Shape({2, 0, 3}), Shape({2, 1, 1})},
          {Shape({2, 1, 3, 1, 2}), Shape({1, 4, 1, 5, 1})},
          {Shape({2, 1, 2, 1, 2, 1, 2, 1}), Shape({1, 3, 1, 3, 1, 3, 1, 3})}};
}

TEST_F(Elementwise, FunctionsOfTwoNumbers) {
  const OpCase cases[] = {
      {"Add"},
      {"AddV2"},
      {"Atan2", 4},
      {"Sub"},
      {"Mul", 0, Values::kAny, 2},
      {"MulNoNan", 0, Values::kAny, 2},
      {"Div", 0, Values::kAny, 2},
      {"DivNoNan", 0, Values::kAny, 2},
      {"RealDiv", 0, Values::kAny, 2},
      {"FloorDiv"},
      {"FloorMod"},
      {"TruncateDiv"},
      {"Maximum"},
      {"Minimum"},
      {"NextAfter"},
      {"Pow", 8},
      {"SquaredDifference"},
      {"Xdivy", 0, Values::kAny, 2},
      {"Xlog1py", 8, Values::kModerate, 8},
      {"Xlogy", 8, Values::kModerate, 8},
      {"Less"},
      {"LessEqual"},
      {"Greater"},
      {"GreaterEqual"},
      {"Equal"},
      {"NotEqual"},
  };
  for (const OpCase& c : cases) {
    const std::string op = c.op;
    const bool divides = op.find("Div") != std::string::npos || op == "FloorMod";
    AgainstCpu both;
    for (const ElementType type : SharedTypes(c.op)) {
      const bool integer = !IsFloating(type) && !IsComplex(type);
      // Logarithms of complex numbers that are very large are not the same everywhere.
      const Values any = IsComplex(type) ? c.values : Values::kAny;
      const Values first = op == "Pow" && integer ? Values::kModerate : any;
      const Values second = integer && (divides || op == "Pow") ? Values::kPositive : any;
      for (const uint64_t seed : kSeeds) {
        for (const auto& [a, b] : Broadcasts()) {
          both.Add(op, {{Numbers(type, a, seed, first)}, {Numbers(type, b, seed + 9, second)}},
                   c.For(type));
        }
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), seed, first);
          const Tensor y = Numbers(type, Shape({n}), seed + 9, second);
          for (const Operand::As as : {Operand::kView, Operand::kCopy}) {
            both.Add(op, {{x, as}, {y}}, c.For(type));
            both.Add(op, {{x}, {y, as}}, c.For(type));
          }
        }
      }
    }
    both.Compare();
  }
  AgainstCpu both;
  for (const char* op : {"LogicalAnd", "LogicalOr"}) {
    for (const auto& [a, b] : Broadcasts()) {
      both.Add(op, {{Numbers(kBool, a, 1)}, {Numbers(kBool, b, 2)}});
    }
  }
  both.Compare();
}

TEST_F(Elementwise, NumbersThatAreNear) {
  for (const float tolerance : {1e-5f, 0.5f, 3.0f}) {
    const auto attrs = [=](NodeSpec& node) { node.Attr("tolerance", tolerance); };
    AgainstCpu both;
    for (const ElementType type : SharedTypes("ApproximateEqual")) {
      for (const Values values : {Values::kAny, Values::kModerate}) {
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), 1, values);
          const Tensor y = Numbers(type, Shape({n}), 2, values);
          both.Add("ApproximateEqual", {{x}, {y, Operand::kView}}, {}, attrs);
          both.Add("ApproximateEqual", {{x}, {x}}, {}, attrs);
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Elementwise, NumbersThatAreNone) {
  const double infinity = INFINITY;
  const std::pair<std::vector<double>, const char*> cases[] = {
      {{1, NAN}, "NaN"},
      {{-infinity, 1}, "-Inf"},
      {{1, infinity}, "+Inf"},
      {{-infinity, 2, infinity}, "-Inf and +Inf"},
      {{NAN, -infinity, 2, infinity}, "-Inf and +Inf and NaN"},
  };
  const auto attrs = [](NodeSpec& node) { node.Attr("message", "here"); };
  for (const auto& [values, found] : cases) {
    const absl::Status status =
        AgainstCpu::StatusOf("CheckNumericsV2", {{Tensor::Vector<double>(values)}}, attrs);
    EXPECT_NE(status.message().find(StrCat("here : Tensor had ", found, " values")),
              std::string::npos)
        << status;
  }
  const absl::Status status =
      AgainstCpu::StatusOf("CheckNumerics", {{Tensor::Vector<double>({-infinity, NAN})}}, attrs);
  EXPECT_NE(status.message().find("here : Tensor had Inf and NaN values"), std::string::npos)
      << status;
  AgainstCpu both;
  for (const ElementType type : SharedTypes("CheckNumericsV2")) {
    for (const int64_t n : kLengths) {
      both.Add("CheckNumericsV2", {{Numbers(type, Shape({n}), 1, Values::kModerate)}}, {}, attrs);
    }
  }
  both.Compare();
}

TEST_F(Elementwise, Bits) {
  AgainstCpu both;
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}) {
    std::vector<ElementType> types = SharedTypes(op);
    types.push_back(kInt32);
    for (const ElementType type : types) {
      for (const Values places : {Values::kAny, Values::kModerate}) {
        for (const auto& [a, b] : Broadcasts()) {
          both.Add(op, {{Numbers(type, a, 1)}, {Numbers(type, b, 2, places)}});
        }
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), 1), y = Numbers(type, Shape({n}), 2, places);
          both.Add(op, {{x, Operand::kCopy}, {y, Operand::kView}});
        }
      }
    }
  }
  for (const char* op : {"Invert", "PopulationCount"}) {
    std::vector<ElementType> types = SharedTypes(op);
    types.push_back(kInt32);
    for (const ElementType type : types) {
      for (const int64_t n : kLengths) {
        for (const Operand::As as : kPlacings) both.Add(op, {{Numbers(type, Shape({n}), 1), as}});
      }
    }
  }
  both.Compare();
}

TEST_F(Elementwise, PartsOfComplexNumbers) {
  for (const auto& [real, complex] : {std::pair{kFloat, kComplex64}, {kDouble, kComplex128}}) {
    AgainstCpu both;
    const Within within = OpCase{"", 4}.For(real);
    const auto to_real = [to = real](NodeSpec& node) { node.Attr("Tout", to); };
    const auto to_complex = [to = complex](NodeSpec& node) { node.Attr("Tout", to); };
    for (const int64_t n : kLengths) {
      for (const Operand::As as : kPlacings) {
        const Tensor z = Numbers(complex, Shape({n}), 1);
        both.Add("Real", {{z, as}}, {}, to_real);
        both.Add("Imag", {{z, as}}, {}, to_real);
        both.Add("Angle", {{z, as}}, within, to_real);
        both.Add("ComplexAbs", {{z, as}}, within, to_real);
        both.Add("Complex", {{Numbers(real, Shape({n}), 2), as}, {Numbers(real, Shape({n}), 3)}},
                 {}, to_complex);
      }
    }
    for (const auto& [a, b] : Broadcasts()) {
      both.Add("Complex", {{Numbers(real, a, 2)}, {Numbers(real, b, 3)}}, {}, to_complex);
    }
    both.Compare();
  }
}

/// The CPU has none of half.
TEST_F(Elementwise, RintOfHalf) {
  std::vector<half> x, want;
  for (const auto& [from, to] : {std::pair{0.5f, 0.0f},
                                 {1.5f, 2.0f},
                                 {-2.5f, -2.0f},
                                 {-0.75f, -1.0f},
                                 {1000.5f, 1000.0f},
                                 {INFINITY, INFINITY}}) {
    x.emplace_back(from);
    want.emplace_back(to);
  }
  const auto got = AgainstCpu::OnCard("Rint", {{Tensor::Vector<half>(x)}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(SameValues(*got, Tensor::Vector<half>(want), {}));
}

TEST_F(Elementwise, MoreDimensionsThanAreBroadcast) {
  const std::vector<int64_t> a = {2, 1, 2, 1, 2, 1, 2, 1, 2}, b = {1, 2, 1, 2, 1, 2, 1, 2, 1};
  const absl::Status status =
      AgainstCpu::StatusOf("Add", {{Numbers(kFloat, Shape(a), 1)}, {Numbers(kFloat, Shape(b), 2)}});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
}

TEST_F(Elementwise, DivisionsOfIntegersThatFail) {
  for (const char* op : {"Div", "FloorDiv", "FloorMod", "TruncateDiv"}) {
    const absl::Status status = AgainstCpu::StatusOf(
        op, {{Tensor::Vector<int64_t>({1, 2, 3})}, {Tensor::Vector<int64_t>({1, 0, 1})}});
    EXPECT_NE(status.message().find("Integer division by zero"), std::string::npos) << status;
  }
  const absl::Status status = AgainstCpu::StatusOf(
      "Pow", {{Tensor::Vector<int64_t>({1, 2, 3})}, {Tensor::Vector<int64_t>({1, -1, 1})}});
  EXPECT_NE(status.message().find("negative integer powers"), std::string::npos) << status;
}

/// All pairs of parts that are large, small, zero, infinite or none at all.
template <typename R>
std::pair<Tensor, Tensor> ExtremePairs() {
  using T = std::complex<R>;
  const R most = std::numeric_limits<R>::max(), least = std::numeric_limits<R>::min();
  const R infinity = std::numeric_limits<R>::infinity();
  const R parts[] = {0,         -R(0),    1,         -3,     most,     -most / 2,      least,
                     least * 4, infinity, -infinity, R(NAN), R(1) / 3, std::sqrt(most)};
  std::vector<T> numbers, a, b;
  for (const R x : parts) {
    for (const R y : parts) numbers.emplace_back(x, y);
  }
  for (const T& x : numbers) {
    for (const T& y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  return {Tensor::Vector<T>(a), Tensor::Vector<T>(b)};
}

TEST_F(Elementwise, ComplexNumbersOfAllSizes) {
  AgainstCpu both;
  for (const auto& [a, b] : {ExtremePairs<float>(), ExtremePairs<double>()}) {
    const Within within = OpCase{"", 0, Values::kAny, 2}.For(a.type());
    for (const char* op : {"Mul", "Div", "DivNoNan"}) both.Add(op, {{a}, {b}}, within);
    both.Add("Inv", {{a}}, within);
  }
  both.Compare();
}

TEST_F(Elementwise, Gradients) {
  const OpCase cases[] = {
      {"EluGrad", 2},     {"InvGrad", 2},      {"LeakyReluGrad"},   {"ReciprocalGrad", 2},
      {"Relu6Grad"},      {"ReluGrad"},        {"RsqrtGrad", 4},    {"SeluGrad", 2},
      {"SigmoidGrad", 2}, {"SoftplusGrad", 8}, {"SoftsignGrad", 2}, {"SqrtGrad", 2},
      {"TanhGrad", 2},
  };
  for (OpCase c : cases) {
    // 1 - x * x is rounded once there; where x is nearly 1, that is another number.
    if (OnRealCard() && c.op == std::string("TanhGrad")) c.ulps = 512;
    AgainstCpu both;
    for (const ElementType type : SharedTypes(c.op)) {
      for (const uint64_t seed : kSeeds) {
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), seed, Values::kModerate);
          const Tensor y = Numbers(type, Shape({n}), seed + 9);
          for (const Operand::As as : kPlacings) both.Add(c.op, {{x, as}, {y}}, c.For(type));
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Elementwise, Choices) {
  AgainstCpu both;
  for (const ElementType type : SharedTypes("SelectV2")) {
    for (const auto& [a, b] : Broadcasts()) {
      both.Add("SelectV2", {{Numbers(kBool, a, 1)}, {Numbers(type, b, 2)}, {Numbers(type, a, 3)}});
      both.Add("SelectV2", {{Numbers(kBool, b, 1)}, {Numbers(type, a, 2)}, {Numbers(type, a, 3)}});
      both.Add("SelectV2",
               {{Numbers(kBool, Shape(), 1)}, {Numbers(type, a, 2)}, {Numbers(type, b, 3)}});
    }
    for (const int64_t n : kLengths) {
      const Tensor x = Numbers(type, Shape({n, 3}), 2), y = Numbers(type, Shape({n, 3}), 3);
      both.Add("Select", {{Numbers(kBool, Shape({n}), 1)}, {x}, {y}});
      both.Add("Select", {{Numbers(kBool, Shape({n, 3}), 1), Operand::kView}, {x}, {y}});
    }
  }
  for (const ElementType type : SharedTypes("ClipByValue")) {
    for (const int64_t n : kLengths) {
      const Tensor x = Numbers(type, Shape({n}), 1, Values::kModerate);
      const Tensor low = Numbers(type, Shape(), 5, Values::kPositive);
      both.Add("ClipByValue", {{x}, {low}, {low}});
      both.Add("ClipByValue", {{x, Operand::kView}, {x}, {x}});
    }
  }
  for (const ElementType type : SharedTypes("AddN")) {
    for (const uint64_t count : {1, 2, 3, 4, 5, 8, 20}) {
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        std::vector<Operand> inputs;
        for (uint64_t i = 0; i < count; ++i) {
          inputs.emplace_back(Numbers(type, Shape({33}), i, Values::kPositive), as);
        }
        // Small types may be rounded once, or at every step.
        both.AddList("AddN", inputs, {16});
      }
    }
    const Operand x(Numbers(type, Shape({777}), 1)), y(Numbers(type, Shape({777}), 2));
    both.AddList("AddN", {x, y});
  }
  both.Compare();
}

/// Numbers that both types have, near enough: what is beyond the target's range is no number that
/// anybody promises.
TEST_F(Elementwise, Casts) {
  const std::set<ElementType> from_types = KernelTypes("Cast", "GPU", "SrcT");
  for (const ElementType from : from_types) {
    if (IsNarrow(from)) continue;  // See rearrange_test.cc.
    AgainstCpu both;
    for (const ElementType to : KernelTypes("Cast", "GPU", "DstT")) {
      if (IsNarrow(to)) continue;
      const bool floats =
          (IsFloating(from) || IsComplex(from)) && (IsFloating(to) || IsComplex(to));
      // From floating-point numbers to integers, values that all of these have.
      const bool unsigned_to = to == kUint8 || to == kUint16 || to == kUint32 || to == kUint64;
      const bool integers = !IsFloating(from) && !IsComplex(from);
      const Values values = floats || integers || to == kBool ? Values::kAny
                            : unsigned_to                     ? Values::kPositive
                                                              : Values::kModerate;
      for (const bool truncate : {false, true}) {
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(from, Shape({n}), 1, values);
          for (const Operand::As as : kPlacings) {
            both.Add("Cast", {{x, as}}, {}, [to, truncate](NodeSpec& node) {
              node.Attr("DstT", to).Attr("Truncate", truncate);
            });
          }
        }
      }
    }
    both.Compare();
  }
}

}  // namespace
}  // namespace troupe::testing
