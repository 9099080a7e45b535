#include "actors/session/step_costs.h"

#include "devices/device_name.h"

namespace troupe {

void StepCosts::Watch(const std::shared_ptr<const Plan>& plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  plans_.push_back(plan);
}

const CostModel& StepCosts::Update() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(plans_, [this](const std::weak_ptr<const Plan>& watched) {
    const std::shared_ptr<const Plan> plan = watched.lock();
    if (plan == nullptr) return true;
    ForEachMeasured(*plan,
                    [this](const std::string& node, double time_us,
                           absl::Span<const int64_t> output_bytes, const std::string& device_type) {
                      model_.Record(node, time_us, output_bytes, device_type);
                    });
    return false;
  });
  return model_;
}

void ForEachMeasured(const Plan& plan, NodeMeasured what) {
  const absl::StatusOr<DeviceName> device = DeviceName::Parse(plan.spec.device_name);
  const std::string type = device.ok() ? device->type.value_or("CPU") : "CPU";
  std::vector<int64_t> bytes;
  for (int i = 0; i < plan.num_nodes(); ++i) {
    // Copies between memories are called like what they copy.
    if (!plan.measured(i) || plan.op(i) == "_Upload" || plan.op(i) == "_Download") continue;
    bytes.clear();
    for (int port = 0; port < plan.nodes[i].num_outputs; ++port) {
      bytes.push_back(plan.output_bytes(i, port));
    }
    what(plan.name(i), 1e-3 * plan.cost_ns(i), bytes, type);
  }
}

}  // namespace troupe
