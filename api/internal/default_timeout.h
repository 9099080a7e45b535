/// A session whose runs have a timeout unless they bring one of their own.
#ifndef TROUPE_API_INTERNAL_DEFAULT_TIMEOUT_H_
#define TROUPE_API_INTERNAL_DEFAULT_TIMEOUT_H_

#include <memory>

#include "absl/time/time.h"
#include "api/internal/session_interface.h"

namespace troupe {

/// `session`, itself if `timeout` is infinite.
std::shared_ptr<SessionInterface> WithDefaultTimeout(std::shared_ptr<SessionInterface> session,
                                                     absl::Duration timeout);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_DEFAULT_TIMEOUT_H_
