#include "kernels/simd/batch_norm.h"

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

// N vectors from a row, or from a vector of floats.
template <typename V, int N>
struct Vectors {
  V v[N];

  template <typename Element>
  static Vectors Load(const Stored<Element>* p) {
    Vectors read;
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) read.v[i] = LoadFloats<V, Element>(p + i * kFloats<V>);
    return read;
  }
  template <typename Element>
  void Store(Stored<Element>* p) const {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) StoreFloats<Element>(v[i], p + i * kFloats<V>);
  }
};

template <typename Element>
const Stored<Element>* In(const void* p) {
  return static_cast<const Stored<Element>*>(p);
}

template <typename Element>
void Sum(const void* x, int64_t rows, int64_t columns, float* sums) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    Block sum = Block::template Load<F32>(sums + c);
    for (int64_t r = 0; r < rows; ++r) {
      const Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum.v[i] += a.v[i];
    }
    sum.template Store<F32>(sums + c);
  });
}

template <typename Element>
void SumSquares(const void* x, const float* mean, int64_t rows, int64_t columns, float* sums) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    const Block m = Block::template Load<F32>(mean + c);
    Block sum = Block::template Load<F32>(sums + c);
    for (int64_t r = 0; r < rows; ++r) {
      const Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum.v[i] += (a.v[i] - m.v[i]) * (a.v[i] - m.v[i]);
    }
    sum.template Store<F32>(sums + c);
  });
}

template <typename Element>
void SumProducts(const void* dy, const void* x, const float* mean, int64_t rows, int64_t columns,
                 float* sums, float* products) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    const Block m = Block::template Load<F32>(mean + c);
    Block sum = Block::template Load<F32>(sums + c);
    Block product = Block::template Load<F32>(products + c);
    for (int64_t r = 0; r < rows; ++r) {
      const Block g = Block::template Load<Element>(In<Element>(dy) + r * columns + c);
      const Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        sum.v[i] += g.v[i];
        product.v[i] += g.v[i] * (a.v[i] - m.v[i]);
      }
    }
    sum.template Store<F32>(sums + c);
    product.template Store<F32>(products + c);
  });
}

template <typename Element>
void Normalize(const void* x, const float* mean, const float* factor, const float* offset,
               int64_t rows, int64_t columns, void* y) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    const Block m = Block::template Load<F32>(mean + c), f = Block::template Load<F32>(factor + c),
                o = Block::template Load<F32>(offset + c);
    for (int64_t r = 0; r < rows; ++r) {
      Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) a.v[i] = (a.v[i] - m.v[i]) * f.v[i] + o.v[i];
      a.template Store<Element>(static_cast<Stored<Element>*>(y) + r * columns + c);
    }
  });
}

template <typename Element>
void Scale(const void* x, const float* factor, int64_t rows, int64_t columns, void* y) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    const Block f = Block::template Load<F32>(factor + c);
    for (int64_t r = 0; r < rows; ++r) {
      Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) a.v[i] *= f.v[i];
      a.template Store<Element>(static_cast<Stored<Element>*>(y) + r * columns + c);
    }
  });
}

template <typename Element>
void Gradient(const void* dy, const void* x, const BatchNormSlope& by, int64_t rows,
              int64_t columns, void* dx) {
  ForColumnBlocks(columns, [&]<typename V, int N>(int64_t c) {
    using Block = Vectors<V, N>;
    const Block m = Block::template Load<F32>(by.mean + c),
                f = Block::template Load<F32>(by.factor + c),
                shift = Block::template Load<F32>(by.shift + c),
                slope = Block::template Load<F32>(by.slope + c);
    for (int64_t r = 0; r < rows; ++r) {
      Block g = Block::template Load<Element>(In<Element>(dy) + r * columns + c);
      const Block a = Block::template Load<Element>(In<Element>(x) + r * columns + c);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        g.v[i] = f.v[i] * (g.v[i] - shift.v[i] - (a.v[i] - m.v[i]) * slope.v[i]);
      }
      g.template Store<Element>(static_cast<Stored<Element>*>(dx) + r * columns + c);
    }
  });
}

template <typename Element>
BatchNormFunctions TableFor() {
  return {Sum<Element>,       SumSquares<Element>, SumProducts<Element>,
          Normalize<Element>, Scale<Element>,      Gradient<Element>};
}

}  // namespace

BatchNormFunctions BatchNormTable(simd::Type type) {
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
