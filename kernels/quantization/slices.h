/// Tensors as slices along an axis, each with a range of its own.
#ifndef TROUPE_KERNELS_QUANTIZATION_SLICES_H_
#define TROUPE_KERNELS_QUANTIZATION_SLICES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

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

  /// Calls f(i, n, out, in...) for all runs of n elements that slice i has, on several threads: f
  /// writes out[0] to out[n - 1]. An element takes `nanoseconds`.
  template <typename Out, typename F, typename... In>
  void Transform(KernelContext& ctx, double nanoseconds, Out* out, F f, const In*... in) const {
    if (AreShort()) {
      const double row_ns = nanoseconds * static_cast<double>(count * inner);
      ctx.ParallelFor(outer, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
        Gathered<Out> results;
        const auto one = [&](int64_t i, int64_t n, int64_t at, const auto*... runs) {
          f(i, n, results.data(), runs...);
          for (int64_t k = 0; k < n; k += inner, at += count * inner) {
            std::copy_n(results.data() + k, inner, out + at);
          }
        };
        ForGathered(begin, end, one, in...);
      });
      return;
    }
    ctx.ParallelFor(outer * count * inner, KernelContext::GrainFor(nanoseconds),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t next; begin < end; begin = next) {
                        next = std::min(end, (begin / inner + 1) * inner);
                        f(begin / inner % count, next - begin, out + begin, (in + begin)...);
                      }
                    });
  }

  /// Calls f(i, n, in) for all runs of slice i, on this thread.
  template <typename In, typename F>
  void ForEach(const In* in, F f) const {
    if (AreShort()) {
      ForGathered(
          0, outer, [&](int64_t i, int64_t n, int64_t, const In* run) { f(i, n, run); }, in);
    } else {
      for (int64_t r = 0; r < outer * count; ++r) f(r % count, inner, in + r * inner);
    }
  }

 private:
  static constexpr int64_t kGathered = 512;
  template <typename T>
  using Gathered = std::array<T, kGathered>;

  /// Whether runs are copied together: a call for each would take longer than its elements.
  bool AreShort() const { return inner < 32 && outer > 1 && count > 1; }

  /// Calls f(i, n, at, runs...) for n copied elements of slice i, of which the first is element
  /// `at`, from some of the rows [begin, end): as many as stay in a cache until the last slice has
  /// read them.
  template <typename F, typename... In>
  void ForGathered(int64_t begin, int64_t end, F f, const In*... in) const {
    constexpr int64_t kCached = 1 << 14;
    const int64_t row = count * inner;
    const int64_t rows = std::min(kGathered / inner, std::max<int64_t>(16, kCached / row));
    std::tuple<Gathered<In>...> copies;
    for (; begin < end; begin += rows) {
      const int64_t some = std::min(rows, end - begin);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = begin * row + i * inner;
        const auto gather = [&](const auto* from, auto& to) {
          for (int64_t r = 0; r < some; ++r) {
            std::copy_n(from + at + r * row, inner, to.data() + r * inner);
          }
          return to.data();
        };
        std::apply([&](auto&... to) { f(i, some * inner, at, gather(in, to)...); }, copies);
      }
    }
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
