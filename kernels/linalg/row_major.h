/// Eigen's view of the matrices of tensors.
#ifndef TROUPE_KERNELS_LINALG_ROW_MAJOR_H_
#define TROUPE_KERNELS_LINALG_ROW_MAJOR_H_

#include <Eigen/Core>
#include <cstdint>

namespace troupe {

template <typename T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
Eigen::Map<const RowMajor<T>> ConstMatrix(const T* a, int64_t rows, int64_t columns) {
  return Eigen::Map<const RowMajor<T>>(a, rows, columns);
}
template <typename T>
Eigen::Map<RowMajor<T>> MutableMatrix(T* a, int64_t rows, int64_t columns) {
  return Eigen::Map<RowMajor<T>>(a, rows, columns);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_ROW_MAJOR_H_
