#include "kernels/common/integer_input.h"

#include "absl/strings/str_cat.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

template <typename T>
DimVector Convert(const Tensor& tensor) {
  const absl::Span<const T> values = tensor.unchecked_values<T>();
  return DimVector(values.begin(), values.end());
}

}  // namespace

absl::StatusOr<DimVector> ReadIntegers(const Tensor& tensor, std::string_view what) {
  switch (tensor.type()) {
    case ElementType::kInt32:
      return Convert<int32_t>(tensor);
    case ElementType::kInt64:
      return Convert<int64_t>(tensor);
    case ElementType::kInt16:
      return Convert<int16_t>(tensor);
    case ElementType::kInt8:
      return Convert<int8_t>(tensor);
    case ElementType::kUint8:
      return Convert<uint8_t>(tensor);
    case ElementType::kUint16:
      return Convert<uint16_t>(tensor);
    default:
      return InvalidArgument(std::string(what), " must hold integers, got ",
                             ElementTypeName(tensor.type()));
  }
}

absl::StatusOr<DimVector> ReadIntegerVector(const Tensor& tensor, std::string_view what) {
  if (tensor.rank() != 1) {
    return InvalidArgument(std::string(what), " must be a vector, got shape ",
                           tensor.shape().ToString());
  }
  return ReadIntegers(tensor, what);
}

absl::StatusOr<int64_t> ReadIntegerScalar(const Tensor& tensor, std::string_view what) {
  if (tensor.rank() != 0) {
    return InvalidArgument(std::string(what), " must be a scalar integer, got shape ",
                           tensor.shape().ToString());
  }
  return ReadOneInteger(tensor, what);
}

absl::StatusOr<int64_t> ReadOneInteger(const Tensor& tensor, std::string_view what) {
  if (tensor.rank() > 1 || tensor.num_elements() != 1) {
    return InvalidArgument(std::string(what), " must be a scalar integer, got shape ",
                           tensor.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(tensor, what));
  return values[0];
}

absl::StatusOr<Shape> ReadShape(const Tensor& tensor, std::string_view what) {
  if (tensor.rank() > 1) {
    return InvalidArgument(std::string(what), " must be a vector of sizes, got shape ",
                           tensor.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegers(tensor, what));
  absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) {
    return InvalidArgument(std::string(what), ": ", shape.status().message());
  }
  return shape;
}

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(std::string(what), " must be in [", -rank, ", ", rank, "), got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace troupe
