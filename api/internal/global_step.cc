#include "api/internal/global_step.h"

#include <vector>

#include "api/training/variables.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<Output> GlobalStepOf(const Scope& scope, const char* who) {
  if (scope.graph()->Collection(collections::kGlobalStep).empty()) {
    return absl::FailedPreconditionError(
        StrCat(who, " counts global steps, and the graph has none: make one by GlobalStep(scope)"));
  }
  const ModelVariable step = GlobalStep(scope);
  if (!step.valid()) return absl::FailedPreconditionError("the graph's global step is no variable");
  return step.Read(scope.NewSubScope("hook"));
}

absl::StatusOr<int64_t> StepNumber(const Tensor& tensor) {
  if (tensor.type() != ElementType::kInt32) return tensor.scalar<int64_t>();
  TROUPE_ASSIGN_OR_RETURN(const int32_t step, tensor.scalar<int32_t>());
  return step;
}

absl::StatusOr<int64_t> ReadNow(Session& session, const Output& step) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({step}));
  return StepNumber(values[0]);
}

}  // namespace troupe
