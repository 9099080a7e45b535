#include "kernels/simd/updates.h"

// Else a square root is a call wherever it might set errno, and its loop is not vectorised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

#include "kernels/simd/update_rules.h"

namespace troupe::TROUPE_ISA {
namespace {

template <typename T>
void Add(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

template <typename T>
void Subtract(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
}

template <typename T>
void Fill(UpdateFunctions<T>* functions) {
  functions->add = Add<T>;
  functions->subtract = Subtract<T>;
  SetFieldRules<T>(static_cast<UpdateTable<T>*>(functions));
  SetRealRules<T>(static_cast<UpdateTable<T>*>(functions));
}

}  // namespace

void FillUpdates(UpdateFunctions<float>* functions) { Fill(functions); }
void FillUpdates(UpdateFunctions<double>* functions) { Fill(functions); }

}  // namespace troupe::TROUPE_ISA
