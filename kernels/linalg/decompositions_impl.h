/// The definitions of decompositions.h, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

template <typename T>
bool FactorCholesky(int64_t n, const T* a, T* l) {
  Eigen::Map<RowMajor<T>> result(l, n, n);
  // Copied first: rounding does not depend on what is above the diagonal.
  const RowMajor<T> lower =
      Eigen::Map<const RowMajor<T>>(a, n, n).template triangularView<Eigen::Lower>();
  const Eigen::LLT<RowMajor<T>, Eigen::Lower> llt(lower);
  if (llt.info() != Eigen::Success) {
    result.setZero();
    result.template triangularView<Eigen::Lower>().setConstant(
        T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN()));
    return false;
  }
  result = llt.matrixL();
  return true;
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
  lu.matrixLU().template triangularView<Eigen::UnitLower>().solveInPlace(result);
  lu.matrixLU().template triangularView<Eigen::Upper>().solveInPlace(result);
  return true;
}

template <typename T>
void SolveTriangular(int64_t n, int64_t columns, const T* a, bool lower, bool adjoint, const T* b,
                     T* x) {
  const Eigen::Map<const RowMajor<T>> matrix(a, n, n);
  Eigen::Map<RowMajor<T>> result(x, n, columns);
  result = Eigen::Map<const RowMajor<T>>(b, n, columns);
  if (lower) {
    const auto triangle = matrix.template triangularView<Eigen::Lower>();
    adjoint ? triangle.adjoint().solveInPlace(result) : triangle.solveInPlace(result);
  } else {
    const auto triangle = matrix.template triangularView<Eigen::Upper>();
    adjoint ? triangle.adjoint().solveInPlace(result) : triangle.solveInPlace(result);
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_DECOMPOSITIONS_IMPL_H_
