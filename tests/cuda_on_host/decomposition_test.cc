// Determinants, decompositions and eigenvalues of cards: against the CPU's where there is one
// answer, else whether the factors are of the right kind and make up the matrix.
#include <complex>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr ElementType kTypes[] = {kFloat, kDouble, kComplex64, kComplex128};

class Decompositions : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Of a block of many threads, for which the host takes long: for some types.
constexpr int64_t kLarge = 33;
bool RunsLarge(ElementType type) { return type == kFloat || type == kComplex128; }

bool IsNarrow(ElementType type) { return type == kFloat || type == kComplex64; }
double Epsilon(ElementType type) { return IsNarrow(type) ? 0x1p-23 : 0x1p-52; }
Within WithinFor(ElementType type) { return {512, 400 * Epsilon(type)}; }

Tensor Batch(ElementType type, std::vector<int64_t> batch, int64_t rows, int64_t columns,
             uint64_t seed) {
  batch.push_back(rows);
  batch.push_back(columns);
  return Numbers(type, Shape(batch), seed, Values::kModerate);
}

template <typename T>
constexpr bool kIsField =
    kIsComplexNumber<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

/// A row-major matrix in double precision.
struct Matrix {
  using Number = std::complex<double>;
  Matrix(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns)) {}
  Number& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  const Number& at(int64_t i, int64_t j) const {
    return values[static_cast<size_t>(i * columns + j)];
  }
  Matrix Adjoint() const {
    Matrix result(columns, rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) result.at(j, i) = std::conj(at(i, j));
    }
    return result;
  }
  double Largest() const {
    double largest = 0;
    for (const Number& value : values) {
      largest = std::isnan(std::abs(value)) ? INFINITY : std::max(largest, std::abs(value));
    }
    return largest;
  }

  int64_t rows, columns;
  std::vector<Number> values;
};
Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}
Matrix operator-(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] -= b.values[i];
  return a;
}
Matrix Identity(int64_t n) {
  Matrix result(n, n);
  for (int64_t i = 0; i < n; ++i) result.at(i, i) = 1;
  return result;
}

/// Matrix number i of a tensor.
Matrix MatrixOf(const Tensor& tensor, int64_t i) {
  const int rank = tensor.rank();
  Matrix matrix(tensor.dim(rank - 2), tensor.dim(rank - 1));
  SwitchPlain(tensor.type(), [&]<typename T>() {
    if constexpr (kIsField<T>) {
      const T* from = tensor.unchecked_data<T>() + i * matrix.rows * matrix.columns;
      for (auto& value : matrix.values) value = *from++;
    }
  });
  return matrix;
}
/// Vector number i, as a diagonal matrix.
Matrix DiagonalOf(const Tensor& tensor, int64_t i) {
  const int64_t n = tensor.dim(tensor.rank() - 1);
  Matrix matrix(n, n);
  SwitchPlain(tensor.type(), [&]<typename T>() {
    if constexpr (kIsField<T>) {
      for (int64_t j = 0; j < n; ++j) matrix.at(j, j) = tensor.unchecked_data<T>()[i * n + j];
    }
  });
  return matrix;
}
/// The first columns.
Matrix Columns(const Matrix& matrix, int64_t columns) {
  Matrix result(matrix.rows, columns);
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) result.at(i, j) = matrix.at(i, j);
  }
  return result;
}

TEST_F(Decompositions, Determinants) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const int64_t n : {int64_t{1}, int64_t{2}, int64_t{5}, kLarge}) {
      if (n == kLarge && !RunsLarge(type)) continue;
      for (const char* op : {"MatrixDeterminant", "LogMatrixDeterminant"}) {
        if (n == kLarge && std::string(op) == "MatrixDeterminant") continue;  // Overflows.
        both.Add(op, {{Batch(type, {}, n, n, 1)}}, {4096, 1e-3});
        if (n < kLarge) both.Add(op, {{Batch(type, {2, 3}, n, n, 2)}}, {4096, 1e-3});
      }
    }
    for (const char* op : {"MatrixDeterminant", "LogMatrixDeterminant"}) {
      both.Add(op, {{Batch(type, {3}, 0, 0, 1)}});
      both.Add(op, {{Batch(type, {0}, 3, 3, 1)}});
    }
  }
  // Singular, infinite and NaN.
  const Tensor special = *Tensor::FromValues<double>(
      {1, 2, 2, 4, 0, 0, 0, 0, INFINITY, 0, 0, -1, NAN, 0, 0, 1, 0, 1, 1, 0}, Shape({5, 2, 2}));
  both.Add("MatrixDeterminant", {{special}});
  both.Add("LogMatrixDeterminant", {{special}});
  both.Compare();
}

TEST_F(Decompositions, Lu) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const ElementType index : {kInt32, kInt64}) {
      const auto attrs = [=](NodeSpec& node) { node.Attr("output_idx_type", index); };
      for (const int64_t n : {int64_t{1}, int64_t{2}, int64_t{5}, kLarge}) {
        if (n == kLarge && (!RunsLarge(type) || index == kInt32)) continue;
        for (const Shape& shape : {Shape({n, n}), Shape({2, n, n})}) {
          both.Add("Lu", {{Numbers(type, shape, 1, Values::kPositive)}}, {1e5, 1e4 * Epsilon(type)},
                   attrs);
        }
      }
      both.Add("Lu", {{Batch(type, {0}, 3, 3, 1)}}, {}, attrs);
      both.Add("Lu", {{Batch(type, {2}, 0, 0, 1)}}, {}, attrs);
    }
  }
  both.Compare();
  Tensor batch = Numbers(kDouble, Shape({9, 3, 3}), 1, Values::kPositive);
  std::fill_n(batch.mutable_data<double>() + 5 * 9, 18, 0.0);
  const absl::Status status = AgainstCpu::StatusOf("Lu", {{batch}});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("the matrix is not invertible (matrix 5 of the batch)"),
            std::string::npos)
      << status;
}

/// The CPU's signs.
TEST_F(Decompositions, Qr) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kDouble, kComplex64, kComplex128, kHalf}) {
    const Within within = type == kHalf ? Within{4, 0.01} : Within{512, 4000 * Epsilon(type)};
    for (const bool full : {false, true}) {
      const auto attrs = [=](NodeSpec& node) { node.Attr("full_matrices", full); };
      for (const auto& [m, n] :
           {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 5}, {6, 6}, {40, 7}, {7, 40}}) {
        const bool large = std::max(m, n) >= kLarge;
        if (large && !RunsLarge(type)) continue;
        both.Add("Qr", {{Batch(type, {}, m, n, 1)}}, within, attrs);
        if (!large) both.Add("Qr", {{Batch(type, {2, 2}, m, n, 2)}}, within, attrs);
      }
      both.Add("Qr", {{Batch(type, {2}, 3, 0, 1)}}, {}, attrs);
      both.Add("Qr", {{Batch(type, {2}, 0, 3, 1)}}, {}, attrs);
      both.Add("Qr", {{Batch(type, {0}, 3, 3, 1)}}, {}, attrs);
    }
  }
  both.Compare();
}

void CheckSvd(const Tensor& a, bool full) {
  const ElementType type = a.type();
  const auto attrs = [=](NodeSpec& node) {
    node.Attr("compute_uv", true).Attr("full_matrices", full);
  };
  const auto got = AgainstCpu::OutputsOf("Svd", {{a}}, attrs, true);
  const auto want = AgainstCpu::OutputsOf("Svd", {{a}}, attrs, false);
  ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*got)[i].shape(), (*want)[i].shape());
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1), p = std::min(m, n);
  for (int64_t i = 0; i < a.num_elements() / (m * n); ++i) {
    const Matrix matrix = MatrixOf(a, i), s = DiagonalOf((*got)[0], i);
    const Matrix u = MatrixOf((*got)[1], i), v = MatrixOf((*got)[2], i);
    const double most = 30 * static_cast<double>(m + n) * Epsilon(type);
    const double size = std::max(matrix.Largest(), 1e-30) * static_cast<double>(p);
    EXPECT_LE((u.Adjoint() * u - Identity(u.columns)).Largest(), most) << a.ToString();
    EXPECT_LE((v.Adjoint() * v - Identity(v.columns)).Largest(), most) << a.ToString();
    EXPECT_LE((Columns(u, p) * s * Columns(v, p).Adjoint() - matrix).Largest(), most * size)
        << a.ToString();
    EXPECT_LE((s - DiagonalOf((*want)[0], i)).Largest(), most * size) << a.ToString();
    for (int64_t j = 0; j + 1 < p; ++j) EXPECT_GE(s.at(j, j).real(), s.at(j + 1, j + 1).real());
  }
}

TEST_F(Decompositions, Svd) {
  for (const ElementType type : kTypes) {
    for (const bool full : {false, true}) {
      for (const auto& [m, n] :
           {std::pair<int64_t, int64_t>{1, 1}, {1, 4}, {4, 1}, {5, 3}, {3, 5}, {6, 6}}) {
        CheckSvd(Batch(type, {2}, m, n, 1), full);
      }
    }
    if (type == kFloat) CheckSvd(Batch(type, {}, kLarge, 9, 1), true);
    if (type == kComplex128) CheckSvd(Batch(type, {}, 9, kLarge, 1), false);
    // Of less than full rank: columns of zeros, equal columns, nothing but zeros.
    Tensor low = Batch(type, {3}, 6, 4, 1);
    SwitchPlain(type, [&]<typename T>() {
      if constexpr (kIsField<T>) {
        T* const values = low.mutable_data<T>();
        for (int64_t i = 0; i < 6; ++i) {
          values[i * 4 + 1] = T(0);
          values[24 + i * 4 + 2] = values[24 + i * 4];
        }
        std::fill_n(values + 48, 24, T(0));
      }
    });
    CheckSvd(low, false);
    CheckSvd(low, true);
    // Squares of these would overflow, or vanish.
    for (const float power : {100.0f, -100.0f}) {
      Tensor sized = Batch(type, {}, 5, 4, 3);
      SwitchPlain(type, [&]<typename T>() {
        if constexpr (kIsField<T>) {
          for (T& value : sized.mutable_values<T>()) value *= std::exp2(power);
        }
      });
      CheckSvd(sized, true);
    }
  }
}

TEST_F(Decompositions, SingularValues) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const bool compute_uv : {false, true}) {
      const auto attrs = [=](NodeSpec& node) {
        node.Attr("compute_uv", compute_uv).Attr("full_matrices", true);
      };
      both.Add("Svd", {{Batch(type, {2}, 0, 3, 1)}}, {}, attrs);
      both.Add("Svd", {{Batch(type, {2}, 3, 0, 1)}}, {}, attrs);
      both.Add("Svd", {{Batch(type, {0}, 3, 2, 1)}}, {}, attrs);
      Tensor spoilt = Batch(type, {}, 4, 3, 1);
      SwitchPlain(type, [&]<typename T>() {
        if constexpr (kIsField<T>) spoilt.mutable_data<T>()[7] = T(INFINITY);
      });
      both.Add("Svd", {{spoilt}}, {}, attrs);
    }
    both.Add("Svd", {{Batch(type, {3}, 9, 5, 1)}}, WithinFor(type),
             [](NodeSpec& node) { node.Attr("compute_uv", false); });
  }
  both.Compare();
}

void CheckEigen(const Tensor& a) {
  const ElementType type = a.type();
  const auto attrs = [](NodeSpec& node) { node.Attr("compute_v", true); };
  const auto got = AgainstCpu::OutputsOf("SelfAdjointEigV2", {{a}}, attrs, true);
  const auto want = AgainstCpu::OutputsOf("SelfAdjointEigV2", {{a}}, attrs, false);
  ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
  for (int i = 0; i < 2; ++i) EXPECT_EQ((*got)[i].shape(), (*want)[i].shape());
  const int64_t n = a.dim(a.rank() - 1);
  for (int64_t i = 0; i < a.num_elements() / (n * n); ++i) {
    Matrix matrix = MatrixOf(a, i);
    for (int64_t j = 0; j < n; ++j) {  // The lower triangle is read.
      matrix.at(j, j) = matrix.at(j, j).real();
      for (int64_t k = 0; k < j; ++k) matrix.at(k, j) = std::conj(matrix.at(j, k));
    }
    const Matrix e = DiagonalOf((*got)[0], i), v = MatrixOf((*got)[1], i);
    const double most = 60 * static_cast<double>(n) * Epsilon(type);
    const double size = matrix.Largest() * static_cast<double>(n);
    EXPECT_LE((v.Adjoint() * v - Identity(n)).Largest(), most) << a.ToString();
    EXPECT_LE((v * e * v.Adjoint() - matrix).Largest(), most * size) << a.ToString();
    EXPECT_LE((e - DiagonalOf((*want)[0], i)).Largest(), most * size) << a.ToString();
    for (int64_t j = 0; j + 1 < n; ++j) EXPECT_LE(e.at(j, j).real(), e.at(j + 1, j + 1).real());
  }
}

TEST_F(Decompositions, Eigenvalues) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const int64_t n : {1, 2, 3, 8, 17}) CheckEigen(Batch(type, {2}, n, n, 1));
    if (type == kComplex64) CheckEigen(Batch(type, {}, kLarge, kLarge, 1));
    Tensor diagonal = *Tensor::Allocate(type, Shape({2, 4, 4}));
    SwitchPlain(type, [&]<typename T>() {
      if constexpr (kIsField<T>) {
        for (int64_t at = 0; at < 32; ++at) {
          diagonal.mutable_data<T>()[at] = at < 16 && at % 5 == 0 ? T(4 - at / 5) : T(0);
        }
      }
    });
    CheckEigen(diagonal);
    both.Add("SelfAdjointEigV2", {{diagonal}}, {},
             [](NodeSpec& node) { node.Attr("compute_v", false); });
    both.Add("SelfAdjointEigV2", {{Batch(type, {0}, 3, 3, 1)}});
    both.Add("SelfAdjointEigV2", {{Batch(type, {2}, 0, 0, 1)}});
    both.Add("SelfAdjointEigV2", {{Batch(type, {2, 2}, 9, 9, 1)}}, {512, 4000 * Epsilon(type)},
             [](NodeSpec& node) { node.Attr("compute_v", false); });
  }
  both.Compare();
  Tensor batch = Batch(kFloat, {5}, 3, 3, 1);
  batch.mutable_data<float>()[3 * 9 + 3] = NAN;
  batch.mutable_data<float>()[1] = NAN;  // Above the diagonal.
  const absl::Status status = AgainstCpu::StatusOf("SelfAdjointEigV2", {{batch}});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("the eigenvalues were not found"), std::string::npos) << status;
  EXPECT_NE(status.message().find("(matrix 3 of the batch)"), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::testing
