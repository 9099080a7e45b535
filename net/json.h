/// JSON from outside, read strictly and within bounds.
#ifndef TROUPE_NET_JSON_H_
#define TROUPE_NET_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace troupe {

/// InvalidArgument with the place of the error: what RFC 8259 does not allow, a member given twice,
/// or more bytes or levels than allowed.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, size_t max_bytes, int max_depth);

}  // namespace troupe

#endif  // TROUPE_NET_JSON_H_
