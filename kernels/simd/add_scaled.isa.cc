#include "kernels/simd/add_scaled.h"

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

template <typename Element>
void Add(const void* x, float factor, int64_t n, float* sums) {
  ForColumnBlocks(n, [=]<typename V, int N>(int64_t c) {
    const Stored<Element>* from = static_cast<const Stored<Element>*>(x) + c;
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      float* to = sums + c + i * kFloats<V>;
      const V sum = LoadFloats<V, F32>(to);
      StoreFloats<F32>(sum + factor * LoadFloats<V, Element>(from + i * kFloats<V>), to);
    }
  });
}

}  // namespace

AddScaledFn AddScaledFor(simd::Type type) {
  switch (type) {
    case simd::kF16:
      return Add<F16>;
    case simd::kBF16:
      return Add<BF16>;
    default:
      return Add<F32>;
  }
}

}  // namespace troupe::TROUPE_ISA
