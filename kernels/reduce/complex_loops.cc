// Sums and products of complex numbers, by loops over parts and by element-wise products.
#include <algorithm>
#include <complex>
#include <type_traits>

#include "kernels/reduce/generic_loops.h"
#include "kernels/simd/complex.h"
#include "kernels/simd/dispatch.h"

namespace troupe::internal {
namespace {

template <typename T>
void SumCols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc) {
  constexpr ElementType kPart = kElementType<typename T::value_type>;
  static const simd::ReduceColsFn sum =
      simd::Functions().reduce[simd::TypeOf(kPart)][simd::kSum].cols;
  sum(in, rows, 2 * stride, 2 * cols, acc);
}

template <typename T>
void ProdCols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc) {
  const simd::BinaryFn multiply =
      (std::is_same_v<T, complex64> ? FloatComplex() : DoubleComplex()).binary[simd::kMul].aa;
  const T* x = static_cast<const T*>(in);
  for (int64_t r = 0; r < rows; ++r) multiply(acc, x + r * stride, acc, cols);
}

// A row is reduced as the columns of a matrix, whose results are then joined by halves.
template <typename R, typename T, simd::ReduceColsFn kCols>
void Rows(const void* in, int64_t rows, int64_t n, void* acc) {
  constexpr int64_t kLanes = 64, kLast = 8;
  if (n < kLanes) return GenericRows<R, T, T>(in, rows, n, acc);
  const T* x = static_cast<const T*>(in);
  for (int64_t r = 0; r < rows; ++r, x += n) {
    T lanes[kLanes];
    std::copy_n(x, kLanes, lanes);
    const int64_t whole = n / kLanes;
    kCols(x + kLanes, whole - 1, kLanes, kLanes, lanes);
    kCols(x + whole * kLanes, 1, kLanes, n - whole * kLanes, lanes);
    for (int64_t k = kLanes / 2; k >= kLast; k /= 2) kCols(lanes + k, 1, k, k, lanes);
    GenericRows<R, T, T>(lanes, 1, kLast, static_cast<T*>(acc) + r);
  }
}

template <typename R, typename T, simd::ReduceColsFn kCols>
ReduceLoops LoopsBy(bool mean) {
  ReduceLoops loops = Loops<R, T>(mean);
  loops.rows = Rows<R, T, kCols>;
  loops.cols = loops.join = kCols;
  loops.cost = 0.3;
  return loops;
}

template <typename T>
ReduceLoops ComplexLoops(Reduction op) {
  switch (op) {
    case Reduction::kSum:
    case Reduction::kMean:
      return LoopsBy<SumOf, T, SumCols<T>>(op == Reduction::kMean);
    case Reduction::kProd:
      return LoopsBy<ProdOf, T, ProdCols<T>>(false);
    default:
      return {};
  }
}

}  // namespace

ReduceLoops ComplexReduce(Reduction op, ElementType type) {
  return type == ElementType::kComplex64 ? ComplexLoops<complex64>(op)
                                         : ComplexLoops<complex128>(op);
}

}  // namespace troupe::internal
