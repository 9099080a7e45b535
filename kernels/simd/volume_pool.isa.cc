#include "kernels/simd/volume_pool.h"

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

struct Largest {
  static constexpr float kStart = -__builtin_inff();
  static float Join(float best, float x) { return best > x ? best : x; }
  // The instruction gives its second operand if one is NaN.
#if defined(__AVX512F__)
  static Wide Join(Wide best, Wide x) { return (Wide)_mm512_max_ps((__m512)best, (__m512)x); }
#elif defined(__AVX2__)
  static Wide Join(Wide best, Wide x) { return (Wide)_mm256_max_ps((__m256)best, (__m256)x); }
#else
  static Wide Join(Wide best, Wide x) { return best > x ? best : x; }
#endif
};
struct Total {
  static constexpr float kStart = 0;
  template <typename V>
  static V Join(V sum, V x) {
    return sum + x;
  }
};

// kBoxes boxes from number `box` on, one vector of channels of each: as many results are under way
// as hide the latency of joining.
template <typename Rule, typename Element, typename V, int kBoxes>
inline void PoolSome(const PixelBoxes& b, int64_t box, int64_t channel, float factor, void* out) {
  const Stored<Element>* first =
      static_cast<const Stored<Element>*>(b.first) + box * b.box_step + channel;
  V result[kBoxes];
#pragma GCC unroll 8
  for (int i = 0; i < kBoxes; ++i) result[i] = V{} + Rule::kStart;
  for (int64_t z = 0; z < b.planes; ++z) {
    for (int64_t y = 0; y < b.rows; ++y) {
      const Stored<Element>* pixel = first + z * b.plane_step + y * b.row_step;
      for (int64_t x = 0; x < b.columns; ++x, pixel += b.channels) {
#pragma GCC unroll 8
        for (int i = 0; i < kBoxes; ++i) {
          result[i] = Rule::Join(result[i], LoadFloats<V, Element>(pixel + i * b.box_step));
        }
      }
    }
  }
  Stored<Element>* to = static_cast<Stored<Element>*>(out) + box * b.channels + channel;
#pragma GCC unroll 8
  for (int i = 0; i < kBoxes; ++i) StoreFloats<Element>(result[i] * factor, to + i * b.channels);
}

template <typename Rule, typename Element, typename V>
inline void PoolChannels(const PixelBoxes& b, int64_t channel, float factor, void* out) {
  int64_t box = 0;
  for (; box + 8 <= b.boxes; box += 8) {
    PoolSome<Rule, Element, V, 8>(b, box, channel, factor, out);
  }
  for (; box + 4 <= b.boxes; box += 4) {
    PoolSome<Rule, Element, V, 4>(b, box, channel, factor, out);
  }
  for (; box < b.boxes; ++box) PoolSome<Rule, Element, V, 1>(b, box, channel, factor, out);
}

template <typename Rule, typename Element>
void Pool(const PixelBoxes& b, float factor, void* out) {
  int64_t c = 0;
  for (; c + kWideLanes <= b.channels; c += kWideLanes) {
    PoolChannels<Rule, Element, Wide>(b, c, factor, out);
  }
  for (; c < b.channels; ++c) PoolChannels<Rule, Element, float>(b, c, factor, out);
}

template <typename Element>
VolumePoolFunctions TableFor() {
  return {[](const PixelBoxes& b, void* out) { Pool<Largest, Element>(b, 1, out); },
          Pool<Total, Element>};
}

}  // namespace

VolumePoolFunctions VolumePoolTable(simd::Type type) {
  switch (type) {
    case simd::kF16:
      return TableFor<F16>();
    case simd::kBF16:
      return TableFor<BF16>();
    default:
      return TableFor<F32>();
  }
}

}  // namespace troupe::TROUPE_ISA
