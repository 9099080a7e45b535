#include "devices/exceptions.h"

#include <exception>
#include <new>

#include "devices/log.h"
#include "devices/memory_use.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
// Made while there is memory; a copy shares it. Never destroyed: threads may end after `main`.
const absl::Status& out_of_memory = *new absl::Status(OutOfMemory("out of memory"));
const absl::Status& unknown_exception =
    *new absl::Status(absl::StatusCode::kInternal, "an exception of unknown type was thrown");
}  // namespace

absl::Status StatusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return out_of_memory;
    } catch (const std::exception& error) {
      return absl::InternalError(StrCat("an exception was thrown: ", error.what()));
    } catch (...) {
      return unknown_exception;
    }
  } catch (...) {  // No memory for the message.
    return out_of_memory;
  }
}

void ReportException() noexcept {
  const absl::Status status = StatusOfException();
  WriteLog(LogLevel::kError, "", {"exception"}, "going on after: ", status.message());
}

// An endless recursion names every call on its way out: what is longer says enough.
constexpr size_t kLongMessage = 16 << 10;

absl::Status WithContext(std::string_view before, const absl::Status& status,
                         std::string_view after) noexcept {
  if (status.ok()) return status;
  try {
    const std::string_view message(status.message().data(), status.message().size());
    if (message.size() > kLongMessage) return status;
    return absl::Status(status.code(), StrCat(before, message, after));
  } catch (...) {
    return status;
  }
}

}  // namespace troupe
