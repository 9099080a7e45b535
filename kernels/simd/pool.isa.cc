#include "kernels/simd/pool.h"

#include "kernels/simd/pool_loops.h"
#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

// How the elements of a window become one, in floats.
struct Largest {
  float lowest;

  template <typename V>
  V Start() const {
    return V{} + lowest;
  }
  template <typename V>
  static V Join(V best, V x) {
    return x > best ? x : best;
  }
  template <typename V>
  static V Finish(V best, float) {
    return best;
  }
};
struct Mean {
  template <typename V>
  V Start() const {
    return V{};
  }
  template <typename V>
  static V Join(V sum, V x) {
    return sum + x;
  }
  template <typename V>
  static V Finish(V sum, float count) {
    return sum / count;
  }
};

// One output, its channels in registers.
template <typename Element, typename Rule>
inline void PoolWindowAt(const PoolForm& form, const Stored<Element>* image, const PoolWindow& w,
                         const Rule& rule, Stored<Element>* out) {
  ForColumnBlocks(form.depth, [&]<typename V, int kVectors>(int64_t c) {
    V result[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) result[k] = rule.template Start<V>();
    for (int64_t y = w.y0; y < w.y1; ++y) {
      const Stored<Element>* in = image + (y * form.columns.input + w.x0) * form.depth + c;
      for (int64_t x = w.x0; x < w.x1; ++x, in += form.depth) {
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          result[k] = Rule::Join(result[k], LoadFloats<V, Element>(in + k * kFloats<V>));
        }
      }
    }
    const auto count = static_cast<float>(w.count());
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      StoreFloats<Element>(Rule::Finish(result[k], count), out + c + k * kFloats<V>);
    }
  });
}

// Maxima of few channels: first down the columns of a stretch of a row of pixels, as long vectors,
// then along it. (Sums would be added in another order.)
constexpr int64_t kStretch = 4096;  // elements at most
// For all instruction sets alike: of zeros of both signs the first one counts.
constexpr int64_t kFewChannels = 16;

template <typename Element>
inline void MaxOfStretch(const PoolForm& form, const Stored<Element>* image, int64_t row,
                         int64_t begin, int64_t end, const Largest& rule, Stored<Element>* out) {
  const PoolWindow first = WindowAt(form, row, begin), last = WindowAt(form, row, end - 1);
  const int64_t depth = form.depth, width = form.columns.input * depth;
  float best[kStretch];
  // A window in the padding alone may begin behind the row.
  const int64_t stop = last.x1 < form.columns.input ? last.x1 : form.columns.input;
  ForColumnBlocks((stop - first.x0) * depth, [&]<typename V, int kVectors>(int64_t c) {
    V result[kVectors];
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) result[k] = rule.template Start<V>();
    for (int64_t y = first.y0; y < first.y1; ++y) {
      const Stored<Element>* in = image + y * width + first.x0 * depth + c;
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        result[k] = Largest::Join(result[k], LoadFloats<V, Element>(in + k * kFloats<V>));
      }
    }
    __builtin_memcpy(best + c, result, sizeof(result));
  });
  for (int64_t column = begin; column < end; ++column) {
    const PoolWindow w = WindowAt(form, row, column);
    for (int64_t c = 0; c < depth; ++c) {
      float result = rule.lowest;
      for (int64_t x = w.x0; x < w.x1; ++x) {
        result = Largest::Join(result, best[(x - first.x0) * depth + c]);
      }
      *out++ = Element::FromFloat(result);
    }
  }
}

template <typename Element, typename Rule>
void PoolRows(const PoolForm& form, const Stored<Element>* input, Stored<Element>* output,
              int64_t begin, int64_t end, const Rule& rule) {
  const int64_t image_size = form.rows.input * form.columns.input * form.depth;
  for (int64_t i = begin; i < end; ++i) {
    const Stored<Element>* image = input + i / form.rows.output * image_size;
    Stored<Element>* out = output + i * form.columns.output * form.depth;
    const int64_t row = i % form.rows.output;
    // So many outputs have windows that reach over a stretch.
    const int64_t pixels = kStretch / form.depth - form.columns.window;
    if (__is_same(Rule, Largest) && form.depth < kFewChannels && pixels >= 0) {
      const int64_t columns = pixels / form.columns.stride + 1;
      for (int64_t c = 0; c < form.columns.output; c += columns) {
        const int64_t stop = c + columns < form.columns.output ? c + columns : form.columns.output;
        if constexpr (__is_same(Rule, Largest)) {
          MaxOfStretch<Element>(form, image, row, c, stop, rule, out + c * form.depth);
        }
      }
      continue;
    }
    for (int64_t column = 0; column < form.columns.output; ++column, out += form.depth) {
      PoolWindowAt<Element>(form, image, WindowAt(form, row, column), rule, out);
    }
  }
}

template <typename Element>
void MaxRows(const PoolForm& form, const Stored<Element>* input, Stored<Element>* output,
             int64_t begin, int64_t end) {
  const auto lowest = *static_cast<const Stored<Element>*>(form.lowest);
  PoolRows<Element>(form, input, output, begin, end, Largest{Element::ToFloat(lowest)});
}
template <typename Element>
void MeanRows(const PoolForm& form, const Stored<Element>* input, Stored<Element>* output,
              int64_t begin, int64_t end) {
  PoolRows<Element>(form, input, output, begin, end, Mean());
}

}  // namespace

PoolFunctions PoolTable() {
  return {MaxRows<F32>,  MaxRows<F16>,  MaxRows<BF16>,  MaxPoolGradImages<float, int32_t>,
          MeanRows<F32>, MeanRows<F16>, MeanRows<BF16>, AvgPoolGradImage<float>};
}

}  // namespace troupe::TROUPE_ISA
