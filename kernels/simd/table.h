/// The functions that are compiled once per instruction set, as a table of pointers.
///
/// `*.isa.cc` in this folder are compiled several times (macro TROUPE_ISA: v2, v3, v4 of x86-64),
/// each with Eigen's namespace renamed, and fill a table each; `dispatch.h` picks one for the
/// machine. Everything here is plain data, so that no code is shared between the variants.
#ifndef TROUPE_KERNELS_SIMD_TABLE_H_
#define TROUPE_KERNELS_SIMD_TABLE_H_

#include <cstdint>

namespace troupe::simd {

/// Element types with functions of their own; the other types have loops in kernels/math.
enum Type : uint8_t { kF32, kF64, kI32, kI64, kF16, kBF16, kNumTypes };

/// out[i] = op(in[i]); `out` may be `in`.
using UnaryFn = void (*)(const void* in, void* out, int64_t n);

/// out[i] = op(a[i], b[i]); `out` may be `a` or `b`. Nonzero if an element had no result (an
/// integer division by zero, a negative exponent): the output is then to be thrown away.
using BinaryFn = uint32_t (*)(const void* a, const void* b, void* out, int64_t n);

/// Forms of a binary function: array with array, one value with array, array with one value.
struct BinaryFns {
  BinaryFn aa = nullptr, sa = nullptr, as = nullptr;
};

enum UnaryOp : uint8_t {
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kSqrt,
  kRsqrt,
  kInv,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kTanh,
  kSigmoid,
  kErf,
  kErfc,
  kAsin,
  kAcos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kFloor,
  kCeil,
  kRint,
  kIsNan,
  kIsInf,
  kIsFinite,
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kConj,
  kNot,
  kNumUnaryOps
};

enum BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kTruncateDiv,
  kFloorDiv,
  kFloorMod,
  kMod,
  kDivNoNan,
  kMaximum,
  kMinimum,
  kPow,
  kSquaredDifference,
  kAtan2,
  // To bool.
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  // Gradients, in the order of their ops' inputs; only the form array with array.
  kTanhGrad,
  kSigmoidGrad,
  kSqrtGrad,
  kRsqrtGrad,
  kInvGrad,
  kReluGrad,
  kRelu6Grad,
  kEluGrad,
  kSeluGrad,
  kSoftplusGrad,
  kSoftsignGrad,
  kNumBinaryOps
};

/// Reductions. The accumulator has the element type, but float for half and bfloat16.
enum ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kSumOfSquares, kNumReduceOps };

/// acc[r] = reduction of row r of n elements each, one row after the other (the op's identity if n
/// is 0).
using ReduceRowsFn = void (*)(const void* in, int64_t rows, int64_t n, void* acc);
/// acc[c] = op(acc[c], in[r * stride + c]) for all rows r in order, c < cols.
using ReduceColsFn = void (*)(const void* in, int64_t rows, int64_t stride, int64_t cols,
                              void* acc);

struct ReduceFns {
  ReduceRowsFn rows = nullptr;
  ReduceColsFn cols = nullptr;
};

/// Types that `cast` converts between.
enum CastType : uint8_t {
  kCastF32,
  kCastF64,
  kCastI32,
  kCastI64,
  kCastF16,
  kCastBF16,
  kCastU8,
  kCastBool,
  kNumCastTypes
};

/// Functions of one floating type that work on rows of a matrix.
struct RowFns {
  /// Softmax, or its logarithm, of `rows` rows of `cols` elements each.
  void (*softmax)(const void* logits, void* out, int64_t rows, int64_t cols, bool log) = nullptr;
  /// loss[r] = -sum_c labels[r, c] log softmax(logits)[r, c]; backprop = softmax - labels. Strides
  /// in elements between rows of logits and labels (0: one row for all) and between their elements.
  void (*cross_entropy)(const void* logits, int64_t logits_stride, int64_t logits_step,
                        const void* labels, int64_t labels_stride, int64_t labels_step, void* loss,
                        void* backprop, int64_t rows, int64_t cols) = nullptr;
  /// The same with one label per row, each in [0, cols).
  void (*sparse_cross_entropy)(const void* logits, const int64_t* labels, void* loss,
                               void* backprop, int64_t rows, int64_t cols) = nullptr;
  /// out = x > 0 ? x : alpha x.
  void (*leaky_relu)(const void* in, void* out, int64_t n, float alpha) = nullptr;
  /// out = x > 0 ? g : alpha g.
  void (*leaky_relu_grad)(const void* g, const void* x, void* out, int64_t n,
                          float alpha) = nullptr;
};

struct Table {
  UnaryFn unary[kNumTypes][kNumUnaryOps] = {};
  BinaryFns binary[kNumTypes][kNumBinaryOps] = {};
  ReduceFns reduce[kNumTypes][kNumReduceOps] = {};
  RowFns rows[kNumTypes] = {};
  UnaryFn cast[kNumCastTypes][kNumCastTypes] = {};  ///< [from][to]
};

}  // namespace troupe::simd

#endif  // TROUPE_KERNELS_SIMD_TABLE_H_
