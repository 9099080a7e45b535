#include "kernels/reduce/range_size.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "devices/status_macros.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status CheckScalar(const Tensor& t, const char* name) {
  if (t.rank() == 0 || (t.rank() == 1 && t.num_elements() == 1)) return absl::OkStatus();
  return InvalidArgument(name, " must be a scalar, got shape ", t.shape().ToString());
}

// ceil(|limit - start| / |delta|) without overflow; the differences of 64-bit numbers fit 64
// unsigned bits.
uint64_t IntegerCount(int64_t start, int64_t limit, int64_t delta) {
  const uint64_t from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit);
  const uint64_t distance = delta > 0 ? to - from : from - to;
  const uint64_t step =
      delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  return distance / step + (distance % step != 0 ? 1 : 0);
}

template <typename T>
absl::Status Count(T start, T limit, T delta, int64_t* n) {
  using Value = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const Value first = start, last = limit, step = delta;
  if (!(step < 0 || step > 0)) return InvalidArgument("delta must not be 0 or NaN, got ", step);
  if (!(step > 0 ? first <= last : first >= last)) {
    return InvalidArgument("start must be ", step > 0 ? "<=" : ">=", " limit when delta is ",
                           step > 0 ? "> 0" : "< 0", ", got start ", first, " and limit ", last);
  }
  if constexpr (std::is_integral_v<T>) {
    const uint64_t count = IntegerCount(first, last, step);
    *n = count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
             ? -1
             : static_cast<int64_t>(count);
  } else {
    const double count = std::ceil(std::abs((last - first) / step));
    *n = count < 9.2e18 ? static_cast<int64_t>(count) : -1;
  }
  if (*n < 0) {
    return InvalidArgument("the range from ", first, " to ", last, " by ", step,
                           " has too many elements");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> RangeSize(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  TROUPE_RETURN_IF_ERROR(CheckScalar(start, "start"));
  TROUPE_RETURN_IF_ERROR(CheckScalar(limit, "limit"));
  TROUPE_RETURN_IF_ERROR(CheckScalar(delta, "delta"));
  int64_t n = 0;
  TROUPE_RETURN_IF_ERROR((SwitchType<float, double, half, bfloat16, int32_t, int64_t>(
      start.type(), [&]<typename T>() -> absl::Status {
        return Count(start.unchecked_scalar<T>(), limit.unchecked_scalar<T>(),
                     delta.unchecked_scalar<T>(), &n);
      })));
  return n;
}

}  // namespace troupe
