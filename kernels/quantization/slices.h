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
    if (shape.num_elements() == 0) return Slices{0, axis == -1 ? 1 : shape.dim(axis), 0};
    for (int d = 0; d < shape.rank(); ++d) {
      (axis == -1 || d > axis ? s.inner : d < axis ? s.outer : s.count) *= shape.dim(d);
    }
    return s;
  }

  /// Calls f(begin, end) for stretches of elements that make up slice i, on several threads; an
  /// element takes `nanoseconds`.
  template <typename F>
  void ForElements(KernelContext& ctx, int64_t i, double nanoseconds, F f) const {
    if (outer == 1) {
      ctx.ParallelFor(inner, KernelContext::GrainFor(nanoseconds),
                      [&](int64_t begin, int64_t end) { f(i * inner + begin, i * inner + end); });
      return;
    }
    const double run_ns = nanoseconds * static_cast<double>(inner);
    ctx.ParallelFor(outer, KernelContext::GrainFor(run_ns), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) f((o * count + i) * inner, (o * count + i + 1) * inner);
    });
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
