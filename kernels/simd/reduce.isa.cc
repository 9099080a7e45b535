// Reductions of float, double, half, bfloat16, int32, int64.
//
// Sums are trees whose form depends on the number of elements only, with as many lanes for every
// instruction set, so that all of them give the same bits.
#include "kernels/simd/half_blocks.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"
#include "kernels/simd/vector_bytes.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

constexpr int64_t kBase = 4096;  // Up to here lanes are added one after the other, above in pairs.

// A reduction: identity, what is done to elements first, how two values join (scalars and vectors;
// those of an ordered one pass over NaN).
struct SumReducer {
  static constexpr bool kOrdered = false;
  template <typename T>
  static T Identity() {
    return T(0);
  }
  template <typename V>
  static V Map(const V& x) {
    return x;
  }
  template <typename T>
  static T Join(T a, T b) {
    return AddOp::Run(a, b);
  }
  template <typename V>
  static V JoinVectors(const V& a, const V& b) {
    return a + b;
  }
};
struct SumOfSquaresReducer : SumReducer {
  template <typename V>
  static V Map(const V& x) {
    return x * x;
  }
};
struct ProdReducer : SumReducer {
  template <typename T>
  static T Identity() {
    return T(1);
  }
  template <typename T>
  static T Join(T a, T b) {
    return MulOp::Run(a, b);
  }
  template <typename V>
  static V JoinVectors(const V& a, const V& b) {
    return a * b;
  }
};
struct MaxReducer : SumReducer {
  static constexpr bool kOrdered = true;
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <typename T>
  static T Join(T a, T b) {
    return MaximumOp::Run(a, b);
  }
  template <typename V>
  static V JoinVectors(const V& a, const V& b) {
    return b > a ? b : a;
  }
};
struct MinReducer : SumReducer {
  static constexpr bool kOrdered = true;
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }
  template <typename T>
  static T Join(T a, T b) {
    return MinimumOp::Run(a, b);
  }
  template <typename V>
  static V JoinVectors(const V& a, const V& b) {
    return b < a ? b : a;
  }
};

// --- rows ---

template <typename R, typename T>
inline T OneByOne(T result, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) result = R::Join(result, R::Map(x[i]));
  return result;
}

// So many bytes of lanes in parallel, folded in halves. n is at least the number of lanes.
template <typename R, int64_t kBytes, typename T>
inline T InLanes(const T* x, int64_t n) {
  constexpr int64_t kRegister =
      kBytes < troupe::TROUPE_ISA::kVectorBytes ? kBytes : troupe::TROUPE_ISA::kVectorBytes;
  typedef T V __attribute__((vector_size(kRegister)));
  constexpr int64_t kLanes = kBytes / sizeof(T), kVector = kRegister / sizeof(T);
  constexpr int kVectors = kBytes / kRegister;
  V acc[kVectors], v;
  decltype(V{} != V{}) unordered = {};
  const auto load = [&](int64_t i) {
    __builtin_memcpy(&v, x + i, sizeof(v));
    if constexpr (R::kOrdered) unordered |= v != v;
    v = R::Map(v);
  };
#pragma GCC unroll 8
  for (int k = 0; k < kVectors; ++k) {
    load(k * kVector);
    acc[k] = v;
  }
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) {
      load(i + k * kVector);
      acc[k] = R::JoinVectors(acc[k], v);
    }
  }
  if constexpr (R::kOrdered) {
    bool any = false;
    for (int64_t k = 0; k < kVector; ++k) any |= unordered[k] != 0;
    if (any) return OneByOne<R>(R::template Identity<T>(), x, n);
  }
  T lanes[kLanes];
  __builtin_memcpy(lanes, acc, sizeof(lanes));
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] = R::Join(lanes[k], lanes[k + width]);
  }
  return OneByOne<R>(lanes[0], x + i, n - i);
}

constexpr int64_t kManyLanes = 128, kFewLanes = 32;  // in bytes

template <typename R, typename T>
inline T FloatBase(const T* x, int64_t n) {
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  if (bytes >= kManyLanes) return InLanes<R, kManyLanes>(x, n);
  if (bytes >= kFewLanes) return InLanes<R, kFewLanes>(x, n);
  return OneByOne<R>(R::template Identity<T>(), x, n);
}

template <typename R, typename T>
__attribute__((noinline)) T FloatTree(const T* x, int64_t n) {
  if (n <= kBase) return FloatBase<R, T>(x, n);
  const int64_t half = (n / kBase + 1) / 2 * kBase;
  return R::Join(FloatTree<R, T>(x, half), FloatTree<R, T>(x + half, n - half));
}

template <typename R, typename T>
void FloatRows(const void* in, int64_t rows, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(acc);
  if (n * static_cast<int64_t>(sizeof(T)) < kFewLanes) {  // Inline: most of the time is calls.
    for (int64_t r = 0; r < rows; ++r) {
      y[r] = OneByOne<R>(R::template Identity<T>(), x + r * n, n);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) y[r] = FloatTree<R, T>(x + r * n, n);
}

template <typename R, typename T>
void IntRows(const void* in, int64_t rows, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(in);
  for (int64_t r = 0; r < rows; ++r, x += n) {
    static_cast<T*>(acc)[r] = OneByOne<R>(R::template Identity<T>(), x, n);
  }
}

template <typename R, typename H>
__attribute__((noinline)) float HalfTree(const uint16_t* x, int64_t n) {
  if (n <= kHalfBlock) {
    float buffer[kHalfBlock];
    H::Load(x, buffer, n);
    return FloatBase<R, float>(buffer, n);
  }
  const int64_t blocks = (n + kHalfBlock - 1) / kHalfBlock;
  const int64_t half = blocks / 2 * kHalfBlock;
  return R::Join(HalfTree<R, H>(x, half), HalfTree<R, H>(x + half, n - half));
}
template <typename R, typename H>
void HalfRows(const void* in, int64_t rows, int64_t n, void* acc) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  float* y = static_cast<float*>(acc);
  if (n > kHalfBlock / 2) {
    for (int64_t r = 0; r < rows; ++r) y[r] = HalfTree<R, H>(x + r * n, n);
    return;
  }
  // Several rows are widened at once.
  float buffer[kHalfBlock];
  const int64_t together = n == 0 ? rows : kHalfBlock / n;
  for (int64_t r = 0; r < rows; r += together) {
    const int64_t m = rows - r < together ? rows - r : together;
    H::Load(x + r * n, buffer, m * n);
    FloatRows<R, float>(buffer, m, n, y + r);
  }
}

// --- columns ---

template <typename R, typename T>
void AddRow(const T* in, int64_t cols, T* acc) {
  TROUPE_INDEPENDENT
  for (int64_t c = 0; c < cols; ++c) acc[c] = R::Join(acc[c], R::Map(in[c]));
}

// Four rows at once, so that the accumulators are read and written a quarter as often.
template <typename R, typename T>
void PlainCols(const T* in, int64_t rows, int64_t stride, int64_t cols, T* acc) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* x = in + r * stride;
    const T* y = x + stride;
    const T* z = y + stride;
    const T* w = z + stride;
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) {
      acc[c] = R::Join(R::Join(R::Join(R::Join(acc[c], R::Map(x[c])), R::Map(y[c])), R::Map(z[c])),
                       R::Map(w[c]));
    }
  }
  for (; r < rows; ++r) AddRow<R, T>(in + r * stride, cols, acc);
}

constexpr int64_t kNarrow = 32;    // Fewer columns than this are widened:
constexpr int64_t kTogether = 16;  // so many rows are taken as one.

template <typename R, typename T>
void ColsOf(const T* in, int64_t rows, int64_t stride, int64_t cols, T* acc) {
  if (stride == cols && cols < kNarrow && rows >= 2 * kTogether) {
    T wide[kNarrow * kTogether];
    const int64_t width = cols * kTogether;
    for (int64_t c = 0; c < width; ++c) wide[c] = R::template Identity<T>();
    PlainCols<R, T>(in, rows / kTogether, width, width, wide);
    for (int64_t k = kTogether / 2; k > 0; k /= 2) {
      for (int64_t c = 0; c < k * cols; ++c) wide[c] = R::Join(wide[c], wide[c + k * cols]);
    }
    for (int64_t c = 0; c < cols; ++c) acc[c] = R::Join(acc[c], wide[c]);
    const int64_t done = rows / kTogether * kTogether;
    PlainCols<R, T>(in + done * stride, rows - done, stride, cols, acc);
    return;
  }
  constexpr int64_t kColumns = 4096;  // What of the accumulators stays in the first-level cache.
  for (int64_t c = 0; c < cols; c += kColumns) {
    PlainCols<R, T>(in + c, rows, stride, cols - c < kColumns ? cols - c : kColumns, acc + c);
  }
}

template <typename R, typename T>
void Cols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc) {
  ColsOf<R, T>(static_cast<const T*>(in), rows, stride, cols, static_cast<T*>(acc));
}

template <typename R, typename H>
void HalfCols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc_out) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  float* acc = static_cast<float*>(acc_out);
  float buffer[kHalfBlock];
  if (stride == cols && cols <= kHalfBlock / 2) {  // Several rows fit a block.
    const int64_t together = kHalfBlock / cols;
    for (int64_t r = 0; r < rows; r += together) {
      const int64_t m = rows - r < together ? rows - r : together;
      H::Load(x + r * cols, buffer, m * cols);
      ColsOf<R, float>(buffer, m, cols, cols, acc);
    }
    return;
  }
  for (int64_t c = 0; c < cols; c += kHalfBlock) {
    const int64_t m = cols - c < kHalfBlock ? cols - c : kHalfBlock;
    for (int64_t r = 0; r < rows; ++r) {
      H::Load(x + r * stride + c, buffer, m);
      AddRow<R, float>(buffer, m, acc + c);
    }
  }
}

template <typename R>
void SetFloats(Table* table, ReduceOp op) {
  table->reduce[kF32][op] = {FloatRows<R, float>, Cols<R, float>};
  table->reduce[kF64][op] = {FloatRows<R, double>, Cols<R, double>};
  table->reduce[kF16][op] = {HalfRows<R, F16>, HalfCols<R, F16>};
  table->reduce[kBF16][op] = {HalfRows<R, BF16>, HalfCols<R, BF16>};
}
template <typename R>
void SetAll(Table* table, ReduceOp op) {
  SetFloats<R>(table, op);
  table->reduce[kI32][op] = {IntRows<R, int32_t>, Cols<R, int32_t>};
  table->reduce[kI64][op] = {IntRows<R, int64_t>, Cols<R, int64_t>};
}

}  // namespace

void FillReduce(Table* table) {
  SetAll<SumReducer>(table, kSum);
  SetAll<ProdReducer>(table, kProd);
  SetAll<MaxReducer>(table, kMax);
  SetAll<MinReducer>(table, kMin);
  SetFloats<SumOfSquaresReducer>(table, kSumOfSquares);
}

}  // namespace troupe::simd::TROUPE_ISA
