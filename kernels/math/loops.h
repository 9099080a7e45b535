/// Finding the loop that computes an element-wise function for an element type: those compiled per
/// instruction set for the types used most, those compiled once for the others.
#ifndef TROUPE_KERNELS_MATH_LOOPS_H_
#define TROUPE_KERNELS_MATH_LOOPS_H_

#include "devices/element_type.h"
#include "kernels/simd/table.h"

namespace troupe {

/// nullptr if the function is not defined for the type. IsNan, IsInf and IsFinite give bool.
simd::UnaryFn FindUnary(simd::UnaryOp op, ElementType type);
/// Empty if the function is not defined for the type. Comparisons give bool; Add joins strings.
simd::BinaryFns FindBinary(simd::BinaryOp op, ElementType type);

/// What a function costs on one element, in nanoseconds, for `KernelContext::GrainFor`.
double UnaryCost(simd::UnaryOp op, ElementType type);
double BinaryCost(simd::BinaryOp op, ElementType type);

namespace internal {
/// Functions by op, those that `fill` sets.
template <typename F, int kSize>
struct OpTable {
  explicit OpTable(void (*fill)(F* fns)) { fill(fns); }
  F fns[kSize] = {};
};
using UnaryTable = OpTable<simd::UnaryFn, simd::kNumUnaryOps>;
using BinaryTable = OpTable<simd::BinaryFns, simd::kNumBinaryOps>;

simd::UnaryFn IntegerUnary(simd::UnaryOp op, ElementType type);
simd::BinaryFns IntegerBinary(simd::BinaryOp op, ElementType type);
simd::UnaryFn ComplexUnary(simd::UnaryOp op, ElementType type);
simd::BinaryFns ComplexBinary(simd::BinaryOp op, ElementType type);
}  // namespace internal

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_LOOPS_H_
