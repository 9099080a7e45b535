#include "api/internal/global_step.h"

#include <string>
#include <vector>

#include "api/training/variables.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// The collection in which TensorFlow keeps it, too.
constexpr char kReads[] = "global_step_read_op_cache";

}  // namespace

absl::StatusOr<Output> GlobalStepRead(const Scope& scope, const char* who) {
  Graph& graph = *scope.graph();
  const std::vector<std::string> known = graph.Collection(kReads);
  if (!known.empty()) return graph.FindOutput(known.front());
  if (graph.Collection(collections::kGlobalStep).empty()) {
    return absl::FailedPreconditionError(
        StrCat(who, " counts global steps, and the graph has none: make one by GlobalStep(scope)"));
  }
  const ModelVariable step = GlobalStep(scope);
  if (!step.valid()) return absl::FailedPreconditionError("the graph's global step is no variable");
  const Output read = step.Read(Scope(scope.graph()).NewSubScope("global_step_read"));
  if (!read.valid()) {
    return absl::FailedPreconditionError(
        "the graph's global step cannot be read: the graph is "
        "finalized");
  }
  graph.AddToCollection(kReads, read.name());
  return read;
}

absl::StatusOr<int64_t> StepNumber(const Tensor& tensor) {
  if (tensor.type() != ElementType::kInt32) return tensor.scalar<int64_t>();
  TROUPE_ASSIGN_OR_RETURN(const int32_t step, tensor.scalar<int32_t>());
  return step;
}

absl::StatusOr<int64_t> ReadStepNow(Session& session, const Output& step) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({step}));
  return StepNumber(values[0]);
}

}  // namespace troupe
