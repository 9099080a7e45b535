/// Eigen's view of the matrices of tensors.
#ifndef TROUPE_KERNELS_LINALG_ROW_MAJOR_H_
#define TROUPE_KERNELS_LINALG_ROW_MAJOR_H_

#include <Eigen/Core>
#include <cmath>
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

/// The real numbers that make up one of type T.
template <typename T>
constexpr int64_t kPartsOf = Eigen::NumTraits<T>::IsComplex ? 2 : 1;

/// The power of 2 that is next below the largest part of the numbers, 1 if all are 0: divided by
/// it, products of them do not overflow. They are finite; there is one at least.
template <typename T>
auto ScaleOf(const T* numbers, int64_t count) {
  using R = typename Eigen::NumTraits<T>::Real;
  const Eigen::Map<const Eigen::Array<R, Eigen::Dynamic, 1>> parts(
      reinterpret_cast<const R*>(numbers), count * kPartsOf<T>);
  const R most = parts.abs().maxCoeff();
  return most == R(0) ? R(1) : std::ldexp(R(1), std::ilogb(most));
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_ROW_MAJOR_H_
