/// Passing errors on, and building their messages.
#ifndef TROUPE_DEVICES_STATUS_MACROS_H_
#define TROUPE_DEVICES_STATUS_MACROS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

/// Returns the status of `EXPR` from the enclosing function unless it is OK.
#define TROUPE_RETURN_IF_ERROR(EXPR)                 \
  do {                                               \
    absl::Status troupe_status_ = (EXPR);            \
    if (!troupe_status_.ok()) return troupe_status_; \
  } while (false)

/// One name of two, each of which may be a macro: with `__LINE__`, one of its own for each use.
#define TROUPE_CONCAT_INNER(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)
#define TROUPE_ASSIGN_OR_RETURN_IMPL(TEMP, LHS, EXPR) \
  auto TEMP = (EXPR);                                 \
  if (!TEMP.ok()) return std::move(TEMP).status();    \
  LHS = std::move(TEMP).value()

/// `TROUPE_ASSIGN_OR_RETURN(auto x, F());`: x is the value of the StatusOr, or its error is
/// returned.
#define TROUPE_ASSIGN_OR_RETURN(LHS, EXPR) \
  TROUPE_ASSIGN_OR_RETURN_IMPL(TROUPE_CONCAT(troupe_statusor_, __LINE__), LHS, EXPR)

namespace troupe {

namespace internal {
// Debian's Abseil has a string_view of its own, which does not convert from the standard one.
inline absl::string_view StrCatPiece(std::string_view s) { return {s.data(), s.size()}; }
template <typename T>
const T& StrCatPiece(const T& value) {
  return value;
}
}  // namespace internal

/// absl::StrCat that takes std::string_view as well.
template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(internal::StrCatPiece(args)...);
}

/// InvalidArgument with the concatenated arguments as message.
template <typename... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(StrCat(args...));
}

}  // namespace troupe

#endif  // TROUPE_DEVICES_STATUS_MACROS_H_
