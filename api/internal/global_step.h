/// The global step, as hooks and savers read it.
#ifndef TROUPE_API_INTERNAL_GLOBAL_STEP_H_
#define TROUPE_API_INTERNAL_GLOBAL_STEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "api/scope.h"
#include "api/session.h"

namespace troupe {

/// The graph's read of its global step that all hooks share: a step fetches it once. Made by the
/// first call. FailedPrecondition, which names `who`, if the graph has no global step.
absl::StatusOr<Output> GlobalStepRead(const Scope& scope, const char* who);

/// The number in a fetched global step, int32 or int64.
absl::StatusOr<int64_t> StepNumber(const Tensor& tensor);

/// Of now: a step that fetches it may see it before or after its own update.
absl::StatusOr<int64_t> ReadStepNow(Session& session, const Output& step);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_GLOBAL_STEP_H_
