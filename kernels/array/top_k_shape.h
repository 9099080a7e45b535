/// What TopK on all types of device wants of its inputs.
#ifndef TROUPE_KERNELS_ARRAY_TOP_K_SHAPE_H_
#define TROUPE_KERNELS_ARRAY_TOP_K_SHAPE_H_

#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"
#include "kernels/common/integer_input.h"

namespace troupe {

/// The outputs' shape: the input's with the last dimension `k`.
inline absl::StatusOr<Shape> TopKShape(const Shape& input, int64_t k) {
  if (k < 0) return InvalidArgument("k must be at least 0, got ", k);
  if (input.rank() < 1) return InvalidArgument("the input must have at least one dimension");
  const int64_t n = input.dim(input.rank() - 1);
  if (n < k) return InvalidArgument("the input must have at least k = ", k, " columns, got ", n);
  Shape shape = input;
  shape.set_dim(input.rank() - 1, k);
  return shape;
}
/// The same for a scalar on the host.
inline absl::StatusOr<Shape> TopKShape(const Shape& input, const Tensor& k_input) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t k, ReadIntegerScalar(k_input, "k"));
  return TopKShape(input, k);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_TOP_K_SHAPE_H_
