/// The global step, as hooks and savers read it.
#ifndef TROUPE_API_INTERNAL_GLOBAL_STEP_H_
#define TROUPE_API_INTERNAL_GLOBAL_STEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "api/scope.h"
#include "api/session.h"

namespace troupe {

/// A read of the graph's global step, added to the scope. FailedPrecondition without one; `who`
/// needs it.
absl::StatusOr<Output> GlobalStepOf(const Scope& scope, const char* who);

/// The number in a scalar of int32 or int64.
absl::StatusOr<int64_t> StepNumber(const Tensor& tensor);

/// Of now: a step that fetches it may see it before or after its own update.
absl::StatusOr<int64_t> ReadNow(Session& session, const Output& step);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_GLOBAL_STEP_H_
