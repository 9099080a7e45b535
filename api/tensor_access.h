/// Checked access to the elements of tensors, for users.
#ifndef TROUPE_API_TENSOR_ACCESS_H_
#define TROUPE_API_TENSOR_ACCESS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"

namespace troupe {

/// The elements in row-major order; InvalidArgument if the tensor is not of type T. The span lives
/// as long as some copy of the tensor.
template <typename T>
absl::StatusOr<absl::Span<const T>> Values(const Tensor& tensor) {
  if (tensor.type() != kElementType<T>) {
    return InvalidArgument("the tensor's element type is ", ElementTypeName(tensor.type()),
                           ", not ", ElementTypeName(kElementType<T>));
  }
  return tensor.values<T>();
}

/// The value of a tensor of one element; InvalidArgument for other types and sizes.
template <typename T>
absl::StatusOr<T> ScalarValue(const Tensor& tensor) {
  TROUPE_ASSIGN_OR_RETURN(absl::Span<const T> values, Values<T>(tensor));
  if (values.size() != 1) {
    return InvalidArgument("a tensor of shape ", tensor.shape().ToString(), " is no scalar");
  }
  return values[0];
}

/// A tensor of the given shape with copies of the values; InvalidArgument if their number does not
/// fit.
template <typename T>
absl::StatusOr<Tensor> MakeTensor(absl::Span<const T> values, absl::Span<const int64_t> shape) {
  TROUPE_ASSIGN_OR_RETURN(Shape full, Shape::Create(shape));
  if (full.num_elements() != static_cast<int64_t>(values.size())) {
    return InvalidArgument("shape ", full.ToString(), " has ", full.num_elements(),
                           " elements, but ", values.size(), " values are given");
  }
  return Tensor::FromValues<T>(values, full);
}

}  // namespace troupe

#endif  // TROUPE_API_TENSOR_ACCESS_H_
