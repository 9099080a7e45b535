#include "actors/executor/plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {

// Where an estimate starts: what is worth another thread from the first run on.
constexpr uint32_t kExpensiveNs = 20000;

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Build(PlanSpec spec) {
  // A fetch of a reference is a snapshot at the end of the node that puts it out. Added last, it is the last
  // of that node's consumers, which the executor's stack takes first.
  for (PlanSpec::Input& fetch : spec.fetches) {
    if (!fetch.snapshot) continue;
    PlanSpec::Node node;
    node.name = StrCat("fetch of ", spec.nodes[fetch.node].name);
    node.op = "Snapshot";
    node.inputs = {fetch};
    node.num_outputs = 1;
    fetch = {static_cast<int>(spec.nodes.size()), 0, false};
    spec.nodes.push_back(std::move(node));
  }

  auto plan = std::shared_ptr<Plan>(new Plan);
  const int n = static_cast<int>(spec.nodes.size());
  plan->nodes_.resize(n);
  plan->initial_pending_.assign(n, 0);
  plan->costs_ = std::make_unique<std::atomic<uint32_t>[]>(n);
  std::vector<bool> is_feed(n, false);
  for (int feed : spec.feeds) is_feed[feed] = true;

  int32_t num_slots = 0;
  for (int i = 0; i < n; ++i) {
    const PlanSpec::Node& from = spec.nodes[i];
    if (from.inputs.size() > std::numeric_limits<uint16_t>::max() ||
        from.num_outputs > std::numeric_limits<uint16_t>::max()) {
      return absl::UnimplementedError(StrCat("node ", from.name, " has more than 65535 inputs or outputs"));
    }
    PlanNode& node = plan->nodes_[i];
    node.first_output = num_slots;
    node.num_outputs = static_cast<uint16_t>(from.num_outputs);
    num_slots += from.num_outputs;
  }
  plan->slot_uses_.assign(num_slots, 0);

  std::vector<std::vector<int32_t>> consumers(n);
  auto is_constant = [&](int node) { return !spec.nodes[node].constants.empty(); };
  for (int i = 0; i < n; ++i) {
    const PlanSpec::Node& from = spec.nodes[i];
    PlanNode& node = plan->nodes_[i];
    node.first_input = static_cast<int32_t>(plan->input_slots_.size());
    node.num_inputs = static_cast<uint16_t>(from.inputs.size());
    node.kernel = from.kernel.get();
    if (from.kernel != nullptr) {
      node.kind = from.kernel->async() != nullptr ? PlanNode::kAsync : PlanNode::kSync;
      plan->has_async_ |= node.kind == PlanNode::kAsync;
    } else if (!from.inputs.empty()) {
      node.kind = PlanNode::kPassThrough;
    }
    if (!is_constant(i) && !is_feed[i]) ++plan->num_executed_;
    plan->costs_[i].store(from.cost == KernelCost::kExpensive ? kExpensiveNs : 0,
                          std::memory_order_relaxed);
    for (const PlanSpec::Input& input : from.inputs) {
      if (input.node < 0 || input.node >= n || input.port < 0 ||
          input.port >= spec.nodes[input.node].num_outputs) {
        return absl::InternalError(StrCat("plan: node ", from.name, " has an input from nowhere"));
      }
      int32_t slot = plan->nodes_[input.node].first_output + input.port;
      if (input.snapshot) {
        const int32_t value_slot = num_slots++;
        plan->slot_uses_.push_back(1);
        plan->snapshots_.push_back({i, slot, value_slot});
        node.has_snapshots = true;
        slot = value_slot;
      } else {
        ++plan->slot_uses_[slot];
      }
      plan->input_slots_.push_back(slot);
      if (is_constant(input.node)) continue;
      consumers[input.node].push_back(i);
      ++plan->initial_pending_[i];
    }
    for (int before : from.control_inputs) {
      if (is_constant(before)) continue;
      consumers[before].push_back(i);
      ++plan->initial_pending_[i];
    }
  }
  for (int i = 0; i < n; ++i) {
    PlanNode& node = plan->nodes_[i];
    node.first_consumer = static_cast<int32_t>(plan->consumers_.size());
    node.num_consumers = static_cast<int32_t>(consumers[i].size());
    plan->consumers_.insert(plan->consumers_.end(), consumers[i].begin(), consumers[i].end());
    if (plan->initial_pending_[i] == 0 && !is_constant(i) && !is_feed[i]) plan->roots_.push_back(i);
    for (size_t port = 0; port < spec.nodes[i].constants.size(); ++port) {
      plan->constants_.emplace_back(node.first_output + static_cast<int32_t>(port),
                                    spec.nodes[i].constants[port]);
    }
  }
  for (const PlanSpec::Input& fetch : spec.fetches) {
    const int32_t slot = plan->nodes_[fetch.node].first_output + fetch.port;
    ++plan->slot_uses_[slot];
    plan->fetch_slots_.push_back(slot);
  }
  plan->spec_ = std::move(spec);
  return std::shared_ptr<const Plan>(plan);
}

const Plan::Snapshot* Plan::SnapshotsOf(int node) const {
  return &*std::lower_bound(snapshots_.begin(), snapshots_.end(), node,
                            [](const Snapshot& s, int n) { return s.node < n; });
}

void Plan::RecordCost(int node, uint64_t nanoseconds) const {
  std::atomic<uint32_t>& cost = costs_[node];
  const uint64_t old = cost.load(std::memory_order_relaxed);
  const uint64_t now = old == 0 ? nanoseconds : (3 * old + nanoseconds) / 4;
  cost.store(static_cast<uint32_t>(
                 std::min<uint64_t>(std::max<uint64_t>(now, 1), std::numeric_limits<uint32_t>::max())),
             std::memory_order_relaxed);
}

}  // namespace troupe
