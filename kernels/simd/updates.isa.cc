#include "kernels/simd/updates.h"

// Else a square root is a call wherever it might set errno, and its loop is not vectorised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

#include "kernels/simd/half_blocks.h"
#include "kernels/simd/update_rules.h"

namespace troupe {
namespace {

/// A float whose operations round to numbers of 16 bits, as TensorFlow's do. `H` is of
/// half_blocks.h.
template <typename H>
struct Rounded {
  float value;
  Rounded() = default;
  explicit Rounded(uint16_t bits) : value(H::ToFloat(bits)) {}
  explicit Rounded(float v) : value(H::ToFloat(H::FromFloat(v))) {}
  explicit Rounded(int v) : Rounded(static_cast<float>(v)) {}
  explicit operator uint16_t() const { return H::FromFloat(value); }

  friend Rounded operator+(Rounded a, Rounded b) { return Rounded(a.value + b.value); }
  friend Rounded operator-(Rounded a, Rounded b) { return Rounded(a.value - b.value); }
  friend Rounded operator*(Rounded a, Rounded b) { return Rounded(a.value * b.value); }
  friend Rounded operator/(Rounded a, Rounded b) { return Rounded(a.value / b.value); }
  friend Rounded operator-(Rounded a) { return Rounded(-a.value); }
  friend bool operator<(Rounded a, Rounded b) { return a.value < b.value; }
  friend bool operator>(Rounded a, Rounded b) { return b < a; }
  friend bool operator==(Rounded a, Rounded b) { return a.value == b.value; }
};

// More special than those of any number.
template <typename H>
Rounded<H> Sqrt(Rounded<H> x) {
  return Rounded<H>(__builtin_sqrtf(x.value));
}
template <typename H>
Rounded<H> Power(Rounded<H> x, Rounded<H> exponent) {
  return Rounded<H>(__builtin_powf(x.value, exponent.value));
}
template <typename H>
Rounded<H> Exp(Rounded<H> x) {
  return Rounded<H>(__builtin_expf(x.value));
}

}  // namespace

namespace TROUPE_ISA {
namespace {

template <typename T>
void Add(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

template <typename T>
void Subtract(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
}

// Elements of type T are computed with as N.
template <typename N, typename T>
void SetRules(UpdateTable<T>* table) {
  SetFieldRules<N>(table);
  SetRealRules<N>(table);
}

template <typename T>
void Fill(UpdateFunctions<T>* functions) {
  functions->add = Add<T>;
  functions->subtract = Subtract<T>;
  SetRules<T>(static_cast<UpdateTable<T>*>(functions));
}

}  // namespace

void FillUpdates(UpdateFunctions<float>* functions) { Fill(functions); }
void FillUpdates(UpdateFunctions<double>* functions) { Fill(functions); }
void FillUpdates(UpdateFunctions<half>* functions) {
  SetRules<Rounded<simd::TROUPE_ISA::F16>>(static_cast<UpdateTable<half>*>(functions));
}
void FillUpdates(UpdateFunctions<bfloat16>* functions) {
  SetRules<Rounded<simd::TROUPE_ISA::BF16>>(static_cast<UpdateTable<bfloat16>*>(functions));
}

}  // namespace TROUPE_ISA
}  // namespace troupe
