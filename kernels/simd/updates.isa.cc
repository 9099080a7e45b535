#include "kernels/simd/updates.h"

#include <utility>

// Else a square root is a call wherever it might set errno, and its loop is not vectorised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

#include "kernels/simd/update_rules.h"
#include "kernels/simd/wide_vector.h"

namespace troupe {
namespace {

using simd::TROUPE_ISA::kWideLanes;
using simd::TROUPE_ISA::Wide;

/// A vector of floats whose operations round to numbers of 16 bits, as TensorFlow's do. `H` is of
/// half_blocks.h.
template <typename H>
struct Rounded {
  struct Mask {
    decltype(Wide() < Wide()) lanes;
  };

  Wide lanes;

  Rounded() = default;
  explicit Rounded(Wide v) : lanes(simd::TROUPE_ISA::RoundWide(v, H())) {}
  /// In all lanes: what `bits` stand for, or a number that needs no rounding. To subtract 0 keeps a
  /// negative 0.
  explicit Rounded(uint16_t bits) : lanes(H::ToFloat(bits) - Wide()) {}
  explicit Rounded(float v) : lanes(v - Wide()) {}
  explicit Rounded(int v) : Rounded(static_cast<float>(v)) {}

  static Rounded Load(const uint16_t* p) {
    Rounded x;
    x.lanes = simd::TROUPE_ISA::LoadWide(p, H());
    return x;
  }
  void Store(uint16_t* p) const { simd::TROUPE_ISA::StoreWide(lanes, p, H()); }

  friend Rounded operator+(Rounded a, Rounded b) { return Rounded(a.lanes + b.lanes); }
  friend Rounded operator-(Rounded a, Rounded b) { return Rounded(a.lanes - b.lanes); }
  friend Rounded operator*(Rounded a, Rounded b) { return Rounded(a.lanes * b.lanes); }
  friend Rounded operator/(Rounded a, Rounded b) { return Rounded(a.lanes / b.lanes); }
  friend Rounded operator-(Rounded a) {
    a.lanes = -a.lanes;
    return a;
  }
  friend Mask operator<(Rounded a, Rounded b) { return {a.lanes < b.lanes}; }
  friend Mask operator>(Rounded a, Rounded b) { return {a.lanes > b.lanes}; }
  /// In all lanes.
  friend bool operator==(Rounded a, Rounded b) {
    bool equal = true;
    for (int i = 0; i < kWideLanes; ++i) equal = equal && a.lanes[i] == b.lanes[i];
    return equal;
  }
  friend Rounded Select(Mask condition, Rounded x, Rounded y) {
    x.lanes = condition.lanes ? x.lanes : y.lanes;
    return x;
  }
};

template <typename H, typename Function>
Rounded<H> EachLane(Rounded<H> x, Function function) {
  float lanes[kWideLanes];
  __builtin_memcpy(lanes, &x.lanes, sizeof(lanes));
  for (float& lane : lanes) lane = function(lane);
  return Rounded<H>(simd::TROUPE_ISA::ReadAs<Wide>(lanes));
}
// More special than those of any number.
template <typename H>
Rounded<H> Sqrt(Rounded<H> x) {
  return EachLane(x, [](float lane) { return __builtin_sqrtf(lane); });
}
template <typename H>
Rounded<H> Power(Rounded<H> x, Rounded<H> exponent) {
  return EachLane(x, [e = exponent.lanes[0]](float lane) { return __builtin_powf(lane, e); });
}
template <typename H>
Rounded<H> Exp(Rounded<H> x) {
  return EachLane(x, [](float lane) { return __builtin_expf(lane); });
}

/// As the loop for single numbers. Where arrays end within a vector, their ends are computed in a
/// copy.
template <typename Rule, typename H>
struct UpdateLoop<Rule, Rounded<H>> {
  static constexpr int kVariables = Rule::kVariables;

  template <typename T>
  static void Run(T* const* variables, const T* grad, const T* scalars, int64_t n) {
    Rounded<H> s[kMaxUpdateScalars];
    for (int i = 0; i < kMaxUpdateScalars; ++i) s[i] = Rounded<H>(scalars[i]);
    const Rule rule(s);
    int64_t i = 0;
    for (; i + kWideLanes <= n; i += kWideLanes) {
      Update(rule, variables, grad, i, std::make_index_sequence<kVariables>());
    }
    if (i == n) return;
    uint16_t ends[kVariables + 1][kWideLanes] = {};
    uint16_t* at[kVariables];
    const size_t bytes = static_cast<size_t>(n - i) * sizeof(uint16_t);
    for (int k = 0; k < kVariables; ++k) {
      at[k] = ends[k];
      __builtin_memcpy(at[k], variables[k] + i, bytes);
    }
    __builtin_memcpy(ends[kVariables], grad + i, bytes);
    Update(rule, at, ends[kVariables], 0, std::make_index_sequence<kVariables>());
    for (int k = 0; k < kVariables; ++k) __builtin_memcpy(variables[k] + i, at[k], bytes);
  }

  template <size_t... k>
  static void Update(const Rule& rule, uint16_t* const* variables, const uint16_t* grad, int64_t i,
                     std::index_sequence<k...>) {
    Rounded<H> x[] = {Rounded<H>::Load(variables[k] + i)...};
    rule(x[k]..., Rounded<H>::Load(grad + i));
    (x[k].Store(variables[k] + i), ...);
  }
};

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
