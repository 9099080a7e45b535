// Reductions of float, double, half, bfloat16, int32, int64.
//
// Sums are trees whose form depends on the number of elements only, with as many lanes for every
// instruction set, so that all of them give the same bits.
#include "kernels/simd/half_blocks.h"
#include "kernels/simd/packet_ops.h"
#include "kernels/simd/scalar_ops.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

constexpr int64_t kBase = 4096;  // Up to here lanes are added one after the other, above in pairs.

// A reduction: identity, what is done to elements first, how two values join (scalars and packets).
struct SumReducer {
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
  template <typename P>
  static P JoinPackets(const P& a, const P& b) {
    return Eigen::internal::padd(a, b);
  }
};
struct SumOfSquaresReducer : SumReducer {
  template <typename V>
  static V Map(const V& x) {
    return Eigen::internal::pmul(x, x);
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
  template <typename P>
  static P JoinPackets(const P& a, const P& b) {
    return Eigen::internal::pmul(a, b);
  }
};
struct MaxReducer : SumReducer {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <typename T>
  static T Join(T a, T b) {
    return MaximumOp::Run(a, b);
  }
  template <typename P>
  static P JoinPackets(const P& a, const P& b) {
    return Eigen::internal::pmax<Eigen::PropagateNaN>(a, b);
  }
};
struct MinReducer : SumReducer {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }
  template <typename T>
  static T Join(T a, T b) {
    return MinimumOp::Run(a, b);
  }
  template <typename P>
  static P JoinPackets(const P& a, const P& b) {
    return Eigen::internal::pmin<Eigen::PropagateNaN>(a, b);
  }
};

// --- rows ---

// 128 bytes of lanes in parallel, folded in halves.
template <typename R, typename T>
T FloatBase(const T* x, int64_t n) {
  using P = Packet<T>;
  constexpr int kSize = kPacketSize<T>;
  constexpr int kLanes = 128 / sizeof(T);
  constexpr int kPackets = kLanes / kSize;
  T result = R::template Identity<T>();
  int64_t i = 0;
  if (n >= kLanes) {
    P acc[kPackets];
    for (int k = 0; k < kPackets; ++k) {
      acc[k] = R::Map(Eigen::internal::ploadu<P>(x + k * kSize));
    }
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 8
      for (int k = 0; k < kPackets; ++k) {
        acc[k] = R::JoinPackets(acc[k], R::Map(Eigen::internal::ploadu<P>(x + i + k * kSize)));
      }
    }
    T lanes[kLanes];
    for (int k = 0; k < kPackets; ++k) Eigen::internal::pstoreu(lanes + k * kSize, acc[k]);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) lanes[k] = R::Join(lanes[k], lanes[k + width]);
    }
    result = lanes[0];
  }
  for (; i < n; ++i) result = R::Join(result, R::Map(x[i]));
  return result;
}

template <typename R, typename T>
__attribute__((noinline)) T FloatTree(const T* x, int64_t n) {
  if (n <= kBase) return FloatBase<R, T>(x, n);
  const int64_t half = (n / kBase + 1) / 2 * kBase;
  return R::Join(FloatTree<R, T>(x, half), FloatTree<R, T>(x + half, n - half));
}

template <typename R, typename T>
void FloatRow(const void* in, int64_t n, void* acc) {
  *static_cast<T*>(acc) = FloatTree<R, T>(static_cast<const T*>(in), n);
}

template <typename R, typename T>
void IntRow(const void* in, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(in);
  T result = R::template Identity<T>();
  for (int64_t i = 0; i < n; ++i) result = R::Join(result, x[i]);
  *static_cast<T*>(acc) = result;
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
void HalfRow(const void* in, int64_t n, void* acc) {
  *static_cast<float*>(acc) = HalfTree<R, H>(static_cast<const uint16_t*>(in), n);
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
  table->reduce[kF32][op] = {FloatRow<R, float>, Cols<R, float>};
  table->reduce[kF64][op] = {FloatRow<R, double>, Cols<R, double>};
  table->reduce[kF16][op] = {HalfRow<R, F16>, HalfCols<R, F16>};
  table->reduce[kBF16][op] = {HalfRow<R, BF16>, HalfCols<R, BF16>};
}
template <typename R>
void SetAll(Table* table, ReduceOp op) {
  SetFloats<R>(table, op);
  table->reduce[kI32][op] = {IntRow<R, int32_t>, Cols<R, int32_t>};
  table->reduce[kI64][op] = {IntRow<R, int64_t>, Cols<R, int64_t>};
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
