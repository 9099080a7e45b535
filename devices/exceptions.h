/// Exceptions at borders: code of others, and allocations, may throw; what calls them returns a
/// status.
#ifndef TROUPE_DEVICES_EXCEPTIONS_H_
#define TROUPE_DEVICES_EXCEPTIONS_H_

#include <string_view>
#include <type_traits>

#include "absl/status/status.h"

namespace troupe {

/// The exception that is being handled: ResourceExhausted for std::bad_alloc, otherwise Internal
/// with its text. For use in a `catch (...)`. Needs no memory where there is none.
absl::Status StatusOfException() noexcept;
/// Logs it as an error.
void ReportException() noexcept;

/// What `f` returns, a Status or StatusOr; an exception out of it becomes its status.
template <typename F>
std::invoke_result_t<F&> CatchExceptions(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return StatusOfException();
  }
}

/// Calls `f`, and logs what it throws: for the loops of threads that serve many, where
/// whoever can be told has been.
template <typename F>
void KeepGoing(F&& f) noexcept {
  try {
    f();
  } catch (...) {
    ReportException();
  }
}

/// `status` with `before` and `after` around its message; as it is if there is no memory for that,
/// or if the message is very long.
absl::Status WithContext(std::string_view before, const absl::Status& status,
                         std::string_view after = {}) noexcept;

}  // namespace troupe

#endif  // TROUPE_DEVICES_EXCEPTIONS_H_
