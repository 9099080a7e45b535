#include "actors/executor/plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {

// Where an estimate starts: what is worth another thread from the first run on.
constexpr uint32_t kExpensiveNs = 20000;

/// Numbers the nodes in the order in which one thread would run them (the newest ready one first),
/// so that a step walks through slots and nodes roughly from front to back.
void RenumberByExecution(PlanSpec* spec) {
  const int n = static_cast<int>(spec->nodes.size());
  std::vector<int> pending(n, 0);
  std::vector<std::vector<int>> consumers(n);
  for (int i = 0; i < n; ++i) {
    for (const PlanSpec::Input& input : spec->nodes[i].inputs) consumers[input.node].push_back(i);
    for (int before : spec->nodes[i].control_inputs) consumers[before].push_back(i);
    pending[i] =
        static_cast<int>(spec->nodes[i].inputs.size() + spec->nodes[i].control_inputs.size());
  }
  std::vector<int> ready, order;
  for (int i = 0; i < n; ++i) {
    if (pending[i] == 0) ready.push_back(i);
  }
  std::vector<int> new_index(n, -1);
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    new_index[node] = static_cast<int>(order.size());
    order.push_back(node);
    for (int consumer : consumers[node]) {
      if (--pending[consumer] == 0) ready.push_back(consumer);
    }
  }
  for (int i = 0; i < n; ++i) {  // Nodes on a cycle.
    if (new_index[i] >= 0) continue;
    new_index[i] = static_cast<int>(order.size());
    order.push_back(i);
  }
  std::vector<PlanSpec::Node> nodes;
  nodes.reserve(n);
  for (int old : order) {
    PlanSpec::Node& node = nodes.emplace_back(std::move(spec->nodes[old]));
    for (PlanSpec::Input& input : node.inputs) input.node = new_index[input.node];
    for (int& before : node.control_inputs) before = new_index[before];
  }
  spec->nodes = std::move(nodes);
  for (int& feed : spec->feeds) feed = new_index[feed];
  for (PlanSpec::Input& fetch : spec->fetches) fetch.node = new_index[fetch.node];
}

absl::Status CheckIndices(const PlanSpec& spec) {
  const int n = static_cast<int>(spec.nodes.size());
  auto good = [&](const PlanSpec::Input& input) {
    return input.node >= 0 && input.node < n && input.port >= 0 &&
           input.port < spec.nodes[input.node].num_outputs;
  };
  for (const PlanSpec::Node& node : spec.nodes) {
    for (const PlanSpec::Input& input : node.inputs) {
      if (!good(input)) {
        return absl::InternalError(StrCat("plan: node ", node.name, " has an input from nowhere"));
      }
    }
    for (int before : node.control_inputs) {
      if (before < 0 || before >= n) {
        return absl::InternalError(StrCat("plan: node ", node.name, " runs after nothing"));
      }
    }
  }
  for (const PlanSpec::Input& fetch : spec.fetches) {
    if (!good(fetch)) return absl::InternalError("plan: a fetch from nowhere");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Build(PlanSpec spec) {
  TROUPE_RETURN_IF_ERROR(CheckIndices(spec));
  // A fetch of a reference is a snapshot at the end of the node that puts it out. Added last, it is
  // the last of that node's consumers, which the executor's stack takes first.
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

  RenumberByExecution(&spec);
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
      return absl::UnimplementedError(
          StrCat("node ", from.name, " has more than 65535 inputs or outputs"));
    }
    PlanNode& node = plan->nodes_[i];
    node.first_output = num_slots;
    node.num_outputs = static_cast<uint16_t>(from.num_outputs);
    num_slots += from.num_outputs;
  }
  plan->slot_uses_.assign(num_slots, 0);

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
      if (!is_constant(input.node)) ++plan->initial_pending_[i];
    }
    for (int before : from.control_inputs) {
      if (!is_constant(before)) ++plan->initial_pending_[i];
    }
  }
  // The stack takes last what is pushed first: consumers and roots stand from the highest number to
  // the lowest.
  std::vector<std::vector<int32_t>> consumers(n);
  for (int i = n - 1; i >= 0; --i) {
    for (const PlanSpec::Input& input : spec.nodes[i].inputs) consumers[input.node].push_back(i);
    for (int before : spec.nodes[i].control_inputs) consumers[before].push_back(i);
    if (plan->initial_pending_[i] == 0 && !is_constant(i) && !is_feed[i]) plan->roots_.push_back(i);
  }
  for (int i = 0; i < n; ++i) {
    PlanNode& node = plan->nodes_[i];
    node.first_consumer = static_cast<int32_t>(plan->consumers_.size());
    if (is_constant(i)) consumers[i].clear();
    node.num_consumers = static_cast<int32_t>(consumers[i].size());
    plan->consumers_.insert(plan->consumers_.end(), consumers[i].begin(), consumers[i].end());
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
  cost.store(static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(now, 1),
                                                      std::numeric_limits<uint32_t>::max())),
             std::memory_order_relaxed);
}

}  // namespace troupe
