/// Examples in JSON.
#ifndef TROUPE_KERNELS_IO_JSON_EXAMPLE_H_
#define TROUPE_KERNELS_IO_JSON_EXAMPLE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace troupe {

/// The serialized `Example` of its JSON form (protobuf's mapping): keys are in the order of the
/// text, lists are not packed. InvalidArgument if the text is none. Thread-safe.
absl::StatusOr<std::string> ExampleFromJson(std::string_view json);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_JSON_EXAMPLE_H_
