#include "actors/session/step_costs.h"

namespace troupe {

void StepCosts::Watch(const std::shared_ptr<const Plan>& plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  plans_.push_back(plan);
}

const CostModel& StepCosts::Update() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(plans_, [this](const std::weak_ptr<const Plan>& watched) {
    const std::shared_ptr<const Plan> plan = watched.lock();
    if (plan != nullptr) RecordPlan(*plan, &model_);
    return plan == nullptr;
  });
  return model_;
}

void RecordPlan(const Plan& plan, CostModel* model) {
  std::vector<int64_t> bytes;
  for (int i = 0; i < plan.num_nodes(); ++i) {
    if (!plan.measured(i)) continue;
    bytes.clear();
    for (int port = 0; port < plan.node(i).num_outputs; ++port) {
      bytes.push_back(plan.output_bytes(i, port));
    }
    model->Record(plan.name(i), 1e-3 * plan.cost_ns(i), bytes);
  }
}

}  // namespace troupe
