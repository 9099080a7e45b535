/// Checked access to the elements of tensors, for users.
#ifndef TROUPE_API_TENSOR_ACCESS_H_
#define TROUPE_API_TENSOR_ACCESS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The elements in row-major order, as `tensor.values<T>()`.
template <typename T>
absl::StatusOr<absl::Span<const T>> Values(const Tensor& tensor) {
  return tensor.values<T>();
}

/// The value of a tensor of one element, as `tensor.scalar<T>()`.
template <typename T>
absl::StatusOr<T> ScalarValue(const Tensor& tensor) {
  return tensor.scalar<T>();
}

/// A tensor of the given shape with copies of the values; InvalidArgument if their number does not
/// fit.
template <typename T>
absl::StatusOr<Tensor> MakeTensor(absl::Span<const T> values, absl::Span<const int64_t> shape) {
  TROUPE_ASSIGN_OR_RETURN(Shape full, Shape::Create(shape));
  return Tensor::FromValues<T>(values, full);
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TENSOR_ACCESS_H_
