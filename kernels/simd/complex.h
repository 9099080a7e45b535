/// Element-wise functions of complex numbers, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_COMPLEX_H_
#define TROUPE_KERNELS_SIMD_COMPLEX_H_

#include "kernels/simd/table.h"

namespace troupe {

/// Loops over numbers that are pairs of parts. Those that are nullptr have no code of their own.
struct ComplexFunctions {
  simd::UnaryFn unary[simd::kNumUnaryOps] = {};
  simd::BinaryFns binary[simd::kNumBinaryOps] = {};
};

/// The best functions that this processor can run, for parts of type float and double.
const ComplexFunctions& FloatComplex();
const ComplexFunctions& DoubleComplex();

namespace v2 {
void FillFloatComplex(ComplexFunctions* functions);
void FillDoubleComplex(ComplexFunctions* functions);
}  // namespace v2
namespace v3 {
void FillFloatComplex(ComplexFunctions* functions);
void FillDoubleComplex(ComplexFunctions* functions);
}  // namespace v3
namespace v4 {
void FillFloatComplex(ComplexFunctions* functions);
void FillDoubleComplex(ComplexFunctions* functions);
}  // namespace v4

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_COMPLEX_H_
