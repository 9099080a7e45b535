#include "kernels/cuda/cuda_kernels.h"

#include "kernels/kernel_registry.h"

namespace troupe::cuda {

absl::Status BadIndex(const int64_t* values) {
  return InvalidArgument("indices: element ", values[0], " is ", values[1],
                         ", which is not in [0, ", values[2], ")");
}

std::vector<ElementType> MovedTypes() {
  std::vector<ElementType> types = PlainTypes();
  std::erase(types, ElementType::kInt32);
  return types;
}

absl::StatusOr<Number> NumberOf(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return Number::kHalf;
    case ElementType::kBfloat16:
      return Number::kBfloat16;
    case ElementType::kFloat:
      return Number::kFloat;
    case ElementType::kDouble:
      return Number::kDouble;
    case ElementType::kInt8:
      return Number::kInt8;
    case ElementType::kInt16:
      return Number::kInt16;
    case ElementType::kInt32:
      return Number::kInt32;
    case ElementType::kInt64:
      return Number::kInt64;
    case ElementType::kUint8:
      return Number::kUint8;
    case ElementType::kUint16:
      return Number::kUint16;
    case ElementType::kUint32:
      return Number::kUint32;
    case ElementType::kUint64:
      return Number::kUint64;
    case ElementType::kBool:
      return Number::kBool;
    case ElementType::kComplex64:
      return Number::kComplex64;
    case ElementType::kComplex128:
      return Number::kComplex128;
    default:
      return InvalidArgument("GPUs do not compute with ", ElementTypeName(type));
  }
}

}  // namespace troupe::cuda
