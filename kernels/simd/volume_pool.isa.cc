#include "kernels/simd/volume_pool.h"

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

template <typename V>
V Same(float x) {
  return V{} + x;
}

// Calls visit(first element) for all pixels in order.
template <typename Element, typename Visit>
inline void ForBox(const PixelBox& box, Visit visit) {
  for (int64_t z = 0; z < box.planes; ++z) {
    for (int64_t y = 0; y < box.rows; ++y) {
      const Stored<Element>* p =
          static_cast<const Stored<Element>*>(box.first) + z * box.plane_step + y * box.row_step;
      for (int64_t x = 0; x < box.columns; ++x, p += box.channels) visit(p);
    }
  }
}

template <typename Element>
void Max(const PixelBox& box, void* out) {
  ForColumnBlocks(box.channels, [&]<typename V, int N>(int64_t c) {
    V best[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) best[i] = Same<V>(-__builtin_inff());
    ForBox<Element>(box, [&](const Stored<Element>* pixel) {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        const V x = LoadFloats<V, Element>(pixel + c + i * kFloats<V>);
        best[i] = best[i] > x ? best[i] : x;
      }
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i)
      StoreFloats<Element>(best[i], static_cast<Stored<Element>*>(out) + c + i * kFloats<V>);
  });
}

template <typename Element>
void ScaledSum(const PixelBox& box, float factor, void* out) {
  ForColumnBlocks(box.channels, [&]<typename V, int N>(int64_t c) {
    V sum[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[i] = Same<V>(0.0f);
    ForBox<Element>(box, [&](const Stored<Element>* pixel) {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[i] += LoadFloats<V, Element>(pixel + c + i * kFloats<V>);
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i)
      StoreFloats<Element>(sum[i] * factor,
                           static_cast<Stored<Element>*>(out) + c + i * kFloats<V>);
  });
}

}  // namespace

VolumePoolFunctions VolumePoolTable(simd::Type type) {
  switch (type) {
    case simd::kF16:
      return {Max<F16>, ScaledSum<F16>};
    case simd::kBF16:
      return {Max<BF16>, ScaledSum<BF16>};
    default:
      return {Max<F32>, ScaledSum<F32>};
  }
}

}  // namespace troupe::TROUPE_ISA
