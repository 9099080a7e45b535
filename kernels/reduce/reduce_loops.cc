#include "kernels/reduce/reduce_loops.h"

#include <cstring>
#include <iterator>

#include "devices/match_type.h"
#include "kernels/reduce/generic_loops.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

using namespace internal;  // NOLINT: the loops

template <typename T>
ReduceLoops IntegerLoops(Reduction op) {
  switch (op) {
    case Reduction::kSum:
      return Loops<SumOf, T>(false);
    case Reduction::kProd:
      return Loops<ProdOf, T>(false);
    case Reduction::kMax:
      return Loops<MaxOf, T>(false);
    case Reduction::kMin:
      return Loops<MinOf, T>(false);
    case Reduction::kMean:
      if constexpr (sizeof(T) < 8) {
        return Loops<SumOf, T, int64_t>(true);
      } else {
        return Loops<SumOf, T>(true);
      }
    default:
      return {};
  }
}

// All or any. A bool is a byte of 0 or 1.
template <bool kAll>
void RowsOfBools(const void* in, int64_t rows, int64_t n, void* acc) {
  const auto* x = static_cast<const char*>(in);
  for (int64_t r = 0; r < rows; ++r, x += n) {
    const bool found = n > 0 && std::memchr(x, kAll ? 0 : 1, static_cast<size_t>(n)) != nullptr;
    static_cast<bool*>(acc)[r] = found != kAll;
  }
}

ReduceLoops BoolLoops(Reduction op) {
  if (op != Reduction::kAll && op != Reduction::kAny) return {};
  const bool all = op == Reduction::kAll;
  ReduceLoops loops = all ? Loops<AllOf, bool>(false) : Loops<AnyOf, bool>(false);
  loops.rows = all ? RowsOfBools<true> : RowsOfBools<false>;
  return loops;
}

// Types with loops per instruction set: T elements, A accumulators.
template <typename T, typename A>
ReduceLoops SimdLoops(Reduction op) {
  static constexpr simd::ReduceOp kOps[] = {
      // In the order of `Reduction`.
      simd::kSum, simd::kProd, simd::kMax, simd::kMin, simd::kSumOfSquares, simd::kSum};
  if (static_cast<size_t>(op) >= std::size(kOps)) return {};
  const simd::ReduceOp simd_op = kOps[static_cast<size_t>(op)];
  const simd::Table& table = simd::Functions();
  const simd::ReduceFns& fns = table.reduce[simd::TypeOf(kElementType<T>)][simd_op];
  const simd::ReduceOp join = simd_op == simd::kSumOfSquares ? simd::kSum : simd_op;
  ReduceLoops loops;
  loops.rows = fns.rows;
  loops.cols = fns.cols;
  loops.join = table.reduce[simd::TypeOf(kElementType<A>)][join].cols;
  if (op == Reduction::kMean) {
    loops.finish = Finish<T, A, true>;
  } else if (!std::is_same_v<T, A>) {
    loops.finish = Finish<T, A, false>;
  }
  loops.acc_type = kElementType<A>;
  loops.cost = 0.15;
  return loops;
}

}  // namespace

ReduceLoops FindReduce(Reduction op, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return SimdLoops<float, float>(op);
    case ElementType::kDouble:
      return SimdLoops<double, double>(op);
    case ElementType::kHalf:
      return SimdLoops<half, float>(op);
    case ElementType::kBfloat16:
      return SimdLoops<bfloat16, float>(op);
    case ElementType::kInt32:
      return op == Reduction::kMean ? IntegerLoops<int32_t>(op) : SimdLoops<int32_t, int32_t>(op);
    case ElementType::kInt64:
      return SimdLoops<int64_t, int64_t>(op);
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      return internal::ComplexReduce(op, type);
    case ElementType::kBool:
      return BoolLoops(op);
    default:
      return MatchType<int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(
          type, ReduceLoops(), [op]<typename T>() { return IntegerLoops<T>(op); });
  }
}

}  // namespace troupe
