// Updates of the element types that have no vector code.
#include <cmath>
#include <complex>

#include "kernels/simd/update_rules.h"

namespace troupe {
namespace {

/// A 16-bit number whose operations round, as TensorFlow's do: the types themselves compute in
/// float.
template <typename H>
struct Rounded {
  H value;
  Rounded() = default;
  explicit Rounded(H v) : value(v) {}
  explicit Rounded(float v) : value(v) {}
  explicit Rounded(int v) : value(static_cast<float>(v)) {}
  explicit operator H() const { return value; }

  friend Rounded operator+(Rounded a, Rounded b) {
    return Rounded(float{a.value} + float{b.value});
  }
  friend Rounded operator-(Rounded a, Rounded b) {
    return Rounded(float{a.value} - float{b.value});
  }
  friend Rounded operator*(Rounded a, Rounded b) {
    return Rounded(float{a.value} * float{b.value});
  }
  friend Rounded operator/(Rounded a, Rounded b) {
    return Rounded(float{a.value} / float{b.value});
  }
  friend Rounded operator-(Rounded a) { return Rounded(-float{a.value}); }
  friend bool operator<(Rounded a, Rounded b) { return float{a.value} < float{b.value}; }
  friend bool operator>(Rounded a, Rounded b) { return b < a; }
  friend bool operator==(Rounded a, Rounded b) { return float{a.value} == float{b.value}; }
};

using Half = Rounded<half>;
using Bfloat16 = Rounded<bfloat16>;
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <>
inline Half Sqrt(Half x) {
  return Half(std::sqrt(float{x.value}));
}
template <>
inline Bfloat16 Sqrt(Bfloat16 x) {
  return Bfloat16(std::sqrt(float{x.value}));
}
template <>
inline Complex64 Sqrt(Complex64 x) {
  return std::sqrt(x);
}
template <>
inline Complex128 Sqrt(Complex128 x) {
  return std::sqrt(x);
}
template <>
inline Half Power(Half x, Half exponent) {
  return Half(std::pow(float{x.value}, float{exponent.value}));
}
template <>
inline Bfloat16 Power(Bfloat16 x, Bfloat16 exponent) {
  return Bfloat16(std::pow(float{x.value}, float{exponent.value}));
}
template <>
inline Half Exp(Half x) {
  return Half(std::exp(float{x.value}));
}
template <>
inline Bfloat16 Exp(Bfloat16 x) {
  return Bfloat16(std::exp(float{x.value}));
}

template <typename H>
UpdateTable<H> RoundedTable() {
  UpdateTable<H> table;
  SetFieldRules<Rounded<H>>(&table);
  SetRealRules<Rounded<H>>(&table);
  return table;
}

template <typename C>
UpdateTable<C> ComplexTable() {
  UpdateTable<C> table;
  SetFieldRules<C>(&table);
  return table;
}

}  // namespace

template <>
const UpdateTable<half>& PlainUpdates<half>() {
  static const UpdateTable<half> table = RoundedTable<half>();
  return table;
}

template <>
const UpdateTable<bfloat16>& PlainUpdates<bfloat16>() {
  static const UpdateTable<bfloat16> table = RoundedTable<bfloat16>();
  return table;
}

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
