// Reductions, scans, sequences and segments against naive loops in double precision.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using enum ElementType;

struct ReduceCase {
  const char* op;
  double start;
  double (*join)(double, double);
};
const ReduceCase kCases[] = {
    {"Sum", 0, [](double a, double b) { return a + b; }},
    {"Mean", 0, [](double a, double b) { return a + b; }},
    {"Prod", 1, [](double a, double b) { return a * b; }},
    {"Max", -std::numeric_limits<double>::infinity(),
     [](double a, double b) { return std::max(a, b); }},
    {"Min", std::numeric_limits<double>::infinity(),
     [](double a, double b) { return std::min(a, b); }},
};

// Reduces the dimensions whose bit is set in `axes`.
Tensor Naive(const ReduceCase& c, const Tensor& x, int axes, bool keep_dims) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.rank(); ++d) {
    if (!((axes >> d) & 1)) {
      sizes.push_back(x.dim(d));
    } else if (keep_dims) {
      sizes.push_back(1);
    }
  }
  const Shape shape{absl::MakeConstSpan(sizes)};
  std::vector<double> acc(shape.num_elements(), c.start), magnitude(acc.size());
  double count =
      acc.empty() ? 1 : static_cast<double>(x.num_elements()) / static_cast<double>(acc.size());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t index = 0, stride = 1, rest = i;
    for (int d = x.rank() - 1; d >= 0; --d) {
      const int64_t at = rest % x.dim(d);
      rest /= x.dim(d);
      if ((axes >> d) & 1) continue;
      index += at * stride;
      stride *= x.dim(d);
    }
    acc[index] = c.join(acc[index], At(x, i));
  }
  if (std::string(c.op) == "Mean") {
    for (double& v : acc) {
      v /= count;
      if (!IsFloating(x.type())) v = std::trunc(v);
    }
  }
  return MakeTensor(x.type(), shape, acc);
}

Tensor AxesTensor(int axes, int rank) {
  std::vector<int32_t> list;
  for (int d = 0; d < rank; ++d) {
    if ((axes >> d) & 1) list.push_back(d % 2 == 0 ? d : d - rank);
  }
  return Tensor::Vector<int32_t>(absl::MakeConstSpan(list));
}

TEST(ReduceTest, AllAxesAndTypes) {
  const Shape shapes[] = {Shape({5}),          Shape({4, 3}),  Shape({3, 1, 5}),
                          Shape({2, 3, 4, 2}), Shape({70, 6}), Shape({3, 200})};
  for (const ReduceCase& c : kCases) {
    for (ElementType type : {kFloat, kDouble, kHalf, kBfloat16, kInt8, kInt32, kInt64, kUint16}) {
      const bool prod = std::string(c.op) == "Prod";
      for (const Shape& shape : shapes) {
        if (prod && shape.num_elements() > 60) continue;
        // Values whose sums and products are exact or nearly so.
        const bool floating = IsFloating(type);
        const Tensor x = prod ? RandomTensor(type, shape, floating ? 0.9 : 1, floating ? 1.1 : 1)
                              : RandomTensor(type, shape,
                                             type == kUint16 ? 0
                                             : floating      ? 0.5
                                                             : -1,
                                             1);
        for (int axes = 0; axes < (1 << shape.rank()); ++axes) {
          for (bool keep_dims : {false, true}) {
            SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type) << " "
                                              << shape.ToString() << " axes " << axes);
            OpTest op(c.op);
            op.Input(x).Input(AxesTensor(axes, shape.rank())).Attr("keep_dims", keep_dims);
            ASSERT_TRUE(op.Run().ok());
            const double tolerance = type == kHalf ? 2e-3 : type == kBfloat16 ? 2e-2 : 1e-5;
            ExpectNear(op.output(0), Naive(c, x, axes, keep_dims), floating ? tolerance : 0,
                       floating ? tolerance / 10 : 0);
          }
        }
      }
    }
  }
}

TEST(ReduceTest, LargeTensorsGiveTheSameBitsOnAnyNumberOfThreads) {
  const Shape shapes[] = {Shape({300000}),    Shape({20000, 6}),   Shape({6, 50000}),
                          Shape({100, 3000}), Shape({40, 5, 700}), Shape({3000, 40})};
  for (const char* name : {"Sum", "Mean", "Max"}) {
    for (const Shape& shape : shapes) {
      for (ElementType type : {kFloat, kHalf}) {
        const Tensor x = RandomTensor(type, shape, -1, 1);
        for (int axes = 1; axes < (1 << shape.rank()); ++axes) {
          SCOPED_TRACE(::testing::Message() << name << " " << shape.ToString() << " axes " << axes);
          OpTest one(name, 1), four(name, 4);
          for (OpTest* op : {&one, &four}) {
            op->Input(x).Input(AxesTensor(axes, shape.rank()));
            ASSERT_TRUE(op->Run().ok());
          }
          const Tensor& a = one.output(0);
          ASSERT_EQ(std::memcmp(a.raw_data(), four.output(0).raw_data(), a.bytes()), 0);
          const ReduceCase& c = kCases[name[0] == 'S' ? 0 : name[1] == 'e' ? 1 : 3];
          ExpectNear(a, Naive(c, x, axes, false), type == kHalf ? 1e-3 : 1e-5,
                     type == kHalf ? 1e-3 : 1e-4);
        }
      }
    }
  }
}

TEST(ReduceTest, EmptyInputs) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Uninitialized(kFloat, Shape({0, 2}));
  const std::pair<const char*, float> cases[] = {
      {"Sum", 0}, {"Prod", 1}, {"Max", -inf}, {"Min", inf}, {"Mean", std::nanf("")}};
  for (const auto& [name, value] : cases) {
    OpTest op(name);
    op.Input(x).Input(Tensor::Vector<int32_t>({0}));
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Tensor::Vector<float>({value, value}));
    OpTest other(name);
    other.Input(x).Input(Tensor::Scalar<int32_t>(1));
    ASSERT_TRUE(other.Run().ok());
    EXPECT_EQ(other.output(0).shape().ToString(), "[0]");
  }
  OpTest outer("Sum");  // The empty dimension outside another reduced one.
  outer.Input(Tensor::Uninitialized(kFloat, Shape({0, 2, 3})))
      .Input(Tensor::Vector<int32_t>({0, 2}));
  ASSERT_TRUE(outer.Run().ok());
  ExpectEqual(outer.output(0), Tensor::Vector<float>({0, 0}));
}

TEST(ReduceTest, SizesBesideAnEmptyDimensionMayHaveAnyProduct) {
  const int64_t large = (int64_t{1} << 40) + 1;
  const auto shape = Shape::Create({large, large, 0});
  if (!shape.ok()) return;
  const Tensor x(kFloat, *shape, nullptr, nullptr);
  for (int axes = 0; axes < 8; ++axes) {
    for (const char* name : {"Sum", "Mean"}) {
      OpTest op(name);
      op.Input(x).Input(AxesTensor(axes, 3));
      const bool kept = (axes & 3) == 0 && (axes & 4) != 0;  // large x large results
      EXPECT_EQ(op.Run().ok(), !kept && axes != 5 && axes != 6) << axes;
    }
  }
}

TEST(ReduceTest, RefusesBadAxes) {
  for (const Tensor& axes : {Tensor::Vector<int32_t>({0, 0}), Tensor::Vector<int32_t>({0, -2}),
                             Tensor::Vector<int32_t>({2}), Tensor::Vector<int32_t>({-3})}) {
    OpTest op("Sum");
    op.Input(RandomTensor(kFloat, Shape({2, 3}), 0, 1)).Input(axes);
    EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Rows and columns long and short, beside sums and products of double, one number after another.
template <typename T>
void TestComplex(double tolerance) {
  for (const char* name : {"Sum", "Prod", "Mean"}) {
    const bool product = std::string(name) == "Prod";
    for (const auto& [rows, columns] :
         {std::pair(3, 31), {3, 32}, {2, 64}, {5, 65}, {2, 1000}, {257, 3}}) {
      std::vector<T> x;
      for (int i = 0; i < rows * columns; ++i) {
        // Products of these stay near 1 in size.
        x.push_back(static_cast<T>(std::polar(product ? 1 + 0.1 * std::sin(i) : 1.0, 0.7 * i)));
      }
      for (const int axis : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << name << " " << rows << " " << columns << " " << axis);
        OpTest op(name);
        op.Input(Tensor::FromValues<T>(x, Shape({rows, columns})).value());
        op.Input(Tensor::Scalar<int32_t>(axis));
        ASSERT_TRUE(op.Run().ok());
        const int kept = axis == 0 ? columns : rows, reduced = axis == 0 ? rows : columns;
        for (int k = 0; k < kept; ++k) {
          std::complex<double> want(product ? 1 : 0);
          for (int r = 0; r < reduced; ++r) {
            const std::complex<double> value(axis == 0 ? x[r * columns + k] : x[k * columns + r]);
            want = product ? want * value : want + value;
          }
          if (std::string(name) == "Mean") want /= reduced;
          const std::complex<double> got(op.output(0).template unchecked_data<T>()[k]);
          EXPECT_LE(std::abs(got - want), tolerance * std::max(1.0, std::abs(want)));
        }
      }
    }
  }
}
TEST(ReduceTest, ComplexNumbers) {
  TestComplex<complex64>(2e-5);
  TestComplex<complex128>(1e-12);
}

// As TensorFlow 2.21 gives it: real means of nothing are NaN, complex ones 0.
TEST(ReduceTest, ComplexMeansOfNothingAreZero) {
  OpTest op("Mean");
  op.Input(Tensor::FromValues<complex64>({}, Shape({2, 0})).value())
      .Input(Tensor::Scalar<int32_t>(1));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Vector<complex64>({{0, 0}, {0, 0}}));
}

TEST(ReduceTest, NanAndBooleansAndIntegerMeans) {
  const float nan = std::nanf("");
  for (const char* name : {"Max", "Min"}) {
    for (int64_t n : {3, 8, 20, 33, 100, 5000}) {
      Tensor x = RandomTensor(kFloat, Shape({n}), 0, 1);
      Set(&x, n / 2, nan);
      OpTest op(name);
      op.Input(x).Input(Tensor::Scalar<int32_t>(0));
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(op.output(0), Tensor::Scalar(nan));
    }
  }
  const Tensor flags = Tensor::FromValues<bool>({true, true, true, false}, Shape({2, 2})).value();
  OpTest all("All"), any("Any");
  for (OpTest* op : {&all, &any}) {
    op->Input(flags).Input(Tensor::Scalar<int32_t>(1));
    ASSERT_TRUE(op->Run().ok());
  }
  ExpectEqual(all.output(0), Tensor::Vector<bool>({true, false}));
  ExpectEqual(any.output(0), Tensor::Vector<bool>({true, true}));
  OpTest mean("Mean");
  mean.Input(Tensor::Vector<int8_t>({127, 127, 126})).Input(Tensor::Scalar<int32_t>(0));
  ASSERT_TRUE(mean.Run().ok());
  ExpectEqual(mean.output(0), Tensor::Scalar<int8_t>(126));
  OpTest loss("L2Loss");
  loss.Input(Tensor::Vector<half>({half(1.f), half(2.f), half(3.f)}));
  ASSERT_TRUE(loss.Run().ok());
  ExpectEqual(loss.output(0), Tensor::Scalar(half(7.f)));
}

TEST(ReduceTest, RowsOfAnyLength) {
  for (const ReduceCase& c : kCases) {
    for (ElementType type : {kFloat, kDouble, kHalf, kInt8, kInt32, kInt64}) {
      const bool floating = IsFloating(type), prod = std::string(c.op) == "Prod";
      for (int64_t n = 1; n < 70; ++n) {
        SCOPED_TRACE(::testing::Message() << c.op << " " << ElementTypeName(type) << " " << n);
        const Tensor x = RandomTensor(type, Shape({3, n}), prod ? floating ? 0.95 : 1 : -1,
                                      prod && floating ? 1.05 : 1, static_cast<uint32_t>(n));
        OpTest op(c.op);
        op.Input(x).Input(Tensor::Scalar<int32_t>(1));
        ASSERT_TRUE(op.Run().ok());
        const bool exact = !floating || c.op == std::string("Max") || c.op == std::string("Min");
        const double tolerance = type == kHalf ? 4e-3 : exact ? 0 : 1e-5;
        ExpectNear(op.output(0), Naive(c, x, 2, false), tolerance, tolerance);
      }
    }
  }
}

TEST(ReduceTest, LongSumsStayAccurate) {
  const Tensor x = RandomTensor(kFloat, Shape({4000000}), 0, 1);
  double want = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) want += x.unchecked_data<float>()[i];
  OpTest op("Sum");
  op.Input(x).Input(Tensor::Scalar<int32_t>(0));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_NEAR(op.output(0).unchecked_scalar<float>() / want, 1, 1e-6);
}

TEST(ArgTest, TiesNanAndAxes) {
  const float nan = std::nanf("");
  auto run = [](const char* name, const Tensor& x, int axis) {
    OpTest op(name);
    op.Input(x).Input(Tensor::Scalar<int32_t>(axis)).Attr("output_type", kInt32);
    const absl::Status status = op.Run();
    EXPECT_TRUE(status.ok()) << status;
    return op.output(0);
  };
  const Tensor x = Tensor::FromValues<float>({nan, 1, 5, 5, 2, 7, -1, 5, 0}, Shape({3, 3})).value();
  ExpectEqual(run("ArgMax", x, 1), Tensor::Vector<int32_t>({2, 2, 1}));
  ExpectEqual(run("ArgMax", x, -2), Tensor::Vector<int32_t>({1, 2, 1}));
  ExpectEqual(run("ArgMin", x, 1), Tensor::Vector<int32_t>({1, 1, 0}));
  ExpectEqual(run("ArgMin", x, 0), Tensor::Vector<int32_t>({2, 0, 2}));
  OpTest empty("ArgMax");
  empty.Input(Tensor::Uninitialized(kFloat, Shape({0, 3}))).Input(Tensor::Scalar<int32_t>(0));
  EXPECT_EQ(empty.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ScanTest, ExclusiveAndReverse) {
  const Tensor x = MakeTensor(kInt32, Shape({2, 3}), {1, 2, 3, 4, 5, 6});
  struct Case {
    const char* op;
    int axis;
    bool exclusive, reverse;
    std::vector<double> want;
  };
  for (const Case& c : std::vector<Case>{{"Cumsum", 1, false, false, {1, 3, 6, 4, 9, 15}},
                                         {"Cumsum", 1, true, false, {0, 1, 3, 0, 4, 9}},
                                         {"Cumsum", -1, false, true, {6, 5, 3, 15, 11, 6}},
                                         {"Cumsum", 1, true, true, {5, 3, 0, 11, 6, 0}},
                                         {"Cumsum", 0, false, false, {1, 2, 3, 5, 7, 9}},
                                         {"Cumprod", 0, true, true, {4, 5, 6, 1, 1, 1}},
                                         {"Cumprod", 1, false, false, {1, 2, 6, 4, 20, 120}}}) {
    OpTest op(c.op);
    op.Input(x).Input(Tensor::Scalar<int32_t>(c.axis));
    op.Attr("exclusive", c.exclusive).Attr("reverse", c.reverse);
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), MakeTensor(kInt32, Shape({2, 3}), c.want));
  }
}

TEST(SequenceTest, RangeAndLinSpace) {
  auto range = [](Tensor start, Tensor limit, Tensor delta, Tensor* out) {
    OpTest op("Range");
    op.Input(std::move(start)).Input(std::move(limit)).Input(std::move(delta));
    const absl::Status status = op.Run();
    if (status.ok()) *out = op.output(0);
    return status.code();
  };
  Tensor out;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ASSERT_EQ(range(Tensor::Scalar(3), Tensor::Scalar(-4), Tensor::Scalar(-3), &out),
            absl::StatusCode::kOk);
  ExpectEqual(out, Tensor::Vector<int32_t>({3, 0, -3}));
  const int64_t low = std::numeric_limits<int64_t>::min(),
                high = std::numeric_limits<int64_t>::max();
  ASSERT_EQ(
      range(Tensor::Scalar(low), Tensor::Scalar(high), Tensor::Scalar(int64_t{1} << 62), &out),
      absl::StatusCode::kOk);
  EXPECT_EQ(out.num_elements(), 4);
  EXPECT_EQ(range(Tensor::Scalar(0), Tensor::Scalar(1), Tensor::Scalar(0), &out), invalid);
  EXPECT_EQ(range(Tensor::Scalar(5), Tensor::Scalar(1), Tensor::Scalar(1), &out), invalid);
  EXPECT_EQ(range(Tensor::Scalar(0.), Tensor::Scalar(1e300), Tensor::Scalar(1e-300), &out),
            invalid);
  EXPECT_NE(range(Tensor::Scalar(low), Tensor::Scalar(high), Tensor::Scalar(int64_t{1}), &out),
            absl::StatusCode::kOk);
  OpTest space("LinSpace");
  space.Input(Tensor::Scalar(1.f)).Input(Tensor::Scalar(2.f)).Input(Tensor::Scalar<int32_t>(5));
  ASSERT_TRUE(space.Run().ok());
  ExpectEqual(space.output(0), Tensor::Vector<float>({1, 1.25f, 1.5f, 1.75f, 2}));
  for (const int32_t n : {2, 3, 17, 67, (1 << 20) + 3}) {
    OpTest halves("LinSpace");
    halves.Input(Tensor::Scalar(-3.0))
        .Input(Tensor::Scalar(n / 2.0 - 3.5))
        .Input(Tensor::Scalar(n));
    ASSERT_TRUE(halves.Run().ok());
    ASSERT_EQ(range(Tensor::Scalar(7), Tensor::Scalar(7 - 3 * n), Tensor::Scalar(-3), &out),
              absl::StatusCode::kOk);
    ASSERT_EQ(out.num_elements(), n);
    for (int32_t i = 0; i < n; ++i) {
      ASSERT_EQ(halves.output(0).unchecked_data<double>()[i], i / 2.0 - 3);
      ASSERT_EQ(out.unchecked_data<int32_t>()[i], 7 - 3 * i);
    }
  }
}

TEST(SegmentTest, UnsortedSums) {
  const Tensor data = MakeTensor(kFloat, Shape({4, 2}), {1, 2, 3, 4, 5, 6, 7, 8});
  auto run = [&](Tensor ids, int segments, Tensor* out) {
    OpTest op("UnsortedSegmentSum");
    op.Input(data).Input(std::move(ids)).Input(Tensor::Scalar<int32_t>(segments));
    const absl::Status status = op.Run();
    if (status.ok() && out != nullptr) *out = op.output(0);
    return status.code();
  };
  Tensor out;
  ASSERT_EQ(run(Tensor::Vector<int64_t>({2, 0, -1, 2}), 3, &out), absl::StatusCode::kOk);
  ExpectEqual(out, MakeTensor(kFloat, Shape({3, 2}), {3, 4, 0, 0, 8, 10}));
  EXPECT_EQ(run(Tensor::Vector<int32_t>({0, 3, 0, 0}), 3, nullptr),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Vector<int32_t>({0, 0}), 3, nullptr), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Vector<int32_t>({0, 0, 0, 0}), -1, nullptr),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
