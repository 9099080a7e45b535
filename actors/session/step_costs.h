/// What a session's steps cost, for signatures that are placed later.
#ifndef TROUPE_ACTORS_SESSION_STEP_COSTS_H_
#define TROUPE_ACTORS_SESSION_STEP_COSTS_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "actors/executor/plan.h"
#include "graph/passes/cost_model.h"

namespace troupe {

/// Learns from plans, which measure some of their runs anyway: running steps takes nothing more.
/// Thread-safe.
class StepCosts {
 public:
  /// What runs of `plan` cost is to be known. Forgotten when the plan is.
  void Watch(const std::shared_ptr<const Plan>& plan);
  /// Takes over what the plans have measured by now.
  const CostModel& Update();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const Plan>> plans_;
  CostModel model_;
};

/// Told of a node that has been measured, with the bytes of its outputs and the type of its device.
using NodeMeasured =
    absl::FunctionRef<void(const std::string& node, double time_us,
                           absl::Span<const int64_t> output_bytes, const std::string& device_type)>;
/// Calls `what` for each such node of a plan.
void ForEachMeasured(const Plan& plan, NodeMeasured what);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_STEP_COSTS_H_
