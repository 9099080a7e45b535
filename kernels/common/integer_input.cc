#include "kernels/common/integer_input.h"

#include <algorithm>
#include <limits>

#include "devices/match_type.h"
#include "devices/status_macros.h"

namespace troupe {
absl::StatusOr<DimVector> ReadIntegers(const Tensor& tensor, std::string_view what) {
  DimVector read;
  const bool integers = MatchType<int32_t, int64_t, int16_t, int8_t, uint8_t, uint16_t>(
      tensor.type(), false, [&]<typename T>() {
        const absl::Span<const T> values = tensor.unchecked_values<T>();
        read.assign(values.begin(), values.end());
        return true;
      });
  if (integers) return read;
  return InvalidArgument(std::string(what), " must hold integers, got ",
                         ElementTypeName(tensor.type()));
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

absl::StatusOr<Shape> ReadShapeVector(const Tensor& tensor, std::string_view what) {
  if (tensor.rank() == 1) return ReadShape(tensor, what);
  return InvalidArgument(std::string(what), " must be a vector, got shape ",
                         tensor.shape().ToString());
}

absl::Status PutIntegers(KernelContext& ctx, int i, ElementType type,
                         absl::Span<const int64_t> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateHostOutput(i, type, Shape({n})));
  if (type == ElementType::kInt64) {
    std::copy(values.begin(), values.end(), out->mutable_data<int64_t>());
    return absl::OkStatus();
  }
  int32_t* to = out->mutable_data<int32_t>();
  for (const int64_t value : values) {
    if (value > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("the size ", value,
                             " does not fit the output type int32: ask for int64");
    }
    *to++ = static_cast<int32_t>(value);
  }
  return absl::OkStatus();
}

void StoreIntegers(const int64_t* from, int64_t n, ElementType type, void* to, int64_t at) {
  (void)MatchType<int64_t, int32_t, int16_t, uint16_t>(type, false, [&]<typename T>() {
    std::transform(from, from + n, static_cast<T*>(to) + at,
                   [](int64_t value) { return static_cast<T>(value); });
    return true;
  });
}

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(std::string(what), " must be in [", -rank, ", ", rank, "), got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace troupe
