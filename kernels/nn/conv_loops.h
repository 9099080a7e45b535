/// What convolutions have in common for types without a library.
#ifndef TROUPE_KERNELS_NN_CONV_LOOPS_H_
#define TROUPE_KERNELS_NN_CONV_LOOPS_H_

#include <cstdint>
#include <type_traits>

#include "kernels/nn/conv_shape.h"

namespace troupe {

/// What terms of type T are added up as: integers wrap.
template <typename T>
using Term = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                         std::type_identity<T>>::type;

/// Calls `visit(input pixel of the image, element of the window)` for the elements of the window at
/// an output pixel of the image that lie inside the input. Pixels are numbered row by row.
template <typename Visit>
void ForWindow(const ConvShape& s, int64_t pixel, Visit visit) {
  const auto at = [](const Window& w, int64_t position, int64_t element) {
    return position * w.stride - w.pad_before + element * w.dilation;
  };
  const int64_t column = pixel % s.columns.output;
  const int64_t row = pixel / s.columns.output % s.rows.output;
  const int64_t plane = pixel / s.columns.output / s.rows.output;
  for (int64_t p = 0; p < s.planes.size; ++p) {
    const int64_t z = at(s.planes, plane, p);
    if (z < 0 || z >= s.planes.input) continue;
    for (int64_t r = 0; r < s.rows.size; ++r) {
      const int64_t y = at(s.rows, row, r);
      if (y < 0 || y >= s.rows.input) continue;
      for (int64_t c = 0; c < s.columns.size; ++c) {
        const int64_t x = at(s.columns, column, c);
        if (x < 0 || x >= s.columns.input) continue;
        visit((z * s.rows.input + y) * s.columns.input + x,
              (p * s.rows.size + r) * s.columns.size + c);
      }
    }
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_CONV_LOOPS_H_
