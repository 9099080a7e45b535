/// Sessions that run in this process.
#ifndef TROUPE_API_INTERNAL_LOCAL_SESSION_H_
#define TROUPE_API_INTERNAL_LOCAL_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "actors/runtime.h"
#include "api/internal/session_interface.h"

namespace troupe {

/// A session on the devices of `runtime`.
std::shared_ptr<SessionInterface> MakeLocalSession(std::shared_ptr<Graph> graph,
                                                   std::shared_ptr<Runtime> runtime,
                                                   const SessionOptions& options);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_LOCAL_SESSION_H_
