// Inverse, hyperbolic and special functions, bits of integers, parts of complex numbers.
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

/// Simpson's rule from `from` to x.
double Integral(double from, double x, const std::function<double(double)>& f) {
  constexpr int kSteps = 20000;
  const double h = (x - from) / kSteps;
  double sum = f(from) + f(x);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(from + i * h);
  return sum * h / 3;
}

double DawsonBySum(double x) {
  return Integral(0, x, [x](double t) { return std::exp(t * t - x * x); });
}
double SpenceBySum(double x) {
  return Integral(1, x, [](double t) { return t == 1 ? -1 : std::log(t) / (1 - t); });
}
double FresnelCosBySum(double x) {
  return Integral(0, x, [](double t) { return std::cos(std::numbers::pi / 2 * t * t); });
}
double FresnelSinBySum(double x) {
  return Integral(0, x, [](double t) { return std::sin(std::numbers::pi / 2 * t * t); });
}
/// Where the increasing function f is y, in [-10, 10].
double Inverse(double y, double (*f)(double)) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < y ? low : high) = middle;
  }
  return (low + high) / 2;
}
double DigammaByDifference(double x) {
  constexpr double kStep = 1e-3;
  const auto slope = [x](double h) { return (std::lgamma(x + h) - std::lgamma(x - h)) / (2 * h); };
  return (4 * slope(kStep) - slope(2 * kStep)) / 3;
}

struct SpecialCase {
  const char* op;
  double (*reference)(double);
  double low, high;
  std::vector<ElementType> types = {kFloat, kDouble, kHalf, kBfloat16};
};

const SpecialCase kSpecialCases[] = {
    {"Acos", [](double x) { return std::acos(x); }, -1, 1},
    {"Acosh", [](double x) { return std::acosh(x); }, 1, 9},
    {"Asin", [](double x) { return std::asin(x); }, -1, 1},
    {"Asinh", [](double x) { return std::asinh(x); }, -9, 9},
    {"Atan", [](double x) { return std::atan(x); }, -9, 9},
    {"Atanh", [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"Cosh", [](double x) { return std::cosh(x); }, -5, 5},
    {"Sinh", [](double x) { return std::sinh(x); }, -5, 5},
    {"Erfc", [](double x) { return std::erfc(x); }, -4, 4},
    {"Dawsn", DawsonBySum, -12, 12, {kFloat, kDouble}},
    {"Digamma", DigammaByDifference, 0.1, 20, {kFloat, kDouble, kHalf}},
    {"Digamma", DigammaByDifference, -0.9, -0.1, {kFloat, kDouble}},
    {"Erfinv",
     [](double x) { return Inverse(x, [](double y) { return std::erf(y); }); },
     -0.99,
     0.99,
     {kFloat, kDouble}},
    {"Ndtri",
     [](double x) {
       return Inverse(x, [](double y) { return 0.5 * std::erfc(-y / std::numbers::sqrt2); });
     },
     0.01,
     0.99,
     {kFloat, kDouble}},
    {"Expint", [](double x) { return std::expint(x); }, 0.1, 20, {kFloat, kDouble}},
    {"FresnelCos", FresnelCosBySum, -4, 4, {kFloat, kDouble}},
    {"FresnelSin", FresnelSinBySum, -4, 4, {kFloat, kDouble}},
    {"Lgamma", [](double x) { return std::lgamma(x); }, 0.1, 20, {kFloat, kDouble, kHalf}},
    {"Spence", SpenceBySum, 0.05, 12, {kFloat, kDouble}},
};

double SpecialTolerance(ElementType type) {
  switch (type) {
    case kDouble:
      return 1e-8;  // What the references are good for.
    case kFloat:
      return 1e-5;
    case kHalf:
      return 2e-3;
    default:
      return 2e-2;
  }
}

Tensor RunOn(const char* name, const std::vector<Tensor>& inputs, bool in_place = false) {
  OpTest op(name);
  for (const Tensor& input : inputs) op.Input(*input.Clone(), in_place);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? op.output(0) : Tensor();
}

TEST(SpecialTest, AgainstReferences) {
  for (const SpecialCase& c : kSpecialCases) {
    for (const ElementType type : c.types) {
      for (int64_t n : {0, 1, 67}) {
        SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type) << " " << n);
        const Tensor x = RandomTensor(type, Shape({n}), c.low, c.high);
        Tensor want = Tensor::Uninitialized(type, Shape({n}));
        for (int64_t i = 0; i < n; ++i) Set(&want, i, c.reference(At(x, i)));
        for (bool in_place : {false, true}) {
          ExpectNear(RunOn(c.op, {x}, in_place), want, SpecialTolerance(type),
                     SpecialTolerance(type) / 10);
        }
      }
    }
  }
}

TEST(SpecialTest, KnownValues) {
  constexpr double kPi = std::numbers::pi;
  const struct {
    const char* op;
    std::vector<double> x, y;
  } cases[] = {
      {"Dawsn",
       {kInf, kNotANumber, 1e200, 0.49999, 10.5},
       {0, kNotANumber, 5e-201, 0.42443090, 0.04783801407}},
      {"Erfinv", {-1, 1, 1.5, kNotANumber}, {-kInf, kInf, kNotANumber, kNotANumber}},
      {"Expint", {0, -1, kInf, kNotANumber}, {-kInf, kNotANumber, kNotANumber, kNotANumber}},
      {"FresnelCos", {kInf, -kInf, 1e300, kNotANumber}, {0.5, -0.5, 0.5, kNotANumber}},
      {"FresnelSin", {kInf, -kInf, 1e300, kNotANumber}, {0.5, -0.5, 0.5, kNotANumber}},
      {"Ndtri", {0, 1, -0.1, 1.1}, {-kInf, kInf, kNotANumber, kNotANumber}},
      {"Spence", {0, 1, 2, -1}, {kPi * kPi / 6, 0, -kPi * kPi / 12, kNotANumber}},
      {"Lgamma", {0, -3, 1, kInf}, {kInf, kInf, 0, kInf}},
  };
  for (const auto& c : cases) {
    const Shape shape({static_cast<int64_t>(c.x.size())});
    SCOPED_TRACE(c.op);
    ExpectNear(RunOn(c.op, {MakeTensor(kDouble, shape, c.x)}), MakeTensor(kDouble, shape, c.y),
               1e-5, 1e-12);
    if (std::string(c.op) != "Ndtri" && std::string(c.op) != "Erfinv") continue;
    ExpectNear(RunOn(c.op, {MakeTensor(kFloat, shape, c.x)}), MakeTensor(kFloat, shape, c.y), 1e-5,
               1e-12);
  }
}

// Values by mpmath, to 40 digits.
TEST(SpecialTest, AllDigits) {
  const struct {
    const char* op;
    std::vector<double> x, y;
  } cases[] = {
      {"Dawsn",
       {1e-300, 0.1, 0.92, 3.2, 3.3, 4.4, 4.6, 6.4, 6.6, 12.0, 1000.0, 100000000.0},
       {1.0e-300, 0.099335992397852867, 0.54103493280273151, 0.16546199987867519,
        0.15978858047449506, 0.11683503995329724, 0.11147226853212532, 0.079115935911133728,
        0.076658970228914294, 0.04181287645398826, 0.000500000250000375, 5.0000000000000002e-9}},
      {"FresnelCos",
       {0.1, 1.5, 1.59, 1.61, 2.3, 5.5, 17.3, 100.7, 1234.5, 36973.3},
       {0.099997532627085074, 0.44526117603982154, 0.37202645922223944, 0.35928415347323511,
        0.62656170979195218, 0.47842141492531445, 0.48346826478202107, 0.50219968964337913,
        0.49990132696769769, 0.50000848098644089}},
      {"FresnelSin",
       {0.1, 1.5, 1.59, 1.61, 2.3, 5.5, 17.3, 100.7, 1234.5, 36973.3},
       {0.00052358954761221069, 0.69750496008209301, 0.64642975198598669, 0.6310253086563824,
        0.55315164156070196, 0.55368406277902167, 0.49192297686929311, 0.49772995379529954,
        0.50023821791355491, 0.49999851983386902}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    const Shape shape({static_cast<int64_t>(c.x.size())});
    ExpectNear(RunOn(c.op, {MakeTensor(kDouble, shape, c.x)}), MakeTensor(kDouble, shape, c.y),
               1e-15, 0);
  }
}

// Functions of floats in wide registers beside those of double.
TEST(SpecialTest, FloatsAreNearDoubles) {
  std::vector<double> places, near_one, orders, whole;
  for (int i = 1; i < 700; ++i) {
    places.push_back(std::exp2(-i * 0.17));
    near_one.push_back(1 - std::exp2(-1 - i % 23) * (1 + i % 7) / 8);
    orders.push_back(1 + i * 0.11);
    whole.push_back(i % 34);
  }
  const Shape shape({static_cast<int64_t>(places.size())});
  const auto check = [&](const char* op, const std::vector<std::vector<double>>& inputs) {
    SCOPED_TRACE(op);
    std::vector<Tensor> floats, doubles;
    for (const std::vector<double>& input : inputs) {
      floats.push_back(MakeTensor(kFloat, shape, input));
      Tensor wide = MakeTensor(kDouble, shape, input);
      for (int64_t i = 0; i < shape.num_elements(); ++i) Set(&wide, i, At(floats.back(), i));
      doubles.push_back(wide);
    }
    const Tensor want = RunOn(op, doubles);
    Tensor rounded = Tensor::Uninitialized(kFloat, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) Set(&rounded, i, At(want, i));
    ExpectNear(RunOn(op, floats), rounded, 5e-7, 1e-37);
  };
  check("Ndtri", {places});
  check("Ndtri", {near_one});
  check("Erfinv", {places});
  check("Erfinv", {near_one});
  std::vector<double> large;
  for (const double x : places) large.push_back(1e3 * std::sqrt(x));
  check("Zeta", {orders, large});
  check("Polygamma", {whole, large});
}

struct SpecialPair {
  const char* op;
  double x, y, want;
};

TEST(SpecialTest, OfTwoNumbers) {
  constexpr double kPi = std::numbers::pi;
  const SpecialPair cases[] = {
      {"Atan2", 1, -1, 3 * kPi / 4},
      {"Igamma", 1, 2, 1 - std::exp(-2.0)},
      {"Igamma", -1, 2, kNotANumber},
      {"Igammac", 1, 2, std::exp(-2.0)},
      {"IgammaGradA", 1, 1, -0.4317297},
      {"MulNoNan", kInf, 0, 0},
      {"MulNoNan", 3, 4, 12},
      {"NextAfter", 1, kInf, 1},
      {"Polygamma", 0, 1, -0.57721566},
      {"Polygamma", 1, 1, kPi * kPi / 6},
      {"Polygamma", -1, 1, kNotANumber},
      {"Polygamma", 1.5, 1, kNotANumber},
      {"Polygamma", 1e-20, 1, kNotANumber},
      {"Xdivy", 0, 0, 0},
      {"Xdivy", 3, 4, 0.75},
      {"Xlog1py", 0, -1, 0},
      {"Xlog1py", 2, 1, 2 * std::log(2.0)},
      {"Xlogy", 0, 0, 0},
      {"Xlogy", 2, 3, 2 * std::log(3.0)},
      {"Zeta", 2, 1, kPi * kPi / 6},
      {"Zeta", 1, 2, kInf},
      {"Zeta", 0.5, 2, kNotANumber},
      {"Zeta", 3, 0.25, 64.663869},
      // Sums with as many terms as the second number says would not end.
      {"Zeta", 2, -1e15 - 0.5, kPi * kPi},
      {"Zeta", 2.5, -0.5, kNotANumber},
      {"Zeta", 2, -1, kInf},
      {"Zeta", 3, -1, kNotANumber},
      {"Zeta", 1e30, -1, kInf},
      {"Zeta", 2, -1e-18, 1e36},
      {"Zeta", 2, kInf, 0},
  };
  for (const SpecialPair& c : cases) {
    for (const ElementType type : {kFloat, kDouble}) {
      if (type == kFloat && c.y < -1e6) continue;
      SCOPED_TRACE(::testing::Message() << c.op << " " << c.x << " " << c.y);
      ExpectNear(
          RunOn(c.op, {MakeTensor(type, Shape({1}), {c.x}), MakeTensor(type, Shape(), {c.y})}),
          MakeTensor(type, Shape({1}), {c.want}), 2e-6, 1e-7);
    }
  }
  ExpectEqual(RunOn("NextAfter", {Tensor::Scalar(1.0f), Tensor::Scalar(0.0f)}),
              Tensor::Scalar(std::nextafter(1.0f, 0.0f)));
}

TEST(SpecialTest, ZetaOfNegativeNumbers) {
  for (const double x : {2.0, 3.0, 4.0}) {
    for (const double q : {-0.25, -3.5, -7.75}) {
      double want = 0;
      for (int n = 0; n < 200000; ++n) want += std::pow(q + n, -x);
      const Tensor got = RunOn("Zeta", {Tensor::Scalar(x), Tensor::Scalar(q)});
      EXPECT_NEAR(At(got, 0), want, 1e-5 * std::abs(want)) << x << " " << q;
    }
  }
}

TEST(BitsTest, EveryIntegerType) {
  for (const ElementType type :
       {kInt8, kInt16, kInt32, kInt64, kUint8, kUint16, kUint32, kUint64}) {
    SCOPED_TRACE(ElementTypeName(type));
    const double bits = 8 * static_cast<double>(ElementSize(type));
    const Shape four({4});
    const Tensor x = MakeTensor(type, four, {12, 5, 0, 127});
    const Tensor y = MakeTensor(type, four, {10, 3, 1, 1});
    ExpectEqual(RunOn("BitwiseAnd", {x, y}), MakeTensor(type, four, {8, 1, 0, 1}));
    ExpectEqual(RunOn("BitwiseOr", {x, y}), MakeTensor(type, four, {14, 7, 1, 127}));
    ExpectEqual(RunOn("BitwiseXor", {x, y}), MakeTensor(type, four, {6, 6, 1, 126}));
    ExpectEqual(RunOn("Invert", {RunOn("Invert", {x})}), x);
    ExpectEqual(RunOn("PopulationCount", {x}), MakeTensor(kUint8, four, {2, 2, 0, 7}));
    ExpectEqual(RunOn("PopulationCount", {RunOn("Invert", {x})}),
                MakeTensor(kUint8, four, {bits - 2, bits - 2, bits, bits - 7}));
    const Tensor by = MakeTensor(type, four, {0, 1, 2, 100});
    ExpectEqual(RunOn("RightShift", {x, by}), MakeTensor(type, four, {12, 2, 0, 0}));
    const Tensor one = MakeTensor(type, Shape(), {1});
    const Tensor left = RunOn("LeftShift", {one, by});
    ExpectEqual(RunOn("PopulationCount", {left}), MakeTensor(kUint8, four, {1, 1, 1, 1}));
    EXPECT_EQ(At(left, 2), 4);
    EXPECT_EQ(std::abs(At(left, 3)), std::exp2(bits - 1));
  }
  // The sign stays; a negative count is 0.
  ExpectEqual(RunOn("RightShift",
                    {Tensor::Vector<int8_t>({-128, -3, -3}), Tensor::Vector<int8_t>({100, 1, -1})}),
              Tensor::Vector<int8_t>({-1, -2, -3}));
}

TEST(ComplexPartTest, MakesAndTakesApart) {
  OpTest make("Complex");
  make.Input(Tensor::Vector<double>({3, -1})).Input(Tensor::Scalar(4.0)).Attr("Tout", kComplex128);
  ASSERT_TRUE(make.Run().ok());
  const Tensor z = make.output(0);
  ExpectEqual(z, Tensor::Vector<complex128>({{3, 4}, {-1, 4}}));
  const auto part = [&](const char* name) {
    OpTest op(name);
    op.Input(z).Attr("Tout", kDouble);
    EXPECT_TRUE(op.Run().ok());
    return op.output(0);
  };
  ExpectEqual(part("Real"), Tensor::Vector<double>({3, -1}));
  ExpectEqual(part("Imag"), Tensor::Vector<double>({4, 4}));
  ExpectNear(part("ComplexAbs"), Tensor::Vector<double>({5, std::sqrt(17.0)}));
  ExpectNear(part("Angle"), Tensor::Vector<double>({std::atan2(4, 3), std::atan2(4, -1)}));
  // Of another width than the input there is no kernel.
  OpTest wrong("Real");
  wrong.Input(z).Attr("Tout", kFloat);
  EXPECT_FALSE(wrong.Run().ok());
}

TEST(ApproximateEqualTest, ComparesOneShape) {
  OpTest op("ApproximateEqual");
  op.Input(Tensor::Vector<float>({1, 2, 3, NAN, 5}))
      .Input(Tensor::Vector<float>({1.05f, 2.2f, 3, NAN, 5.125f}))
      .Attr("tolerance", 0.125);
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Vector<bool>({true, false, true, false, true}));
  OpTest wrong("ApproximateEqual");
  wrong.Input(Tensor::Scalar(1.0f)).Input(Tensor::Vector<float>({1}));
  EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
}

// Values with 30 digits: the continued fraction of DLMF 8.17.22 in such arithmetic.
TEST(BetaincTest, LargeNumbers) {
  const double cases[][4] = {{1e8, 1e8, .5, .5},
                             {1e8, 1e8, .50003, 0.80192804534110159},
                             {3e8, 1e8, .75, 0.49999232235223095},
                             {1e8, 1e8, .4999, 0.0023388673096897892},
                             {1e8, 3, .99999998, 0.67667640564117878},
                             {3, 1e8, 3e-8, 0.57680993567629205},
                             {1e12, 9.75, 0.9999999999854481, 0.074514650803071606},
                             {1e6, 1e6, .5001, 0.61135128213767796},
                             {2e4, .25, .9999, 0.017284624606609511},
                             {.125, 1e12, 1e-12, 0.96918040565052383},
                             {1e20, 1, .5, 0},
                             {1e300, 1e300, .75, 1}};
  for (const auto& [a, b, x, expected] : cases) {
    const Tensor got = RunOn("Betainc", {Tensor::Scalar(a), Tensor::Scalar(b), Tensor::Scalar(x)});
    EXPECT_NEAR(At(got, 0), expected, 1e-11) << a << " " << b << " " << x;
    if (a > 1e30) continue;
    // With x as a float I changes as it does for the double that the float is.
    const auto as_float = [](double v) { return static_cast<double>(static_cast<float>(v)); };
    const Tensor rounded = RunOn(
        "Betainc",
        {Tensor::Scalar(as_float(a)), Tensor::Scalar(as_float(b)), Tensor::Scalar(as_float(x))});
    const Tensor floats = RunOn(
        "Betainc", {Tensor::Scalar<float>(a), Tensor::Scalar<float>(b), Tensor::Scalar<float>(x)});
    EXPECT_NEAR(At(floats, 0), At(rounded, 0), 1e-7) << a << " " << b << " " << x;
  }
}

TEST(BetaincTest, ScalarsFitAnyShape) {
  // I_x(1, b) = 1 - (1 - x)^b.
  for (const ElementType type : {kFloat, kDouble}) {
    ExpectNear(
        RunOn("Betainc", {MakeTensor(type, Shape(), {1}), MakeTensor(type, Shape({2}), {2, 3}),
                          MakeTensor(type, Shape(), {0.5})}),
        MakeTensor(type, Shape({2}), {0.75, 0.875}));
    ExpectNear(RunOn("Betainc", {MakeTensor(type, Shape(), {-1}), MakeTensor(type, Shape(), {2}),
                                 MakeTensor(type, Shape(), {0.5})}),
               MakeTensor(type, Shape(), {kNotANumber}));
  }
  OpTest wrong("Betainc");
  wrong.Input(Tensor::Vector<float>({1, 2}))
      .Input(Tensor::Vector<float>({1}))
      .Input(Tensor::Scalar(0.5f));
  EXPECT_EQ(wrong.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
