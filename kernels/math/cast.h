/// Conversions between element types.
#ifndef TROUPE_KERNELS_MATH_CAST_H_
#define TROUPE_KERNELS_MATH_CAST_H_

#include "devices/element_type.h"
#include "kernels/simd/table.h"

namespace troupe {

/// The loop that converts `from` to `to`, nullptr if there is none (strings, resources, variants).
/// Numbers go to bool as `x != 0`, complex numbers to real ones by their real part; floating
/// numbers are rounded to nearest even or, to integers, cut off (values that do not fit are those
/// of the C conversion on x86-64).
simd::UnaryFn FindCast(ElementType from, ElementType to);

/// Clears the bits of the mantissa that `to` cannot hold, so that the conversion cuts off instead
/// of rounding; nullptr where that changes nothing.
simd::UnaryFn FindTruncation(ElementType from, ElementType to);

namespace internal {
simd::UnaryFn ComplexCast(ElementType from, ElementType to);
/// To and from floats of 8 bits and integers of 4.
simd::UnaryFn NarrowCast(ElementType from, ElementType to);
}  // namespace internal

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_CAST_H_
