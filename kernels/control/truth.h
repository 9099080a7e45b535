/// What counts as true.
#ifndef TROUPE_KERNELS_CONTROL_TRUTH_H_
#define TROUPE_KERNELS_CONTROL_TRUTH_H_

#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// A scalar is true unless it is zero or an empty string; any other tensor if it has elements.
/// InvalidArgument for scalars of types that are neither numbers nor strings.
absl::StatusOr<bool> TruthOf(const Tensor& value);

}  // namespace troupe

#endif  // TROUPE_KERNELS_CONTROL_TRUTH_H_
