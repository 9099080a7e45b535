/// The loops of reductions, for all element types.
#ifndef TROUPE_KERNELS_REDUCE_REDUCE_LOOPS_H_
#define TROUPE_KERNELS_REDUCE_REDUCE_LOOPS_H_

#include <cstdint>

#include "devices/element_type.h"
#include "kernels/simd/table.h"

namespace troupe {

enum class Reduction : uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,
  kSumOfSquares,
  kMean,  ///< The sum, divided by the number of elements at the end.
  kAll,
  kAny,
};

/// How elements of one type are reduced. Accumulators are of a type that may be wider: float for
/// half and bfloat16, int64 for means of small integers.
struct ReduceLoops {
  simd::ReduceRowsFn rows = nullptr;
  simd::ReduceColsFn cols = nullptr;
  /// Joins accumulators: `cols` for elements of the accumulator's type.
  simd::ReduceColsFn join = nullptr;
  /// From n accumulators to n elements of the type; the mean divides by `count`. nullptr: they are
  /// the same.
  void (*finish)(const void* acc, void* out, int64_t n, int64_t count) = nullptr;
  ElementType acc_type = ElementType::kInvalid;
  double cost = 1;  ///< Nanoseconds per element.
};

/// Empty (`rows` is nullptr) if the reduction is not defined for the type.
ReduceLoops FindReduce(Reduction op, ElementType type);

namespace internal {
ReduceLoops ComplexReduce(Reduction op, ElementType type);
}  // namespace internal

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_REDUCE_LOOPS_H_
