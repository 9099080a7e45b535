/// The definition of FactorSvd, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_SVD_IMPL_H_
#define TROUPE_KERNELS_LINALG_SVD_IMPL_H_

#include <Eigen/SVD>

#include "kernels/linalg/factorizations.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

template <typename T>
bool FactorSvd(int64_t m, int64_t n, const T* a, bool full, T* s, T* u, T* v) {
  const auto matrix = ConstMatrix(a, m, n);
  if (!matrix.allFinite()) return false;
  unsigned options = 0;
  if (u != nullptr) {
    options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                   : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  const Eigen::BDCSVD<RowMajor<T>> svd(matrix, options);
  for (int64_t i = 0; i < svd.singularValues().size(); ++i) s[i] = T(svd.singularValues()[i]);
  if (u == nullptr) return true;
  MutableMatrix(u, m, svd.matrixU().cols()) = svd.matrixU();
  MutableMatrix(v, n, svd.matrixV().cols()) = svd.matrixV();
  return true;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_SVD_IMPL_H_
