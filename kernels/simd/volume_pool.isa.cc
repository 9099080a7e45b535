#include "kernels/simd/volume_pool.h"

#include <type_traits>

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

struct Largest {
  static constexpr float kStart = -__builtin_inff();
  // The instructions give their second operand if one is NaN, as the condition does.
  template <typename V>
  static V Join(V best, V x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) return (V)_mm512_max_ps((__m512)best, (__m512)x);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(V) == 32) return (V)_mm256_max_ps((__m256)best, (__m256)x);
    if constexpr (sizeof(V) == 16) return (V)_mm_max_ps((__m128)best, (__m128)x);
#endif
    return best > x ? best : x;
  }
};
struct Total {
  static constexpr float kStart = 0;
  template <typename V>
  static V Join(V sum, V x) {
    return sum + x;
  }
};

typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

// Calls body.template operator()<V>(c) for vectors of channels from channel c on, as wide as there
// are channels for, that are all channels; some are computed again.
template <typename Element, typename Body>
inline void ForChannels(int64_t channels, Body body) {
  const auto in_vectors = [&]<typename V>() {
    constexpr int64_t kLanes = kFloats<V>;
    if (channels < kLanes) return false;
    for (int64_t c = 0; c + kLanes <= channels; c += kLanes) body.template operator()<V>(c);
    if (channels % kLanes != 0) body.template operator()<V>(channels - kLanes);
    return true;
  };
  if (in_vectors.template operator()<Wide>()) return;
  if constexpr (std::is_same_v<Element, F32> && kWideLanes > 8) {
    if (in_vectors.template operator()<Eight>()) return;
  }
  if constexpr (std::is_same_v<Element, F32> && kWideLanes > 4) {
    if (in_vectors.template operator()<Four>()) return;
  }
  for (int64_t c = 0; c < channels; ++c) body.template operator()<float>(c);
}

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
  Stored<Element>* to = static_cast<Stored<Element>*>(out) + box * b.out_step + channel;
#pragma GCC unroll 8
  for (int i = 0; i < kBoxes; ++i) StoreFloats<Element>(result[i] * factor, to + i * b.out_step);
}

// All channels of kBoxes boxes: pixels that lie side by side are read one after the other.
template <typename Rule, typename Element, int kBoxes>
inline void PoolBoxes(const PixelBoxes& b, int64_t box, float factor, void* out) {
  ForChannels<Element>(b.channels, [&]<typename V>(int64_t c) {
    PoolSome<Rule, Element, V, kBoxes>(b, box, c, factor, out);
  });
}

template <typename Rule, typename Element>
void Pool(const PixelBoxes& b, float factor, void* out) {
  int64_t box = 0;
  for (; box + 8 <= b.boxes; box += 8) PoolBoxes<Rule, Element, 8>(b, box, factor, out);
  for (; box + 4 <= b.boxes; box += 4) PoolBoxes<Rule, Element, 4>(b, box, factor, out);
  for (; box < b.boxes; ++box) PoolBoxes<Rule, Element, 1>(b, box, factor, out);
}

// Boxes that overlap: sums over planes and rows first, of each pixel of a row once for all boxes.
constexpr int64_t kRowPixels = 64;  // whose sums are kept

template <typename Element, typename V>
inline void SumRow(const PixelBoxes& b, int64_t step, int64_t boxes, const Stored<Element>* first,
                   float factor, Stored<Element>* to) {
  V row[kRowPixels];
  const int64_t pixels = (boxes - 1) * step + b.columns;
  int64_t x = 0;
  const auto sum = [&]<int kPixels>() {
    V sums[kPixels];
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sums[i] = V{};
    for (int64_t z = 0; z < b.planes; ++z) {
      const Stored<Element>* pixel = first + z * b.plane_step + x * b.channels;
      for (int64_t y = 0; y < b.rows; ++y, pixel += b.row_step) {
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) {
          sums[i] += LoadFloats<V, Element>(pixel + i * b.channels);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) row[x + i] = sums[i];
    x += kPixels;
  };
  while (x + 8 <= pixels) sum.template operator()<8>();
  while (x + 4 <= pixels) sum.template operator()<4>();
  while (x < pixels) sum.template operator()<1>();
  for (int64_t i = 0; i < boxes; ++i, to += b.out_step) {
    V total = row[i * step];
    for (int64_t j = 1; j < b.columns; ++j) total += row[i * step + j];
    StoreFloats<Element>(total * factor, to);
  }
}

template <typename Element>
void ScaledSum(const PixelBoxes& b, float factor, void* out) {
  const int64_t step = b.box_step / b.channels;
  // A step of more than half of a box saves no additions.
  if (b.boxes == 1 || step <= 0 || 2 * step > b.columns || b.columns > kRowPixels) {
    return Pool<Total, Element>(b, factor, out);
  }
  const int64_t most = (kRowPixels - b.columns) / step + 1;
  const Stored<Element>* in = static_cast<const Stored<Element>*>(b.first);
  Stored<Element>* to = static_cast<Stored<Element>*>(out);
  for (int64_t box = 0; box < b.boxes; box += most) {
    const int64_t boxes = b.boxes - box < most ? b.boxes - box : most;
    ForChannels<Element>(b.channels, [&]<typename V>(int64_t c) {
      SumRow<Element, V>(b, step, boxes, in + c, factor, to + c);
    });
    in += boxes * b.box_step;
    to += boxes * b.out_step;
  }
}

template <typename Element, typename V>
inline void SpreadPixel(const Stored<Element>* in, float factor, int64_t columns, int64_t channels,
                        Stored<Element>* out) {
  const V value = LoadFloats<V, Element>(in) * factor;
  for (int64_t x = 0; x < columns; ++x, out += channels) StoreFloats<Element>(value, out);
}

template <typename Element>
void Spread(const void* in, float factor, const PixelRuns& b, void* out) {
  const Stored<Element>* from = static_cast<const Stored<Element>*>(in);
  Stored<Element>* to = static_cast<Stored<Element>*>(out);
  for (int64_t i = 0; i < b.runs; ++i, from += b.channels, to += b.run_step) {
    ForChannels<Element>(b.channels, [&]<typename V>(int64_t c) {
      SpreadPixel<Element, V>(from + c, factor, b.columns, b.channels, to + c);
    });
  }
}

template <typename Element>
VolumePoolFunctions TableFor() {
  return {[](const PixelBoxes& b, void* out) { Pool<Largest, Element>(b, 1, out); },
          ScaledSum<Element>, Spread<Element>};
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
