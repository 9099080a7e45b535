// Element-wise functions of the integers that have no variants per instruction set.
#define TROUPE_ISA generic
#include "devices/match_type.h"
#include "kernels/math/loops.h"
#include "kernels/simd/scalar_ops.h"

namespace troupe::internal {

using namespace simd;           // NOLINT: the operations
using namespace simd::generic;  // NOLINT

UnaryFn IntegerUnary(UnaryOp op, ElementType type) {
  return MatchType<int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, UnaryFn(nullptr), [op]<typename T>() {
        static const UnaryTable table(FillIntegerUnary<T>);
        return table.fns[op];
      });
}

BinaryFns IntegerBinary(BinaryOp op, ElementType type) {
  return MatchType<int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, BinaryFns(), [op]<typename T>() {
        static const BinaryTable table(FillIntegerBinary<T>);
        return table.fns[op];
      });
}

}  // namespace troupe::internal
