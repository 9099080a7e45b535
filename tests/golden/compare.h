/// Comparison of results with recorded ones.
#ifndef TROUPE_TESTS_GOLDEN_COMPARE_H_
#define TROUPE_TESTS_GOLDEN_COMPARE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "devices/shape.h"
#include "devices/tensor.h"

namespace troupe::golden {

struct Tolerance {
  double relative = 0;
  double absolute = 0;
  bool any_order = false;  ///< Compare the elements as multisets.
};

/// Empty if type and shape are equal and every element satisfies |got - want| <= absolute +
/// relative * |want|, NaN equal to NaN, infinities exactly; with both tolerances zero, if the
/// elements are the same bits. Else "got ..., want ..., max error ...". Of resources and variants
/// only type and shape are compared.
std::string CompareTensors(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

/// True if the code is one of `wanted`, canonical names joined by '|'.
bool CodeMatches(absl::StatusCode code, std::string_view wanted);

/// "INVALID_ARGUMENT: message" on one line.
std::string StatusLine(const absl::Status& status);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_COMPARE_H_
