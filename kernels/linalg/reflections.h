/// Products of Householder's reflections, a panel at a time.
#ifndef TROUPE_KERNELS_LINALG_REFLECTIONS_H_
#define TROUPE_KERNELS_LINALG_REFLECTIONS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/linalg/panel_product.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

inline constexpr int64_t kPanelColumns = 16;

/// A product of Householder's reflections as I - v t adjoint(v): v lower and t upper triangular
/// (Schreiber and Van Loan, "A storage-efficient WY representation", 1989).
template <typename T>
struct PanelReflections {
  RowMajor<T> v, t;

  /// Of the vectors below the diagonal of `panel`, and Eigen's factors of them.
  template <typename Panel, typename Factors>
  PanelReflections(const Panel& panel, const Factors& factors)
      : v(panel.template triangularView<Eigen::UnitLower>()),
        t(RowMajor<T>::Zero(panel.cols(), panel.cols())) {
    const int64_t rows = v.rows(), columns = v.cols();
    RowMajor<T> gramian(columns, columns);
    MultiplyHere<T>({columns, columns, rows, v.data(), 1, columns, v.data(), columns, 1,
                     gramian.data(), columns},
                    true, false);
    for (int64_t i = 0; i < columns; ++i) {
      t(i, i) = Eigen::numext::conj(factors[i]);
      t.col(i).head(i) = t.topLeftCorner(i, i).lazyProduct(gramian.col(i).head(i) * -t(i, i));
    }
  }

  /// Of the rows of a [v.rows(), columns], `a_row` elements apart, makes their product with this,
  /// or its adjoint.
  void Apply(bool adjoint, int64_t columns, T* a, int64_t a_row) const {
    const int64_t rows = v.rows(), size = v.cols();
    RowMajor<T> inner(size, columns), outer(size, columns);
    MultiplyHere<T>({size, columns, rows, v.data(), 1, size, a, a_row, 1, inner.data(), columns},
                    true, false);
    MultiplyRows(size, columns, size, t.data(), adjoint, inner.data(), outer.data());
    SubtractProduct<T>({rows, columns, size, v.data(), size, 1, outer.data(), columns, 1, a, a_row},
                       false, false);
  }
};

/// Multiplies q [packed.rows(), columns] from the left by the product of all reflections whose
/// vectors are below the diagonal of `packed`: Eigen's, with its factors.
template <typename T, typename Packed, typename Factors>
void ApplyReflections(const Packed& packed, const Factors& factors, int64_t columns, T* q) {
  const int64_t rows = packed.rows(), size = factors.size();
  if (size == 0) return;
  for (int64_t j = (size - 1) / kPanelColumns * kPanelColumns; j >= 0; j -= kPanelColumns) {
    const int64_t panel = std::min(kPanelColumns, size - j);
    PanelReflections<T>(packed.block(j, j, rows - j, panel), factors.segment(j, panel))
        .Apply(false, columns, q + j * columns, columns);
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_REFLECTIONS_H_
