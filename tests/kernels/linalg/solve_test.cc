// Decompositions and linear systems: what they solve, multiplied out in double precision.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;
using Complex = std::complex<double>;
using Matrix = std::vector<Complex>;  // Row-major.

const ElementType kTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
                              ElementType::kComplex128};

bool Narrow(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kComplex64;
}

Tensor Numbers(ElementType type, const Shape& shape, uint32_t seed) {
  const Tensor re = RandomTensor(ElementType::kDouble, shape, -1, 1, seed);
  const Tensor im = RandomTensor(ElementType::kDouble, shape, -1, 1, seed + 1000);
  Tensor out = Tensor::Uninitialized(type, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (type == ElementType::kComplex64) {
      out.mutable_data<complex64>()[i] = complex64(Complex(At(re, i), At(im, i)));
    } else if (type == ElementType::kComplex128) {
      out.mutable_data<complex128>()[i] = Complex(At(re, i), At(im, i));
    } else {
      Set(&out, i, At(re, i));
    }
  }
  return out;
}

/// Matrix `i` of the batch, [rows, columns]; its conjugate transpose if `adjoint`.
Matrix Get(const Tensor& t, int64_t i, int64_t rows, int64_t columns, bool adjoint = false) {
  Matrix m(rows * columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = i * rows * columns + r * columns + c;
      const Complex x = t.type() == ElementType::kComplex64
                            ? Complex(t.unchecked_data<complex64>()[at])
                        : t.type() == ElementType::kComplex128 ? t.unchecked_data<complex128>()[at]
                                                               : Complex(At(t, at));
      m[adjoint ? c * rows + r : r * columns + c] = adjoint ? std::conj(x) : x;
    }
  }
  return m;
}

Matrix Times(const Matrix& a, const Matrix& b, int64_t m, int64_t k, int64_t n) {
  Matrix c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

void ExpectClose(const Matrix& got, const Matrix& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want[i]), tolerance * std::max(1.0, std::abs(want[i])))
        << "element " << i << ": " << got[i] << " against " << want[i];
  }
}

void KeepTriangle(Matrix* m, int64_t n, bool lower) {
  for (int64_t i = 0; i < n * n; ++i) {
    if (lower ? i % n > i / n : i % n < i / n) (*m)[i] = 0;
  }
}

TEST(Cholesky, FactorsAreTriangularAndMultiplyToTheMatrix) {
  for (const ElementType type : kTypes) {
    for (const int64_t n : {1, 3, 40}) {
      SCOPED_TRACE(ElementTypeName(type));
      const Tensor x = Numbers(type, Shape({2, n, n}), 7);
      Tensor input = Tensor::Uninitialized(type, Shape({2, n, n}));
      for (int64_t i = 0; i < 2; ++i) {
        Matrix square = Times(Get(x, i, n, n), Get(x, i, n, n, true), n, n, n);
        for (int64_t j = 0; j < n * n; ++j) {
          // What is above the diagonal is not read.
          const Complex value = j % n > j / n ? Complex(99) : square[j] + (j % (n + 1) ? 0.0 : n);
          const int64_t at = i * n * n + j;
          if (type == ElementType::kComplex64) {
            input.mutable_data<complex64>()[at] = complex64(value);
          } else if (type == ElementType::kComplex128) {
            input.mutable_data<complex128>()[at] = value;
          } else {
            Set(&input, at, value.real());
          }
        }
      }
      OpTest op("Cholesky", 2);
      op.Input(input);
      ASSERT_TRUE(op.Run().ok());
      for (int64_t i = 0; i < 2; ++i) {
        Matrix want = Get(input, i, n, n);
        KeepTriangle(&want, n, true);
        const Matrix l = Get(op.output(0), i, n, n);
        Matrix triangle = l;
        KeepTriangle(&triangle, n, true);
        EXPECT_EQ(l, triangle);
        Matrix product = Times(l, Get(op.output(0), i, n, n, true), n, n, n);
        KeepTriangle(&product, n, true);
        ExpectClose(product, want, Narrow(type) ? 1e-5 : 1e-13);
      }
    }
  }
}

TEST(Cholesky, GivesNaNsWhereThereIsNoFactor) {
  OpTest op("Cholesky");
  op.Input(Tensor::FromValues<float>({1, 0, 0, 1, 1, 2, 2, 1}, Shape({2, 2, 2})).value());
  ASSERT_TRUE(op.Run().ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectEqual(op.output(0),
              Tensor::FromValues<float>({1, 0, 0, 1, nan, 0, nan, nan}, Shape({2, 2, 2})).value());
}

TEST(MatrixInverse, TimesTheMatrixIsTheIdentity) {
  for (const ElementType type : kTypes) {
    for (const bool adjoint : {false, true}) {
      SCOPED_TRACE(ElementTypeName(type));
      constexpr int64_t n = 9;
      const Tensor input = Numbers(type, Shape({3, n, n}), 3);
      OpTest op("MatrixInverse", 2);
      op.Attr("adjoint", adjoint).Input(input);
      ASSERT_TRUE(op.Run().ok());
      Matrix identity(n * n);
      for (int64_t i = 0; i < n; ++i) identity[i * (n + 1)] = 1;
      for (int64_t i = 0; i < 3; ++i) {
        ExpectClose(Times(Get(op.output(0), i, n, n), Get(input, i, n, n, adjoint), n, n, n),
                    identity, Narrow(type) ? 1e-4 : 1e-12);
      }
    }
  }
  OpTest half_op("MatrixInverse");
  half_op.Input(MakeTensor(ElementType::kHalf, Shape({2, 2}), {2, 0, 0, 4}));
  ASSERT_TRUE(half_op.Run().ok());
  ExpectEqual(half_op.output(0), MakeTensor(ElementType::kHalf, Shape({2, 2}), {0.5, 0, 0, 0.25}));
}

TEST(MatrixSolve, SolutionsFitTheirSystems) {
  for (const ElementType type : kTypes) {
    for (const bool adjoint : {false, true}) {
      SCOPED_TRACE(ElementTypeName(type));
      constexpr int64_t n = 7, k = 3;
      const Tensor a = Numbers(type, Shape({2, n, n}), 3), b = Numbers(type, Shape({2, n, k}), 4);
      OpTest op("MatrixSolve");
      op.Attr("adjoint", adjoint).Input(a).Input(b);
      ASSERT_TRUE(op.Run().ok());
      for (int64_t i = 0; i < 2; ++i) {
        ExpectClose(Times(Get(a, i, n, n, adjoint), Get(op.output(0), i, n, k), n, n, k),
                    Get(b, i, n, k), Narrow(type) ? 1e-4 : 1e-12);
      }
    }
  }
}

TEST(MatrixSolve, SingularMatricesAreNamed) {
  const Tensor batch =
      Tensor::FromValues<double>({1, 0, 0, 1, 1, 2, 2, 4}, Shape({2, 2, 2})).value();
  OpTest inverse("MatrixInverse"), solve("MatrixSolve");
  inverse.Input(batch);
  solve.Input(batch).Input(batch);
  for (OpTest* op : {&inverse, &solve}) {
    const absl::Status status = op->Run();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("number 1 of the batch"), std::string::npos) << status;
  }
  OpTest nan("MatrixInverse");
  nan.Input(Tensor::FromValues<double>({std::nan(""), 1, 1, 1}, Shape({2, 2})).value());
  EXPECT_EQ(nan.Run().code(), StatusCode::kInvalidArgument);
  // As in TensorFlow, a NaN elsewhere makes a result of NaNs.
  OpTest later("MatrixInverse");
  later.Input(Tensor::FromValues<double>({1, 1, 1, std::nan("")}, Shape({2, 2})).value());
  ASSERT_TRUE(later.Run().ok());
  for (double x : later.output(0).unchecked_values<double>()) EXPECT_TRUE(std::isnan(x));
}

/// The matrix whose first row is row `order[0]` of m [n, n].
Matrix Reordered(const Matrix& m, int64_t n, const std::vector<int64_t>& order) {
  Matrix result;
  for (const int64_t row : order) {
    result.insert(result.end(), m.begin() + row * n, m.begin() + (row + 1) * n);
  }
  return result;
}

// Those above are a panel or less; these are panels, and what they bring up to date.
TEST(Panels, SystemsAndInverses) {
  for (const ElementType type : kTypes) {
    for (const int64_t n : {16, 17, 70}) {
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", n));
      const Tensor a = Numbers(type, Shape({n, n}), 3), b = Numbers(type, Shape({n, 5}), 4);
      OpTest solve("MatrixSolve"), inverse("MatrixInverse");
      ASSERT_TRUE(solve.Attr("adjoint", n == 17).Input(a).Input(b).Run().ok());
      ASSERT_TRUE(inverse.Input(a).Run().ok());
      const double tolerance = Narrow(type) ? 5e-3 : 1e-10;
      ExpectClose(Times(Get(a, 0, n, n, n == 17), Get(solve.output(0), 0, n, 5), n, n, 5),
                  Get(b, 0, n, 5), tolerance);
      Matrix identity(n * n);
      for (int64_t i = 0; i < n; ++i) identity[i * (n + 1)] = 1;
      ExpectClose(Times(Get(inverse.output(0), 0, n, n), Get(a, 0, n, n), n, n, n), identity,
                  tolerance);
    }
  }
}

TEST(Panels, LuMultipliesToTheReorderedMatrix) {
  for (const ElementType type : kTypes) {
    for (const int64_t n : {1, 16, 45, 140, 300}) {
      if (n == 300 && type != ElementType::kComplex64) continue;  // Wider panels, and slow here.
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", n));
      const Tensor a = Numbers(type, Shape({n, n}), 5);
      OpTest op("Lu");
      ASSERT_TRUE(op.Attr("output_idx_type", ElementType::kInt64).Input(a).Run().ok());
      Matrix lower = Get(op.output(0), 0, n, n), upper = lower;
      KeepTriangle(&lower, n, true);
      KeepTriangle(&upper, n, false);
      for (int64_t i = 0; i < n; ++i) lower[i * (n + 1)] = 1;
      for (const Complex& x : lower) EXPECT_LE(std::abs(x), 1 + 1e-6);  // Pivots are the largest.
      const auto order = op.output(1).unchecked_values<int64_t>();
      ExpectClose(Times(lower, upper, n, n, n),
                  Reordered(Get(a, 0, n, n), n, {order.begin(), order.end()}),
                  Narrow(type) ? 1e-4 : 1e-12);
    }
  }
}

TEST(Panels, QrIsOrthogonalAndMultipliesToTheMatrix) {
  for (const ElementType type : kTypes) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>(16, 16), {17, 16}, {60, 35}, {35, 60}}) {
      for (const bool full : {false, true}) {
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", m, " x ", n, full ? " full" : ""));
        const Tensor a = Numbers(type, Shape({m, n}), 6);
        OpTest op("Qr");
        ASSERT_TRUE(op.Attr("full_matrices", full).Input(a).Run().ok());
        const int64_t p = full ? m : std::min(m, n);
        ASSERT_EQ(op.output(0).shape(), Shape({m, p}));
        ASSERT_EQ(op.output(1).shape(), Shape({p, n}));
        const Matrix q = Get(op.output(0), 0, m, p), r = Get(op.output(1), 0, p, n);
        const double tolerance = Narrow(type) ? 1e-5 : 1e-13;
        ExpectClose(Times(q, r, m, p, n), Get(a, 0, m, n), 10 * tolerance);
        Matrix identity(p * p);
        for (int64_t i = 0; i < p; ++i) identity[i * (p + 1)] = 1;
        ExpectClose(Times(Get(op.output(0), 0, m, p, true), q, p, m, p), identity, tolerance);
        for (int64_t i = 0; i < p; ++i) {
          for (int64_t j = 0; j < std::min(i, n); ++j) EXPECT_EQ(r[i * n + j], Complex(0));
        }
      }
    }
  }
}

// A scaled permutation has the product of the scales as its determinant, but for the sign.
TEST(Panels, DeterminantsCountExchanges) {
  for (const ElementType type : kTypes) {
    for (const int64_t n : {16, 40, 70}) {
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", n));
      Tensor a = Tensor::Uninitialized(type, Shape({n, n}));
      for (int64_t i = 0; i < n * n; ++i) {
        const int64_t row = i / n;
        const double x = i % n == row * 11 % n ? 1 + 0.1 * static_cast<double>(row % 5) : 0;
        if (type == ElementType::kComplex64) {
          a.mutable_data<complex64>()[i] = complex64(static_cast<float>(x));
        } else if (type == ElementType::kComplex128) {
          a.mutable_data<complex128>()[i] = complex128(x);
        } else {
          Set(&a, i, x);
        }
      }
      double logarithm = 0;
      int exchanges = 0;
      for (int64_t i = 0; i < n; ++i) {
        logarithm += std::log(1 + 0.1 * static_cast<double>(i % 5));
        for (int64_t k = 0; k < i; ++k) exchanges += k * 11 % n > i * 11 % n ? 1 : 0;
      }
      OpTest op("LogMatrixDeterminant");
      ASSERT_TRUE(op.Input(a).Run().ok());
      const double tolerance = Narrow(type) ? 1e-4 : 1e-12;
      ExpectClose(Get(op.output(0), 0, 1, 1), {Complex(exchanges % 2 == 0 ? 1 : -1)}, tolerance);
      ExpectClose(Get(op.output(1), 0, 1, 1), {Complex(logarithm)}, tolerance);
    }
  }
}

TEST(Panels, LeastSquares) {
  for (const ElementType type : kTypes) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>(60, 35), {35, 60}}) {
      SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", m, " x ", n));
      const Tensor a = Numbers(type, Shape({m, n}), 7), b = Numbers(type, Shape({m, 3}), 8);
      OpTest op("MatrixSolveLs");
      op.Attr("fast", true).Input(a).Input(b).Input(Tensor::Scalar<double>(0));
      ASSERT_TRUE(op.Run().ok());
      // What is left is orthogonal to the columns; nothing is left if there are enough of them.
      Matrix rest = Times(Get(a, 0, m, n), Get(op.output(0), 0, n, 3), m, n, 3);
      const Matrix want = Get(b, 0, m, 3);
      for (size_t i = 0; i < rest.size(); ++i) rest[i] -= want[i];
      if (m > n) rest = Times(Get(a, 0, m, n, true), rest, n, m, 3);
      ExpectClose(rest, Matrix(rest.size()), Narrow(type) ? 5e-3 : 1e-11);
    }
  }
}

TEST(MatrixTriangularSolve, ReadsOneTriangleAndBroadcastsBatches) {
  for (const ElementType type : kTypes) {
    for (const bool lower : {false, true}) {
      for (const bool adjoint : {false, true}) {
        SCOPED_TRACE(ElementTypeName(type));
        constexpr int64_t n = 5, k = 2;
        Tensor a = Numbers(type, Shape({2, 1, n, n}), 3);
        const Tensor b = Numbers(type, Shape({3, n, k}), 4);
        OpTest op("MatrixTriangularSolve");
        op.Attr("lower", lower).Attr("adjoint", adjoint).Input(a).Input(b);
        ASSERT_TRUE(op.Run().ok());
        ASSERT_EQ(op.output(0).shape(), Shape({2, 3, n, k}));
        for (int64_t i = 0; i < 6; ++i) {
          Matrix triangle = Get(a, i / 3, n, n, adjoint);
          KeepTriangle(&triangle, n, lower != adjoint);
          const Matrix x = Get(op.output(0), i, n, k);
          double largest = 1;
          for (const Complex& e : x) largest = std::max(largest, std::abs(e));
          ExpectClose(Times(triangle, x, n, n, k), Get(b, i % 3, n, k),
                      (Narrow(type) ? 1e-5 : 1e-13) * largest);
        }
      }
    }
  }
}

TEST(Systems, ShapesThatDoNotFit) {
  const auto numbers = [](std::initializer_list<int64_t> dims) {
    return Numbers(ElementType::kFloat, Shape(dims), 1);
  };
  const auto run = [](const char* name, const Tensor& a, const Tensor& b) {
    OpTest op(name);
    op.Input(a).Input(b);
    return op.Run().code();
  };
  for (const char* op : {"MatrixSolve", "MatrixTriangularSolve"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(run(op, numbers({2, 3}), numbers({2, 1})), StatusCode::kInvalidArgument);
    EXPECT_EQ(run(op, numbers({2, 2}), numbers({3, 1})), StatusCode::kInvalidArgument);
    EXPECT_EQ(run(op, numbers({2, 2}), numbers({2})), StatusCode::kInvalidArgument);
    EXPECT_EQ(run(op, numbers({2}), numbers({2, 2})), StatusCode::kInvalidArgument);
    EXPECT_EQ(run(op, numbers({2, 2, 2}), numbers({3, 2, 1})), StatusCode::kInvalidArgument);
    EXPECT_EQ(run(op, numbers({0, 0}), numbers({0, 1})), StatusCode::kOk);
    EXPECT_EQ(run(op, numbers({2, 2}), numbers({2, 0})), StatusCode::kOk);
    EXPECT_EQ(run(op, numbers({0, 2, 2}), numbers({0, 2, 1})), StatusCode::kOk);
  }
  EXPECT_EQ(run("MatrixSolve", numbers({2, 2}), numbers({3, 2, 1})), StatusCode::kInvalidArgument);
  for (const char* name : {"Cholesky", "MatrixInverse"}) {
    for (const Tensor& input : {numbers({3}), numbers({2, 3}), numbers({})}) {
      OpTest op(name);
      op.Input(input);
      EXPECT_EQ(op.Run().code(), StatusCode::kInvalidArgument);
    }
    OpTest empty(name);
    empty.Input(numbers({2, 0, 0}));
    EXPECT_TRUE(empty.Run().ok());
  }
}

TEST(Diagonals, EveryElementSize) {
  for (const ElementType type : {ElementType::kBool, ElementType::kHalf, ElementType::kInt32,
                                 ElementType::kDouble, ElementType::kUint8}) {
    SCOPED_TRACE(ElementTypeName(type));
    const Tensor diagonal = MakeTensor(type, Shape({2, 2}), {1, 1, 0, 1});
    OpTest diag("MatrixDiag");
    diag.Input(diagonal);
    ASSERT_TRUE(diag.Run().ok());
    ExpectEqual(diag.output(0), MakeTensor(type, Shape({2, 2, 2}), {1, 0, 0, 1, 0, 0, 0, 1}));
    OpTest part("MatrixDiagPart");
    part.Input(MakeTensor(type, Shape({2, 3}), {1, 0, 0, 1, 1, 0}));
    ASSERT_TRUE(part.Run().ok());
    ExpectEqual(part.output(0), MakeTensor(type, Shape({2}), {1, 1}));
    OpTest set("MatrixSetDiag");
    const Tensor ones = MakeTensor(type, Shape({3, 2}), {1, 1, 1, 1, 1, 1});
    set.Input(ones).Input(MakeTensor(type, Shape({2}), {0, 0}));
    ASSERT_TRUE(set.Run().ok());
    ExpectEqual(set.output(0), MakeTensor(type, Shape({3, 2}), {0, 1, 1, 0, 1, 1}));
    OpTest band("MatrixBandPart");
    band.Input(ones).Input(Tensor::Scalar<int64_t>(1)).Input(Tensor::Scalar<int64_t>(0));
    ASSERT_TRUE(band.Run().ok());
    ExpectEqual(band.output(0), MakeTensor(type, Shape({3, 2}), {1, 0, 1, 1, 0, 1}));
  }
}

TEST(Diagonals, BandInPlaceAndAtItsLimits) {
  const Tensor other = MakeTensor(ElementType::kFloat, Shape({2, 3}), {1, 2, 3, 4, 5, 6});
  OpTest op("MatrixBandPart");
  op.Input(*other.Clone(), /*forwardable=*/true)
      .Input(Tensor::Scalar<int32_t>(-1))
      .Input(Tensor::Scalar<int32_t>(1));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kFloat, Shape({2, 3}), {1, 2, 0, 4, 5, 6}));
  const auto run = [&](int64_t lower, int64_t upper) {
    OpTest bad("MatrixBandPart");
    bad.Input(other).Input(Tensor::Scalar(lower)).Input(Tensor::Scalar(upper));
    return bad.Run().code();
  };
  EXPECT_EQ(run(2, 3), StatusCode::kOk);
  EXPECT_EQ(run(3, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(0, 4), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min()),
            StatusCode::kOk);
}

}  // namespace
}  // namespace troupe::testing
