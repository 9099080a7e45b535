// BandedTriangularSolve: substitution in a batch of band matrices.
#include <algorithm>
#include <complex>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/linalg/batch.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

float Conjugate(float x) { return x; }
double Conjugate(double x) { return x; }
template <typename R>
std::complex<R> Conjugate(std::complex<R> x) {
  return std::conj(x);
}

/// A triangular matrix [n, n] of `count` diagonals, each a row of n elements; see the op's
/// documentation for where they are.
template <typename T>
struct BandMatrix {
  /// The element in row i and column j, of which there is one: they differ by less than `count`.
  T At(int64_t i, int64_t j) const {
    return lower ? bands[(i - j) * n + i] : bands[(count - 1 - (j - i)) * n + i];
  }
  const T* bands;
  int64_t count, n;
  bool lower;
};

/// x [n, columns] such that the matrix, or its conjugate transpose, times x is b.
template <typename T>
void SolveBand(const BandMatrix<T>& a, bool adjoint, int64_t columns, const T* b, T* x) {
  const int64_t n = a.n;
  std::copy_n(b, n * columns, x);
  const bool forwards = a.lower != adjoint;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forwards ? step : n - 1 - step;
    T* row = x + i * columns;
    for (int64_t distance = std::min(step, a.count - 1); distance > 0; --distance) {
      const int64_t j = forwards ? i - distance : i + distance;
      const T factor = adjoint ? Conjugate(a.At(j, i)) : a.At(i, j);
      const T* known = x + j * columns;
      for (int64_t c = 0; c < columns; ++c) row[c] -= factor * known[c];
    }
    const T diagonal = adjoint ? Conjugate(a.At(i, i)) : a.At(i, i);
    for (int64_t c = 0; c < columns; ++c) row[c] /= diagonal;
  }
}

absl::Status CheckBands(const Shape& matrix, const Shape& rhs) {
  if (matrix.rank() < 2) {
    return InvalidArgument("matrix must have at least two dimensions, got shape ",
                           matrix.ToString());
  }
  const int64_t count = matrix.dim(matrix.rank() - 2), n = matrix.dim(matrix.rank() - 1);
  if (count < 1 || count > n) {
    return InvalidArgument("matrix of shape ", matrix.ToString(), " must have from 1 to ", n,
                           " bands");
  }
  TROUPE_RETURN_IF_ERROR(CheckRightSides(matrix, rhs, n));
  // As in TensorFlow; the other solvers give an empty result.
  if (matrix.num_elements() == 0 || rhs.num_elements() == 0) {
    return InvalidArgument("matrix of shape ", matrix.ToString(), " and rhs of shape ",
                           rhs.ToString(), " must not be empty");
  }
  return absl::OkStatus();
}

absl::Status BandedTriangularSolve(KernelContext& ctx, bool lower, bool adjoint) {
  const Tensor &matrix = ctx.input(0), &rhs = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckBands(matrix.shape(), rhs.shape()));
  const int64_t count = matrix.dim(matrix.rank() - 2), n = matrix.dim(matrix.rank() - 1);
  const int64_t columns = rhs.dim(rhs.rank() - 1);
  TROUPE_ASSIGN_OR_RETURN(const MatrixBatch batch, PairMatrices(matrix.shape(), rhs.shape(),
                                                                /*broadcast=*/true, n, columns));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, matrix.type(), batch.shape));
  return SwitchType<float, double, complex64, complex128>(
      matrix.type(), [&]<typename T>() -> absl::Status {
        const T *bands = matrix.unchecked_data<T>(), *b = rhs.unchecked_data<T>();
        T* x = out->mutable_data<T>();
        const double ns = 100 + static_cast<double>(count) * static_cast<double>(n * columns);
        const int64_t number = static_cast<int64_t>(batch.pairs.size());
        const int64_t singular = FirstFailure(ctx, number, ns, [&](int64_t i) {
          const auto& [a_index, b_index] = batch.pairs[i];
          const BandMatrix<T> a = {bands + a_index * count * n, count, n, lower};
          for (int64_t d = 0; d < n; ++d) {
            if (a.At(d, d) == T(0)) return false;
          }
          SolveBand(a, adjoint, columns, b + b_index * n * columns, x + i * n * columns);
          return true;
        });
        return singular < number ? SingularMatrix(singular, number) : absl::OkStatus();
      });
}

REGISTER_KERNEL(KernelSpec("BandedTriangularSolve")
                    .Types("T", {ElementType::kFloat, ElementType::kDouble, ElementType::kComplex64,
                                 ElementType::kComplex128})
                    .Cost(KernelCost::kExpensive),
                (MakeAttrKernel<BandedTriangularSolve, "lower", "adjoint">));

}  // namespace
}  // namespace troupe
