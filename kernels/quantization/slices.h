/// Tensors as slices along an axis, each with a range of its own.
#ifndef TROUPE_KERNELS_QUANTIZATION_SLICES_H_
#define TROUPE_KERNELS_QUANTIZATION_SLICES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// A tensor of [outer, count, inner] elements, whose slice i is [:, i, :].
struct Slices {
  int64_t outer = 1, count = 1, inner = 1;

  /// Of a tensor of this shape along `axis`; -1: one slice. InvalidArgument if there is no such
  /// axis.
  static absl::StatusOr<Slices> Along(const Shape& shape, int64_t axis) {
    Slices s;
    if (axis < -1 || axis >= shape.rank()) {
      return InvalidArgument("axis must be -1 or one of the ", shape.rank(),
                             " dimensions of the input of shape ", shape.ToString(), ", got ",
                             axis);
    }
    for (int d = 0; d < shape.rank(); ++d) {
      (axis == -1 || d > axis ? s.inner : d < axis ? s.outer : s.count) *= shape.dim(d);
    }
    return s;
  }

  /// Calls f(first element, number of elements) for the runs of slice i.
  template <typename F>
  void ForRuns(int64_t i, F&& f) const {
    for (int64_t o = 0; o < outer; ++o) f((o * count + i) * inner, inner);
  }
};

/// InvalidArgument unless input `i` has an element for each slice.
inline absl::Status CheckRangeSize(const KernelContext& ctx, int i, const Slices& slices) {
  if (ctx.input(i).num_elements() == slices.count) return absl::OkStatus();
  return InvalidArgument("a range must have an element for each of the ", slices.count,
                         " slices; input ", i, " has the shape ", ctx.input(i).shape().ToString());
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUANTIZATION_SLICES_H_
