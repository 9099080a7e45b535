/// Products inside of decompositions, by which panels that Eigen has factored bring the rest up to
/// date.
#ifndef TROUPE_KERNELS_LINALG_PANEL_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_PANEL_PRODUCT_H_

#include <type_traits>

#include "kernels/linalg/complex_product.h"
#include "kernels/linalg/product.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

/// Rows that are further apart than they are long.
template <typename T>
using StridedRows = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;
template <typename T>
using ConstStridedRows = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

/// On the calling thread; an operand is conjugated if it says so, but for real numbers.
template <typename T>
void MultiplyHere(const GemmProblem<T>& p, bool conjugate_a, bool conjugate_b) {
  if constexpr (std::is_floating_point_v<T>) {
    RunProductHere<T>(p);
  } else {
    RunComplexProductHere<typename T::value_type>(p, conjugate_a, conjugate_b);
  }
}

/// c [m, n] = adjoint(a) b, or a b; both row-major, b of n columns.
template <typename T>
void MultiplyRows(int64_t m, int64_t n, int64_t k, const T* a, bool adjoint, const T* b, T* c) {
  MultiplyHere<T>({m, n, k, a, adjoint ? 1 : k, adjoint ? m : 1, b, n, 1, c, n}, adjoint, false);
}

/// c -= a b, of which `p` tells the operands; rows of c are p.ldc elements apart.
template <typename T>
void SubtractProduct(GemmProblem<T> p, bool conjugate_a, bool conjugate_b) {
  RowMajor<T> product(p.m, p.n);
  StridedRows<T> result(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  p.c = product.data();
  p.ldc = p.n;
  MultiplyHere(p, conjugate_a, conjugate_b);
  result -= product;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_PANEL_PRODUCT_H_
