/// The definitions of decompositions.h, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/linalg/complex_product.h"
#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/product.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

/// Columns that are eliminated by Eigen before our product, in wider registers, brings the others
/// up to date.
inline constexpr int64_t kEliminated = 16;

/// c -= a b, of which `p` tells the operands; rows of c are p.ldc elements apart.
template <typename T>
void SubtractProduct(GemmProblem<T> p, bool conjugate_a, bool conjugate_b) {
  RowMajor<T> product(p.m, p.n);
  Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>> result(p.c, p.m, p.n,
                                                          Eigen::OuterStride<>(p.ldc));
  p.c = product.data();
  p.ldc = p.n;
  if constexpr (std::is_floating_point_v<T>) {
    RunProductHere<T>(p);
  } else {
    RunComplexProductHere<typename T::value_type>(p, conjugate_a, conjugate_b);
  }
  result -= product;
}

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

/// Replaces x by the solution for the triangle of `a` that kMode tells, or for its adjoint.
template <unsigned int kMode, typename T>
void SolveTriangle(int64_t n, int64_t columns, const T* a, bool adjoint, T* x) {
  constexpr bool kIsLower = (kMode & Eigen::Lower) != 0;
  constexpr int64_t kFewColumns = 4;  // Our product is not faster.
  const int64_t step = columns < kFewColumns ? n : kEliminated;
  const Eigen::Map<const RowMajor<T>> matrix(a, n, n);
  Eigen::Map<RowMajor<T>> result(x, n, columns);
  for (int64_t done = 0; done < n; done += step) {
    const int64_t rows = std::min(step, n - done);
    const bool forward = kIsLower != adjoint;
    const int64_t first = forward ? done : n - done - rows;
    const int64_t solved = forward ? 0 : first + rows;  // the first of those done
    if (done > 0) {
      const T* at = adjoint ? a + solved * n + first : a + first * n + solved;
      SubtractProduct<T>({rows, columns, done, at, adjoint ? 1 : n, adjoint ? n : 1,
                          x + solved * columns, columns, 1, x + first * columns, columns},
                         adjoint, false);
    }
    const auto triangle = matrix.block(first, first, rows, rows).template triangularView<kMode>();
    auto part = result.middleRows(first, rows);
    adjoint ? triangle.adjoint().solveInPlace(part) : triangle.solveInPlace(part);
  }
}

template <typename T>
bool SolveLu(int64_t n, int64_t columns, const T* a, bool adjoint, const T* b, T* x) {
  const Eigen::Map<const RowMajor<T>> matrix(a, n, n);
  RowMajor<T> copy;
  if (adjoint) {
    copy = matrix.adjoint();
  } else {
    copy = matrix;
  }
  const Eigen::PartialPivLU<Eigen::Ref<RowMajor<T>>> lu(copy);
  for (int64_t i = 0; i < n; ++i) {
    const auto pivot = std::abs(lu.matrixLU()(i, i));
    // The smallest pivot decides, and TensorFlow's search for it sees a NaN in the first place
    // only.
    if (pivot == 0 || (i == 0 && !(pivot > 0))) return false;
  }
  Eigen::Map<RowMajor<T>> result(x, n, columns);
  if (b == nullptr) {
    result = lu.permutationP() * RowMajor<T>::Identity(n, n);
  } else {
    result = lu.permutationP() * Eigen::Map<const RowMajor<T>>(b, n, columns);
  }
  SolveTriangle<Eigen::UnitLower>(n, columns, copy.data(), false, x);  // It holds the factors.
  SolveTriangle<Eigen::Upper>(n, columns, copy.data(), false, x);
  return true;
}

template <typename T>
void SolveTriangular(int64_t n, int64_t columns, const T* a, bool lower, bool adjoint, const T* b,
                     T* x) {
  MutableMatrix(x, n, columns) = ConstMatrix(b, n, columns);
  lower ? SolveTriangle<Eigen::Lower>(n, columns, a, adjoint, x)
        : SolveTriangle<Eigen::Upper>(n, columns, a, adjoint, x);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
