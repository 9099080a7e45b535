// Updates of complex numbers.
#include <complex>

#include "kernels/simd/update_rules.h"

namespace troupe {
namespace {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <>
inline Complex64 Sqrt(Complex64 x) {
  return std::sqrt(x);
}
template <>
inline Complex128 Sqrt(Complex128 x) {
  return std::sqrt(x);
}
template <typename C>
UpdateTable<C> ComplexTable() {
  UpdateTable<C> table;
  SetFieldRules<C>(&table);
  return table;
}

}  // namespace

template <>
const UpdateTable<Complex64>& PlainUpdates<Complex64>() {
  static const UpdateTable<Complex64> table = ComplexTable<Complex64>();
  return table;
}

template <>
const UpdateTable<Complex128>& PlainUpdates<Complex128>() {
  static const UpdateTable<Complex128> table = ComplexTable<Complex128>();
  return table;
}

}  // namespace troupe
