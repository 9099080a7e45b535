// Decompositions and functions of matrices: multiplied out, or against known values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// x * y, for batches of matrices of doubles; transposed first if asked for.
Tensor Times(const Tensor& x, bool transpose_x, const Tensor& y, bool transpose_y) {
  OpTest op("BatchMatMulV2");
  op.Attr("adj_x", transpose_x).Attr("adj_y", transpose_y).Input(x).Input(y);
  EXPECT_EQ(op.Run(), absl::OkStatus());
  return op.output(0);
}
Tensor Diagonal(const Tensor& x) {
  OpTest op("MatrixDiag");
  op.Input(x);
  EXPECT_EQ(op.Run(), absl::OkStatus());
  return op.output(0);
}
Tensor Doubles(const Shape& shape) { return RandomTensor(ElementType::kDouble, shape, -1, 1, 3); }

constexpr double kTolerance = 1e-11;

TEST(Decompositions, FactorsMultiplyToTheMatrix) {
  for (const Shape& shape : {Shape({2, 5, 3}), Shape({4, 4}), Shape({3, 6}), Shape({1, 1})}) {
    for (const bool full : {false, true}) {
      const Tensor a = Doubles(shape);
      OpTest qr("Qr");
      qr.Attr("full_matrices", full).Input(a);
      ASSERT_EQ(qr.Run(), absl::OkStatus());
      ExpectNear(Times(qr.output(0), false, qr.output(1), false), a, 0, kTolerance);
      OpTest svd("Svd");
      svd.Input(a);
      ASSERT_EQ(svd.Run(), absl::OkStatus());
      const Tensor us = Times(svd.output(1), false, Diagonal(svd.output(0)), false);
      ExpectNear(Times(us, false, svd.output(2), true), a, 0, kTolerance);
    }
  }
}

// Complex ones are reduced to real ones, of all sizes between the least and those in blocks.
TEST(Decompositions, SingularValuesOfComplexMatrices) {
  for (const auto& [m, n] : {std::pair(1, 1), std::pair(3, 1), std::pair(2, 5), std::pair(20, 17),
                             std::pair(17, 60), std::pair(64, 50)}) {
    const Tensor parts = RandomTensor(ElementType::kDouble, Shape({2, m, n}), -1, 1, 5);
    for (const double scale : {1.0, 1e-300, 1e300, 0.0}) {
      Tensor a = Tensor::Uninitialized(ElementType::kComplex128, Shape({m, n}));
      for (int i = 0; i < m * n; ++i) {
        a.mutable_data<complex128>()[i] =
            complex128(At(parts, i) * scale, At(parts, m * n + i) * scale);
      }
      for (const bool full : {false, true}) {
        OpTest svd("Svd");
        svd.Attr("full_matrices", full).Input(a);
        ASSERT_EQ(svd.Run(), absl::OkStatus());
        const Tensor &u = svd.output(1), &v = svd.output(2);
        const int p = std::min(m, n);
        ASSERT_EQ(u.shape(), Shape({m, full ? m : p}));
        ASSERT_EQ(v.shape(), Shape({n, full ? n : p}));
        const auto* s = svd.output(0).unchecked_data<complex128>();
        for (int k = 0; k + 1 < p; ++k) EXPECT_GE(s[k].real(), s[k + 1].real());
        for (const Tensor* q : {&u, &v}) {
          const Tensor product = Times(*q, true, *q, false);
          const int columns = static_cast<int>(q->dim(1));
          for (int i = 0; i < columns * columns; ++i) {
            EXPECT_LE(std::abs(product.unchecked_data<complex128>()[i] -
                               complex128(i % (columns + 1) == 0 ? 1 : 0)),
                      kTolerance);
          }
        }
        for (int i = 0; i < m; ++i) {
          for (int j = 0; j < n; ++j) {
            complex128 rest = -a.unchecked_data<complex128>()[i * n + j];
            for (int k = 0; k < p; ++k) {
              rest += u.unchecked_data<complex128>()[i * u.dim(1) + k] * s[k] *
                      std::conj(v.unchecked_data<complex128>()[j * v.dim(1) + k]);
            }
            EXPECT_LE(std::abs(rest), kTolerance * scale) << m << ", " << n;
          }
        }
      }
    }
  }
}

TEST(Decompositions, EigenvectorsOfSymmetricMatrices) {
  const Tensor x = Doubles(Shape({2, 5, 5}));
  const Tensor a = Times(x, false, x, true);
  OpTest op("SelfAdjointEigV2");
  op.Input(a);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  const Tensor& v = op.output(1);
  ExpectNear(Times(a, false, v, false), Times(v, false, Diagonal(op.output(0)), false), 0,
             kTolerance);
}

template <typename T>
void ExpectHermitianEigenvectors(int n, int rank, double scale, double tolerance) {
  SCOPED_TRACE(::testing::Message() << ElementTypeName(kElementType<T>) << n << ", " << scale);
  const auto part = [](complex128 x) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(x.real());
    } else {
      return static_cast<T>(x);
    }
  };
  // A sum of `rank` outer products, of both signs.
  const Tensor numbers = RandomTensor(ElementType::kDouble, Shape({2, n, rank}), -1, 1, 9);
  const auto at = [&](int i, int k) {
    return complex128(At(numbers, i * rank + k), At(numbers, (n + i) * rank + k));
  };
  Tensor a = Tensor::Uninitialized(kElementType<T>, Shape({n, n}));
  T* elements = a.mutable_data<T>();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      complex128 sum = 0;
      for (int k = 0; k < rank; ++k) sum += (k % 2 ? -1.0 : 1.0) * at(i, k) * std::conj(at(j, k));
      elements[i * n + j] = part(sum / static_cast<double>(n) * scale);
    }
  }
  OpTest op("SelfAdjointEigV2"), values("SelfAdjointEigV2");
  ASSERT_EQ(op.Input(a).Run(), absl::OkStatus());
  ASSERT_EQ(values.Attr("compute_v", false).Input(a).Run(), absl::OkStatus());
  const T *e = op.output(0).unchecked_data<T>(), *v = op.output(1).unchecked_data<T>();
  for (int k = 0; k < n; ++k) {
    EXPECT_GE(std::real(e[k]), std::real(e[k > 0 ? k - 1 : 0]));
    EXPECT_LE(std::abs(complex128(e[k] - values.output(0).unchecked_data<T>()[k])) / scale,
              tolerance);
    for (int i = 0; i < n; ++i) {
      complex128 rest = -complex128(e[k]) / scale * complex128(v[i * n + k]), product = 0;
      for (int j = 0; j < n; ++j) {
        rest += complex128(elements[i * n + j]) / scale * complex128(v[j * n + k]);
        product += std::conj(complex128(v[j * n + i])) * complex128(v[j * n + k]);
      }
      EXPECT_LE(std::abs(rest), tolerance);
      EXPECT_LE(std::abs(product - (i == k ? 1.0 : 0.0)), tolerance);
    }
  }
}

TEST(Decompositions, EigenvectorsOfHermitianMatrices) {
  for (const int n : {1, 2, 3, 17, 70}) {
    for (const int rank : {n, n / 2}) {
      for (const double scale : {1.0, 1e-30, 1e30}) {
        ExpectHermitianEigenvectors<float>(n, rank, scale, 2e-5);
        ExpectHermitianEigenvectors<complex64>(n, rank, scale, 2e-5);
      }
      for (const double scale : {1.0, 1e-300, 1e300}) {
        ExpectHermitianEigenvectors<double>(n, rank, scale, 1e-13);
        ExpectHermitianEigenvectors<complex128>(n, rank, scale, 1e-13);
      }
    }
  }
}

/// Of the n x n matrix of the elements `a` times `scale`; conjugate eigenvalues must be neighbours.
template <typename T>
void ExpectEigenvectors(ElementType type, int n, const std::vector<complex128>& a, double scale,
                        double tolerance) {
  using C = std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, complex64>, complex64,
                               complex128>;
  Tensor matrix = Tensor::Uninitialized(type, Shape({n, n}));
  for (int i = 0; i < n * n; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      matrix.mutable_data<T>()[i] = static_cast<T>(a[i].real() * scale);
    } else {
      matrix.mutable_data<T>()[i] = static_cast<T>(a[i] * scale);
    }
  }
  OpTest op("Eig");
  op.Attr("Tout", kElementType<C>).Input(matrix);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  const C *e = op.output(0).unchecked_data<C>(), *v = op.output(1).unchecked_data<C>();
  const auto value = [&](int k) { return complex128(e[k]) / scale; };
  for (int k = 0; k < n; ++k) {
    double length = 0;
    for (int i = 0; i < n; ++i) {
      length += std::norm(complex128(v[i * n + k]));
      complex128 rest = -value(k) * complex128(v[i * n + k]);
      for (int j = 0; j < n; ++j) {
        const complex128 element = std::is_floating_point_v<T> ? a[i * n + j].real() : a[i * n + j];
        rest += element * complex128(v[j * n + k]);
      }
      EXPECT_LE(std::abs(rest), tolerance) << i << ", " << k;
    }
    EXPECT_NEAR(length, 1, tolerance);
    if (std::is_floating_point_v<T> && value(k).imag() > tolerance) {
      ASSERT_LT(k + 1, n);
      EXPECT_LE(std::abs(value(k) - std::conj(value(k + 1))), tolerance);
    }
  }
}

// Eigen's own shifts read before the matrix, and its products of such numbers do not fit.
TEST(Decompositions, EigenvectorsOfMatricesOfAnySize) {
  for (const int n : {1, 2, 3, 6}) {
    const Tensor numbers = Doubles(Shape({4, n, n}));
    std::vector<complex128> a;
    for (int i = 0; i < n * n; ++i) a.push_back({At(numbers, i), At(numbers, 3 * n * n + i)});
    for (const bool singular : {false, true}) {
      for (int i = 0; singular && i < n; ++i) a[i * n + n / 2] = 0;
      for (const double scale : {1.0, 1e-30, 1e30}) {
        ExpectEigenvectors<float>(ElementType::kFloat, n, a, scale, 1e-4);
        ExpectEigenvectors<complex64>(ElementType::kComplex64, n, a, scale, 1e-4);
      }
      for (const double scale : {1.0, 1e-160, 1e-300, 1e160, 1e300}) {
        ExpectEigenvectors<double>(ElementType::kDouble, n, a, scale, 1e-11);
        ExpectEigenvectors<complex128>(ElementType::kComplex128, n, a, scale, 1e-11);
      }
    }
  }
}

TEST(Decompositions, FunctionsOfMatrices) {
  const Tensor x = Doubles(Shape({2, 4, 4}));
  Tensor a = Times(x, false, x, true);  // Its square has one root, the matrix itself.
  for (int64_t i = 0; i < a.num_elements(); i += 1) {
    if (i % 16 % 5 == 0) Set(&a, i, At(a, i) + 1);
  }
  OpTest root("MatrixSquareRoot");
  root.Input(Times(a, false, a, false));
  ASSERT_EQ(root.Run(), absl::OkStatus());
  ExpectNear(root.output(0), a, 0, 1e-10);
  // The logarithm of the exponential.
  Tensor complex = Tensor::Uninitialized(ElementType::kComplex128, a.shape());
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    complex.mutable_data<complex128>()[i] = {At(x, i), At(x, (i * 7) % 32) / 2};
  }
  OpTest exponential("MatrixExponential"), logarithm("MatrixLogarithm");
  exponential.Input(complex);
  ASSERT_EQ(exponential.Run(), absl::OkStatus());
  logarithm.Input(exponential.output(0));
  ASSERT_EQ(logarithm.Run(), absl::OkStatus());
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    EXPECT_LE(std::abs(logarithm.output(0).unchecked_data<complex128>()[i] -
                       complex.unchecked_data<complex128>()[i]),
              1e-10);
  }
}

// A real matrix with a negative eigenvalue has no real square root: NaNs, as TensorFlow gives.
// Pairs of conjugate eigenvalues may have negative real parts.
TEST(Decompositions, SquareRootsOfNegativeEigenvalues) {
  const std::vector<std::vector<double>> without = {
      {-1, 0, 0, 0, 1, 0, 0, 0, 1}, {1, 2, 3, 0, 4, 5, 0, 0, -6}, {-2, 0, 0, 0, 0, 1, 0, -1, 0}};
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    for (const std::vector<double>& values : without) {
      OpTest root("MatrixSquareRoot");
      ASSERT_EQ(root.Input(MakeTensor(type, Shape({3, 3}), values)).Run(), absl::OkStatus());
      for (int64_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(At(root.output(0), i))) << i;
    }
    // Of the block of two conjugate eigenvalues Eigen finds no eigenvectors: a number overflows.
    OpTest large("MatrixSquareRoot");
    const double most = type == ElementType::kFloat ? std::numeric_limits<float>::max()
                                                    : std::numeric_limits<double>::max();
    EXPECT_EQ(large.Input(MakeTensor(type, Shape({2, 2}), {-most, most, -most, most})).Run(),
              absl::OkStatus());
    OpTest root("MatrixSquareRoot");
    const Tensor a = MakeTensor(type, Shape({3, 3}), {1, 0, 0, 0, -2, 1, 0, -1, -2});
    ASSERT_EQ(root.Input(a).Run(), absl::OkStatus());
    const Tensor& r = root.output(0);
    ExpectNear(Times(r, false, r, false), a, 1e-5, 1e-5);
  }
}

// None of them may run for ever.
TEST(Decompositions, MatricesWithoutResults) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const complex128 x : {complex128(0, 0), complex128(nan, 0), complex128(-1, 0)}) {
    Tensor a = Tensor::Uninitialized(ElementType::kComplex128, Shape({3, 3}));
    for (int i = 0; i < 9; ++i) a.mutable_data<complex128>()[i] = i % 4 == 0 ? x : i == 1;
    for (const char* name : {"MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot"}) {
      OpTest op(name);
      op.Input(a);
      EXPECT_EQ(op.Run(), absl::OkStatus()) << name;
    }
  }
  const Tensor bad = MakeTensor(ElementType::kDouble, Shape({2, 2}), {nan, 1, 1, 1});
  OpTest eig("SelfAdjointEigV2"), lu("Lu"), svd("Svd");
  EXPECT_EQ(eig.Input(bad).Run().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(lu.Input(bad).Run().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(svd.Input(bad).Run(), absl::OkStatus());
  EXPECT_TRUE(std::isnan(At(svd.output(0), 0)));
  OpTest general("Eig");
  general.Attr("Tout", ElementType::kComplex128).Input(bad);
  EXPECT_EQ(general.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Decompositions, Determinants) {
  const Tensor a = MakeTensor(ElementType::kFloat, Shape({2, 2, 2}), {1, 2, 3, 4, 1, 2, 2, 4});
  OpTest determinant("MatrixDeterminant"), logarithm("LogMatrixDeterminant");
  ASSERT_EQ(determinant.Input(a).Run(), absl::OkStatus());
  ASSERT_EQ(logarithm.Input(a).Run(), absl::OkStatus());
  ExpectNear(determinant.output(0), Tensor::Vector<float>({-2, 0}));
  ExpectNear(logarithm.output(0), Tensor::Vector<float>({-1, 0}));
  const float infinity = std::numeric_limits<float>::infinity();
  ExpectNear(logarithm.output(1), Tensor::Vector<float>({std::log(2.0f), -infinity}));
}

TEST(Decompositions, LeastSquares) {
  const Tensor a = Doubles(Shape({2, 6, 3}));
  const Tensor x = RandomTensor(ElementType::kDouble, Shape({2, 3, 2}), -1, 1, 5);
  for (const bool fast : {false, true}) {
    OpTest op("MatrixSolveLs");
    op.Attr("fast", fast).Input(a).Input(Times(a, false, x, false));
    op.Input(Tensor::Scalar<double>(0));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectNear(op.output(0), x, 0, 1e-10);
  }
}

TEST(Decompositions, SmallOps) {
  OpTest cross("Cross");
  cross.Input(Tensor::Vector<int32_t>({1, 2, 3})).Input(Tensor::Vector<int32_t>({4, 5, 6}));
  ASSERT_EQ(cross.Run(), absl::OkStatus());
  ExpectEqual(cross.output(0), Tensor::Vector<int32_t>({-3, 6, -3}));
  // [2 0; 3 4] x = [2; 11].
  OpTest solve("BandedTriangularSolve");
  solve.Input(MakeTensor(ElementType::kDouble, Shape({2, 2}), {2, 4, 0, 3}));
  solve.Input(MakeTensor(ElementType::kDouble, Shape({2, 1}), {2, 11}));
  ASSERT_EQ(solve.Run(), absl::OkStatus());
  ExpectNear(solve.output(0), MakeTensor(ElementType::kDouble, Shape({2, 1}), {1, 2}));
  OpTest product("BatchMatMulV3");
  product.Attr("Tout", ElementType::kInt32);
  product.Input(MakeTensor(ElementType::kInt8, Shape({1, 2}), {-128, 127}));
  product.Input(MakeTensor(ElementType::kUint8, Shape({2, 1}), {255, 1}));
  ASSERT_EQ(product.Run(), absl::OkStatus());
  EXPECT_EQ(product.output(0).unchecked_data<int32_t>()[0], -128 * 255 + 127);
}

}  // namespace
}  // namespace troupe::testing
