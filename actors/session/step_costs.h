/// What a session's steps cost, for signatures that are placed later.
#ifndef TROUPE_ACTORS_SESSION_STEP_COSTS_H_
#define TROUPE_ACTORS_SESSION_STEP_COSTS_H_

#include <memory>
#include <mutex>
#include <vector>

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

/// Adds what a plan has measured to `model`.
void RecordPlan(const Plan& plan, CostModel* model);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_STEP_COSTS_H_
