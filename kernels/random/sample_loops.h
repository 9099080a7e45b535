/// What the kernels of distributions with parameters share. An output has a sample for each set of
/// parameters, sets along the last dimensions. As TensorFlow counts them, output number i is sample
/// i % samples of set i / samples; each starts at a block of its own, so that they can be drawn in
/// any order.
#ifndef TROUPE_KERNELS_RANDOM_SAMPLE_LOOPS_H_
#define TROUPE_KERNELS_RANDOM_SAMPLE_LOOPS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"

namespace troupe {

/// InvalidArgument unless `output` ends with the sizes of `parameters`.
inline absl::Status CheckEndsWith(const Shape& output, const Shape& parameters) {
  const auto sizes = output.dims(), last = parameters.dims();
  if (sizes.size() >= last.size() && std::equal(last.rbegin(), last.rend(), sizes.rbegin())) {
    return absl::OkStatus();
  }
  return InvalidArgument("the shape must end with that of the parameters, ", parameters.ToString(),
                         ", got ", output.ToString());
}

/// Makes output 0 of the sizes in input 0 and then those of the parameters.
inline absl::StatusOr<Tensor*> AllocateSamples(KernelContext& ctx, ElementType type,
                                               const Shape& parameters) {
  TROUPE_ASSIGN_OR_RETURN(DimVector dims, ReadIntegerVector(ctx.input(0), "the shape"));
  dims.insert(dims.end(), parameters.dims().begin(), parameters.dims().end());
  absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return InvalidArgument("the shape: ", shape.status().message());
  return ctx.AllocateOutput(0, type, *shape);
}

/// Calls prepare(set) once for a stretch of samples of a set, and for each of them draw(i, what
/// that gave), the result of which goes to the output.
template <typename T, typename Prepare, typename Draw>
void DrawSamples(KernelContext& ctx, int64_t sets, double sample_ns, Tensor* output,
                 const Prepare& prepare, const Draw& draw) {
  const int64_t n = output->num_elements(), samples = n / sets;
  T* out = output->mutable_data<T>();
  ctx.ParallelFor(n, KernelContext::GrainFor(sample_ns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t set = i / samples, end_of_set = std::min(end, (set + 1) * samples);
      const auto prepared = prepare(set);
      for (; i < end_of_set; ++i) out[i % samples * sets + set] = draw(i, prepared);
    }
  });
}

/// A drawn number as an element. One that an integer type does not have becomes its lowest number,
/// as with the instructions that convert.
template <typename T>
T AsElement(double x) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double kEnd = -static_cast<double>(std::numeric_limits<T>::lowest());
    if (!(x > -kEnd && x < kEnd)) return std::numeric_limits<T>::lowest();
  }
  return static_cast<T>(x);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_SAMPLE_LOOPS_H_
