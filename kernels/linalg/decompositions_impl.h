/// The definitions of decompositions.h, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/panel_product.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

/// Columns that are eliminated by Eigen before our product, in wider registers, brings the others
/// up to date.
inline constexpr int64_t kEliminated = 16;

template <typename T>
bool FactorCholesky(int64_t n, const T* a, T* l) {
  Eigen::Map<RowMajor<T>> result(l, n, n);
  // Copied first: rounding does not depend on what is above the diagonal.
  RowMajor<T> lower =
      Eigen::Map<const RowMajor<T>>(a, n, n).template triangularView<Eigen::Lower>();
  for (int64_t j = 0; j < n; j += kEliminated) {
    const int64_t columns = std::min(kEliminated, n - j), below = n - j - columns;
    T* row = lower.data() + j * n;
    if (j > 0)
      SubtractProduct<T>({n - j, columns, j, row, n, 1, row, 1, n, row + j, n}, false, true);
    Eigen::Ref<RowMajor<T>, 0, Eigen::OuterStride<>> diagonal = lower.block(j, j, columns, columns);
    const Eigen::LLT<decltype(diagonal), Eigen::Lower> llt(diagonal);
    if (llt.info() != Eigen::Success) {
      result.setZero();
      result.template triangularView<Eigen::Lower>().setConstant(
          T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN()));
      return false;
    }
    if (below == 0) continue;
    auto panel = lower.block(j + columns, j, below, columns);
    diagonal.template triangularView<Eigen::Lower>()
        .adjoint()
        .template solveInPlace<Eigen::OnTheRight>(panel);
  }
  result = lower.template triangularView<Eigen::Lower>();
  return true;
}

/// Replaces x by the solution for the triangle of `a` that kMode tells, or for its adjoint. Rows
/// are `a_row` and `x_row` elements apart.
template <unsigned int kMode, typename T>
void SolveTriangle(int64_t n, int64_t columns, const T* a, int64_t a_row, bool adjoint, T* x,
                   int64_t x_row) {
  constexpr bool kIsLower = (kMode & Eigen::Lower) != 0;
  constexpr int64_t kFewColumns = 4;  // Our product is not faster.
  const int64_t step = columns < kFewColumns ? n : kEliminated;
  const ConstStridedRows<T> matrix(a, n, n, Eigen::OuterStride<>(a_row));
  StridedRows<T> result(x, n, columns, Eigen::OuterStride<>(x_row));
  for (int64_t done = 0; done < n; done += step) {
    const int64_t rows = std::min(step, n - done);
    const bool forward = kIsLower != adjoint;
    const int64_t first = forward ? done : n - done - rows;
    const int64_t solved = forward ? 0 : first + rows;  // the first of those done
    if (done > 0) {
      const T* at = adjoint ? a + solved * a_row + first : a + first * a_row + solved;
      SubtractProduct<T>({rows, columns, done, at, adjoint ? 1 : a_row, adjoint ? a_row : 1,
                          x + solved * x_row, x_row, 1, x + first * x_row, x_row},
                         adjoint, false);
    }
    const auto triangle = matrix.block(first, first, rows, rows).template triangularView<kMode>();
    auto part = result.middleRows(first, rows);
    adjoint ? triangle.adjoint().solveInPlace(part) : triangle.solveInPlace(part);
  }
}

template <typename T>
void EliminateWithPivots(int64_t n, T* a, int* swaps) {
  // Columns that Eigen eliminates before our product.
  const int64_t block = n < 256 ? kEliminated : 4 * kEliminated;
  for (int64_t j = 0; j < n; j += block) {
    const int64_t columns = std::min(block, n - j), right = n - j - columns;
    T* const corner = a + j * n + j;
    int count;
    Eigen::internal::partial_lu_impl<T, Eigen::RowMajor, int>::blocked_lu(n - j, columns, corner, n,
                                                                          swaps + j, count);
    for (int64_t i = j; i < j + columns; ++i) {
      swaps[i] += static_cast<int>(j);
      if (swaps[i] == i) continue;
      T *row = a + i * n, *other = a + swaps[i] * n;
      std::swap_ranges(row, row + j, other);
      std::swap_ranges(row + j + columns, row + n, other + j + columns);
    }
    if (right == 0) continue;
    SolveTriangle<Eigen::UnitLower>(columns, right, corner, n, false, corner + columns, n);
    SubtractProduct<T>({right, right, columns, corner + columns * n, n, 1, corner + columns, n, 1,
                        corner + columns * n + columns, n},
                       false, false);
  }
}

template <typename T>
bool SolveLu(int64_t n, int64_t columns, const T* a, bool adjoint, const T* b, T* x) {
  const auto matrix = ConstMatrix(a, n, n);
  RowMajor<T> lu;
  if (adjoint) {
    lu = matrix.adjoint();
  } else {
    lu = matrix;
  }
  std::vector<int> swaps(static_cast<size_t>(n));
  EliminateWithPivots(n, lu.data(), swaps.data());
  for (int64_t i = 0; i < n; ++i) {
    const auto pivot = std::abs(lu(i, i));
    // The smallest pivot decides, and TensorFlow's search for it sees a NaN in the first place
    // only.
    if (pivot == 0 || (i == 0 && !(pivot > 0))) return false;
  }
  auto result = MutableMatrix(x, n, columns);
  if (b == nullptr) {
    result.setIdentity();
  } else {
    result = ConstMatrix(b, n, columns);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t other = swaps[static_cast<size_t>(i)];
    if (other != i) std::swap_ranges(x + i * columns, x + (i + 1) * columns, x + other * columns);
  }
  SolveTriangle<Eigen::UnitLower>(n, columns, lu.data(), n, false, x, columns);
  SolveTriangle<Eigen::Upper>(n, columns, lu.data(), n, false, x, columns);
  return true;
}

template <typename T>
void SolveTriangular(int64_t n, int64_t columns, const T* a, bool lower, bool adjoint, const T* b,
                     T* x) {
  MutableMatrix(x, n, columns) = ConstMatrix(b, n, columns);
  lower ? SolveTriangle<Eigen::Lower>(n, columns, a, n, adjoint, x, columns)
        : SolveTriangle<Eigen::Upper>(n, columns, a, n, adjoint, x, columns);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
