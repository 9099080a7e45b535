// Decompositions and linear systems of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr ElementType kTypes[] = {kFloat, kDouble, kComplex64, kComplex128};
constexpr int64_t kSizes[] = {1, 2, 5, 33};

class Linalg : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Sums of up to 70 numbers near 1, in another order.
Within WithinFor(ElementType type) {
  const bool narrow = type == kFloat || type == kComplex64;
  return {256, narrow ? 1e-5 : 1e-14};
}

Tensor Batch(ElementType type, std::vector<int64_t> batch, int64_t rows, int64_t columns,
             uint64_t seed) {
  batch.push_back(rows);
  batch.push_back(columns);
  return Numbers(type, Shape(batch), seed, Values::kModerate);
}

/// Square matrices with a diagonal that is larger than all others of its row and column together.
Tensor Dominant(ElementType type, std::vector<int64_t> batch, int64_t n, uint64_t seed) {
  Tensor tensor = Batch(type, std::move(batch), n, n, seed);
  SwitchPlain(type, [&]<typename T>() {
    if constexpr (kIsComplexNumber<T> || kIsRealFloat<T>) {
      T* const values = tensor.mutable_data<T>();
      for (int64_t at = 0; at < tensor.num_elements(); ++at) {
        if (at / n % n == at % n) values[at] = T(static_cast<float>(32 * n));
      }
    }
  });
  return tensor;
}

/// NaN above the diagonal, or below it: what must not be read.
Tensor Spoilt(Tensor tensor, bool above) {
  Tensor copy = *Tensor::Allocate(tensor.type(), tensor.shape());
  const int64_t n = tensor.dim(tensor.rank() - 1);
  SwitchPlain(tensor.type(), [&]<typename T>() {
    if constexpr (kIsComplexNumber<T> || kIsRealFloat<T>) {
      for (int64_t at = 0; at < tensor.num_elements(); ++at) {
        const int64_t row = at / n % n, column = at % n;
        copy.mutable_data<T>()[at] =
            (above ? column > row : column < row) ? T(NAN) : tensor.unchecked_data<T>()[at];
      }
    }
  });
  return copy;
}

AgainstCpu::Attrs Flags(bool adjoint, int lower = -1) {
  return [=](NodeSpec& node) {
    node.Attr("adjoint", adjoint);
    if (lower >= 0) node.Attr("lower", lower != 0);
  };
}

TEST_F(Linalg, Cholesky) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const int64_t n : kSizes) {
      const Tensor one = Spoilt(Dominant(type, {}, n, 1), /*above=*/true);
      both.Add("Cholesky", {{one}}, WithinFor(type));
      both.Add("Cholesky", {{one, Operand::kCopy}}, WithinFor(type));
      both.Add("Cholesky", {{one, Operand::kView}}, WithinFor(type));
      both.Add("Cholesky", {{Dominant(type, {2, 3}, n, 2)}}, WithinFor(type));
      // Not positive definite: NaNs, and zeros above.
      both.Add("Cholesky", {{Batch(type, {4}, n, n, 3)}}, WithinFor(type));
    }
    both.Add("Cholesky", {{Batch(type, {}, 0, 0, 3)}});
    both.Add("Cholesky", {{Batch(type, {0}, 3, 3, 3)}});
  }
  both.Compare();
}

TEST_F(Linalg, InversesAndSystems) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const int64_t n : kSizes) {
      for (const bool adjoint : {false, true}) {
        both.Add("MatrixInverse", {{Dominant(type, {3}, n, 1)}}, WithinFor(type), Flags(adjoint));
        for (const int64_t columns : {0, 1, 3, 40}) {
          both.Add("MatrixSolve", {{Dominant(type, {2}, n, 2)}, {Batch(type, {2}, n, columns, 3)}},
                   WithinFor(type), Flags(adjoint));
        }
      }
    }
    both.Add("MatrixInverse", {{Batch(type, {}, 0, 0, 3)}});
    both.Add("MatrixSolve", {{Batch(type, {0}, 3, 3, 3)}, {Batch(type, {0}, 3, 2, 3)}});
  }
  both.Compare();
}

/// Rows in turn, so that every pivot is somewhere else.
TEST_F(Linalg, RowsAreSwapped) {
  AgainstCpu both;
  for (const ElementType type : {kDouble, kComplex128}) {
    for (const int64_t n : kSizes) {
      Tensor turned = Dominant(type, {}, n, 4);
      const Tensor rows = Dominant(type, {}, n, 4);
      const size_t bytes = rows.bytes() / n;
      for (int64_t i = 0; i < n; ++i) {
        std::copy_n(static_cast<const char*>(rows.raw_data()) + i * bytes, bytes,
                    static_cast<char*>(turned.mutable_raw_data()) + (i + n / 2) % n * bytes);
      }
      both.Add("MatrixInverse", {{turned}}, {256, 1e-12});
      both.Add("MatrixSolve", {{turned}, {Batch(type, {}, n, 2, 5)}}, {256, 1e-12});
    }
  }
  both.Compare();
}

TEST_F(Linalg, TriangularSystems) {
  AgainstCpu both;
  for (const ElementType type : kTypes) {
    for (const int64_t n : kSizes) {
      for (const bool lower : {false, true}) {
        for (const bool adjoint : {false, true}) {
          const auto triangle = [&](std::vector<int64_t> batch) {
            return Spoilt(Dominant(type, std::move(batch), n, 6), /*above=*/lower);
          };
          for (const int64_t columns : {1, 3, 40}) {
            both.Add("MatrixTriangularSolve", {{triangle({})}, {Batch(type, {}, n, columns, 7)}},
                     WithinFor(type), Flags(adjoint, lower));
          }
          both.Add("MatrixTriangularSolve", {{triangle({2, 1})}, {Batch(type, {3}, n, 2, 7)}},
                   WithinFor(type), Flags(adjoint, lower));
        }
      }
    }
    both.Add("MatrixTriangularSolve", {{Batch(type, {}, 3, 3, 3)}, {Batch(type, {}, 3, 0, 3)}});
  }
  // A zero on the diagonal.
  const Tensor zero = *Tensor::FromValues<float>({0, 0, 1, 2}, Shape({2, 2}));
  both.Add("MatrixTriangularSolve", {{zero}, {*Tensor::FromValues<float>({1, 2}, Shape({2, 1}))}},
           {}, [](NodeSpec& node) { node.Attr("lower", true); });
  both.Compare();
}

TEST_F(Linalg, TheFirstSingularMatrixIsNamed) {
  for (const ElementType type : kTypes) {
    Tensor batch = Dominant(type, {40}, 3, 1);
    for (const int64_t singular : {7, 8, 33}) {
      std::fill_n(static_cast<char*>(batch.mutable_raw_data()) +
                      singular * 9 * static_cast<int64_t>(ElementSize(type)),
                  3 * ElementSize(type), 0);
    }
    for (const char* op : {"MatrixInverse", "MatrixSolve"}) {
      std::vector<Operand> inputs = {{batch}};
      if (std::string(op) == "MatrixSolve") inputs.emplace_back(Batch(type, {40}, 3, 2, 2));
      const absl::Status status = AgainstCpu::StatusOf(op, inputs);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_NE(status.message().find("the matrix is not invertible (number 7 of the batch)"),
                std::string::npos)
          << status;
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const absl::Status status = AgainstCpu::StatusOf(
      "MatrixInverse", {{*Tensor::FromValues<float>({nan, 0, 1, 2}, Shape({2, 2}))}});
  EXPECT_NE(status.message().find("the matrix is not invertible"), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::testing
