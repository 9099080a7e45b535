/// JSON from outside, read strictly and within bounds.
#ifndef TROUPE_NET_JSON_H_
#define TROUPE_NET_JSON_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe {

/// A JSON value. Numbers that are no integers of 64 bits are kept as text only. A value;
/// thread-compatible.
struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  bool integral = false;  ///< A number that `integer` holds exactly.
  int64_t integer = 0;
  std::string text;  ///< Of a string.
  std::vector<Json> items;
  std::map<std::string, Json> members;

  /// nullptr if this is no object or has no such member.
  const Json* Find(const std::string& name) const {
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  }
};

/// InvalidArgument with the place of the error: what RFC 8259 does not allow, a member given twice,
/// or more bytes or levels than allowed.
absl::StatusOr<Json> ParseJson(std::string_view text, size_t max_bytes, int max_depth);

/// `text` as a JSON string, quotes included.
std::string JsonQuoted(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_NET_JSON_H_
