#include "api/internal/literal.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "devices/half.h"
#include "devices/status_macros.h"
#include "kernels/type_switch.h"

namespace troupe {

namespace {

template <typename To, typename From>
bool Fits(From x) {
  if constexpr (!std::is_integral_v<To>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // The first power of two that is too large: exact, as the largest number may not be.
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    return x == std::trunc(x) && x < limit && x >= (std::is_signed_v<To> ? -limit : 0.0);
  } else {
    return std::in_range<To>(x);
  }
}

template <typename To, typename From>
absl::StatusOr<Tensor> Convert(const Tensor& value, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(type, value.shape()));
  const From* in = value.unchecked_data<From>();
  To* out = result.mutable_data<To>();
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (!Fits<To>(in[i])) {
      return InvalidArgument(+in[i], " is not a number of type ", ElementTypeName(type));
    }
    if constexpr (std::is_arithmetic_v<To>) {
      out[i] = static_cast<To>(in[i]);
    } else if constexpr (std::is_same_v<To, complex128>) {
      out[i] = To(static_cast<double>(in[i]));
    } else {
      out[i] = To(static_cast<float>(in[i]));
    }
  }
  return result;
}

template <typename From>
absl::StatusOr<Tensor> ConvertFrom(const Tensor& value, ElementType type) {
  absl::StatusOr<Tensor> result = value;
  const absl::Status known =
      SwitchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                 uint16_t, uint32_t, uint64_t, complex64, complex128>(
          type, [&]<typename To>() -> absl::Status {
            result = Convert<To, From>(value, type);
            return absl::OkStatus();
          });
  return known.ok() ? result : value;
}

}  // namespace

absl::StatusOr<Tensor> ConvertLiteral(const Tensor& value, ElementType type) {
  absl::StatusOr<Tensor> result = value;
  const absl::Status known =
      SwitchType<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                 uint64_t>(value.type(), [&]<typename From>() -> absl::Status {
        result = ConvertFrom<From>(value, type);
        return absl::OkStatus();
      });
  return known.ok() ? result : value;
}

}  // namespace troupe
