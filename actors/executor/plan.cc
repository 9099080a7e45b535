#include "actors/executor/plan.h"

#include <algorithm>
#include <limits>
#include <map>
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
    // A Merge goes on with its first input.
    if (spec->nodes[i].flow == FlowOp::kMerge) {
      pending[i] = 1 + static_cast<int>(spec->nodes[i].control_inputs.size());
    }
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
  if (spec->frames.size() > 1) {  // A frame's nodes stand together.
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return spec->nodes[a].frame < spec->nodes[b].frame; });
    for (int i = 0; i < n; ++i) new_index[order[i]] = i;
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

/// A Merge waits for events, which constants do not send: a node that passes the constant on does.
/// And it takes the value of a reference only from an input that has come.
void SendConstantsToMerges(PlanSpec* spec) {
  const int n = static_cast<int>(spec->nodes.size());
  for (int i = 0; i < n; ++i) {
    if (spec->nodes[i].flow != FlowOp::kMerge) continue;
    for (size_t k = 0; k < spec->nodes[i].inputs.size(); ++k) {
      const PlanSpec::Input input = spec->nodes[i].inputs[k];
      if (spec->nodes[input.node].constants.empty() && !input.snapshot) continue;
      PlanSpec::Node node;
      node.name = spec->nodes[input.node].name;
      node.op = spec->nodes[input.node].op;
      node.inputs = {input};
      node.num_outputs = 1;
      if (input.snapshot) node.frame = spec->nodes[i].frame;
      spec->nodes[i].inputs[k] = {static_cast<int>(spec->nodes.size()), 0, false};
      spec->nodes.push_back(std::move(node));
    }
  }
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
  if (spec.frames.empty()) {
    spec.frames.emplace_back();
  } else {
    SendConstantsToMerges(&spec);
  }
  RenumberByExecution(&spec);
  auto plan = std::shared_ptr<Plan>(new Plan);
  const int n = static_cast<int>(spec.nodes.size());
  plan->nodes_.resize(n);
  plan->initial_pending_.assign(n, 0);
  plan->costs_ = std::make_unique<std::atomic<uint32_t>[]>(n);
  int32_t num_outputs = 0;
  for (const PlanSpec::Node& node : spec.nodes) {
    plan->first_bytes_.push_back(num_outputs);
    num_outputs += node.num_outputs;
  }
  plan->output_bytes_ = std::make_unique<std::atomic<int64_t>[]>(num_outputs);
  for (int32_t i = 0; i < num_outputs; ++i) plan->output_bytes_[i] = -1;
  std::vector<bool> is_feed(n, false);
  for (int feed : spec.feeds) is_feed[feed] = true;

  // Slots are counted per frame, outputs in the frame of their consumers.
  std::vector<std::vector<int32_t>> uses(spec.frames.size());
  auto is_constant = [&](int node) { return !spec.nodes[node].constants.empty(); };
  std::vector<int> output_frame(n, 0);
  for (int i = 0; i < n; ++i) {
    const PlanSpec::Node& from = spec.nodes[i];
    if (from.inputs.size() > std::numeric_limits<uint16_t>::max() ||
        from.num_outputs > std::numeric_limits<uint16_t>::max()) {
      return absl::UnimplementedError(
          StrCat("node ", from.name, " has more than 65535 inputs or outputs"));
    }
    output_frame[i] = from.frame;
    if (from.flow == FlowOp::kExit) output_frame[i] = spec.frames[from.frame].parent;
    if (from.flow == FlowOp::kEnter || from.flow == FlowOp::kConstantEnter) {
      output_frame[i] = from.enters;
    }
    PlanNode& node = plan->nodes_[i];
    std::vector<int32_t>& slots = uses[output_frame[i]];
    node.first_output = static_cast<int32_t>(slots.size());
    node.num_outputs = static_cast<uint16_t>(from.num_outputs);
    slots.resize(slots.size() + from.num_outputs, 0);
  }

  std::vector<PlanFrame> frames(spec.frames.size());
  std::map<std::pair<int, std::pair<int, int>>, int32_t> constant_slots;  // In other frames.
  for (int i = 0; i < n; ++i) {
    const PlanSpec::Node& from = spec.nodes[i];
    PlanNode& node = plan->nodes_[i];
    node.first_input = static_cast<int32_t>(plan->input_slots_.size());
    node.num_inputs = static_cast<uint16_t>(from.inputs.size());
    node.kernel = from.kernel.get();
    if (from.flow != FlowOp::kNone) {
      node.kind = PlanNode::kFlow;
    } else if (from.kernel != nullptr) {
      node.on_device = from.spaces.AnyOnDevice();
      plan->uses_device_ |= node.on_device;
      node.kind = from.kernel->async() != nullptr ? PlanNode::kAsync
                  : node.on_device                ? PlanNode::kOnDevice
                                                  : PlanNode::kSync;
    } else if (!from.inputs.empty()) {
      node.kind = PlanNode::kPassThrough;
    }
    if (!is_constant(i) && !is_feed[i]) ++plan->num_executed_;
    plan->costs_[i].store(from.cost == KernelCost::kExpensive ? kExpensiveNs : 0,
                          std::memory_order_relaxed);
    for (const PlanSpec::Input& input : from.inputs) {
      int32_t slot = plan->nodes_[input.node].first_output + input.port;
      if (is_constant(input.node) && from.frame != 0) {
        auto [it, first] = constant_slots.emplace(
            std::make_pair(from.frame, std::make_pair(input.node, input.port)),
            static_cast<int32_t>(uses[from.frame].size()));
        if (first) {
          uses[from.frame].push_back(0);
          frames[from.frame].constants.emplace_back(it->second,
                                                    spec.nodes[input.node].constants[input.port]);
        }
        slot = it->second;
      } else if (input.snapshot) {
        const int32_t value_slot = static_cast<int32_t>(uses[from.frame].size());
        uses[from.frame].push_back(1);
        plan->snapshots_.push_back({i, slot, value_slot});
        node.has_snapshots = true;
        slot = value_slot;
      } else {
        ++uses[from.frame][slot];
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
    if (output_frame[fetch.node] != 0) {
      return absl::InternalError(
          StrCat("plan: fetch of ", spec.nodes[fetch.node].name, ", which is in a loop"));
    }
    ++uses[0][slot];
    plan->fetch_slots_.push_back(slot);
  }
  plan->num_root_slots_ = static_cast<int>(uses[0].size());
  for (size_t f = 0; f < frames.size(); ++f) {
    frames[f].num_slots = static_cast<int32_t>(uses[f].size());
    plan->frame_uses_.push_back(static_cast<int32_t>(plan->slot_uses_.size()));
    plan->slot_uses_.insert(plan->slot_uses_.end(), uses[f].begin(), uses[f].end());
  }
  if (spec.frames.size() > 1 || std::any_of(spec.nodes.begin(), spec.nodes.end(), [](auto& node) {
        return node.flow != FlowOp::kNone;
      })) {
    plan->BuildFlow(spec, std::move(frames), is_constant);
  }
  plan->spec_ = std::move(spec);
  return std::shared_ptr<const Plan>(plan);
}

void Plan::BuildFlow(const PlanSpec& spec, std::vector<PlanFrame> frames,
                     absl::FunctionRef<bool(int)> is_constant) {
  const int n = static_cast<int>(spec.nodes.size());
  std::vector<int32_t> child_index(frames.size(), 0);
  for (size_t f = 0; f < frames.size(); ++f) {
    frames[f].parent = spec.frames[f].parent;
    frames[f].num_enters = spec.frames[f].num_enters;
    frames[f].parallel_iterations = spec.frames[f].parallel_iterations;
    if (f > 0) child_index[f] = frames[frames[f].parent].num_children++;
  }
  flow_nodes_.resize(n);
  for (int i = 0; i < n; ++i) {
    const PlanSpec::Node& from = spec.nodes[i];
    FlowNode& node = flow_nodes_[i];
    PlanFrame& frame = frames[from.frame];
    node.op = from.flow;
    node.edge = from.edge;
    node.local = frame.num_nodes++;
    NodeState state{initial_pending_[i], 0};
    if (from.flow == FlowOp::kMerge) {
      // Constants send no event, and none of them feeds a Merge: see SendConstantsToMerges.
      const int32_t controls = state.pending - static_cast<int32_t>(from.inputs.size());
      state.pending = 2 * controls + 1;
      initial_pending_[i] = state.pending;
    }
    frame.initial.push_back(state);
    if (from.flow == FlowOp::kSend) frame.sends.push_back(i);
    if (from.flow == FlowOp::kEnter || from.flow == FlowOp::kConstantEnter) {
      node.enters = from.enters;
      node.child = child_index[from.enters];
    }
  }
  std::vector<std::vector<FlowEdge>> edges(n);
  for (int i = n - 1; i >= 0; --i) {
    const bool to_merge = flow_nodes_[i].op == FlowOp::kMerge;
    auto add = [&](int source, int32_t slot, int32_t input) {
      if (is_constant(source)) return;
      edges[source].push_back({i, flow_nodes_[i].local, slot, input, to_merge});
    };
    int32_t input = 0;
    for (const PlanSpec::Input& from : spec.nodes[i].inputs) {
      // A snapshot's input slot gets its value when the node starts; dead or alive is the
      // reference.
      add(from.node, nodes_[from.node].first_output + from.port, input++);
    }
    for (int before : spec.nodes[i].control_inputs) add(before, -1, -1);
  }
  for (int i = 0; i < n; ++i) {
    flow_nodes_[i].first_edge = static_cast<int32_t>(flow_edges_.size());
    flow_nodes_[i].num_edges = static_cast<int32_t>(edges[i].size());
    flow_edges_.insert(flow_edges_.end(), edges[i].begin(), edges[i].end());
  }
  frames_ = std::move(frames);
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

void Plan::RecordOutputs(int node, KernelContext& ctx) const {
  for (int i = 0; i < nodes_[node].num_outputs; ++i) {
    const Tensor& output = ctx.output(i);
    if (!output.valid()) continue;  // A reference.
    output_bytes_[first_bytes_[node] + i].store(static_cast<int64_t>(output.bytes()),
                                                std::memory_order_relaxed);
  }
}

bool Plan::measured(int node) const {
  const bool expensive = spec_.nodes[node].cost == KernelCost::kExpensive;
  return cost_ns(node) != (expensive ? kExpensiveNs : 0);
}

}  // namespace troupe
