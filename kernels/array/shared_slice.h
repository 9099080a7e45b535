/// When an output may be a view of a part of an input.
#ifndef TROUPE_KERNELS_ARRAY_SHARED_SLICE_H_
#define TROUPE_KERNELS_ARRAY_SHARED_SLICE_H_

#include <cstdint>

#include "devices/tensor.h"

namespace troupe {

/// True if a part of `elements` elements is better shared than copied. A small part is cheap to
/// copy, and a view of it would keep all of the input's memory alive.
inline bool WorthSharing(const Tensor& input, int64_t elements) {
  constexpr size_t kLarge = 4096;
  return input.buffer() && static_cast<size_t>(elements) * ElementSize(input.type()) >= kLarge;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_SHARED_SLICE_H_
