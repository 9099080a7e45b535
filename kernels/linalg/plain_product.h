/// Matrix products of types without a fast one: integers and complex numbers.
#ifndef TROUPE_KERNELS_LINALG_PLAIN_PRODUCT_H_
#define TROUPE_KERNELS_LINALG_PLAIN_PRODUCT_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/simd/gemm.h"

namespace troupe {

/// The type in which sums of T are formed: integers wrap, complex numbers are multiplied without
/// the standard library's treatment of infinities.
template <typename T>
struct ProductSum {
  using Type = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>>;
  static Type From(T x, bool) { return static_cast<Type>(x); }
  static void Add(Type a, Type b, Type* c) { *c += a * b; }
  static T To(Type x) { return static_cast<T>(x); }
};
template <typename R>
struct ProductSum<std::complex<R>> {
  struct Type {
    R re = 0, im = 0;
  };
  static Type From(std::complex<R> x, bool conjugate) {
    return {x.real(), conjugate ? -x.imag() : x.imag()};
  }
  static void Add(Type a, Type b, Type* c) {
    c->re += a.re * b.re - a.im * b.im;
    c->im += a.re * b.im + a.im * b.re;
  }
  static std::complex<R> To(Type x) { return {x.re, x.im}; }
};

/// One row of the result, for types without a fast product. `row` holds n sums.
template <typename T>
void RowOfProduct(const GemmProblem<T>& p, bool conjugate_a, bool conjugate_b, int64_t i,
                  typename ProductSum<T>::Type* row) {
  using S = ProductSum<T>;
  std::fill(row, row + p.n, typename S::Type{});
  const T* a = p.a + i * p.a_row;
  if (p.b_col == 1) {
    for (int64_t l = 0; l < p.k; ++l) {
      const typename S::Type x = S::From(a[l * p.a_col], conjugate_a);
      const T* b = p.b + l * p.b_row;
      for (int64_t j = 0; j < p.n; ++j) S::Add(x, S::From(b[j], conjugate_b), &row[j]);
    }
  } else {
    for (int64_t j = 0; j < p.n; ++j) {
      const T* b = p.b + j * p.b_col;
      for (int64_t l = 0; l < p.k; ++l) {
        S::Add(S::From(a[l * p.a_col], conjugate_a), S::From(b[l * p.b_row], conjugate_b), &row[j]);
      }
    }
  }
  T* c = p.c + i * p.ldc;
  for (int64_t j = 0; j < p.n; ++j) c[j] = S::To(row[j]);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_PLAIN_PRODUCT_H_
