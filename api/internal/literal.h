/// Numbers that are written down, in other types.
#ifndef TROUPE_API_INTERNAL_LITERAL_H_
#define TROUPE_API_INTERNAL_LITERAL_H_

#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// `value`, of a C++ arithmetic type, with elements of `type`. The same tensor if one of the two is
/// not a type of numbers: bool, strings and so on. InvalidArgument if an integer type has no such
/// number; floating types round.
absl::StatusOr<Tensor> ConvertLiteral(const Tensor& value, ElementType type);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_LITERAL_H_
