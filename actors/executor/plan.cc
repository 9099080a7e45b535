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

bool Enters(const PlanSpec::Node& node) {
  return node.flow == FlowOp::kEnter || node.flow == FlowOp::kConstantEnter;
}

/// Where a node's outputs are consumed.
int OutputFrame(const PlanSpec& spec, const PlanSpec::Node& node) {
  if (node.flow == FlowOp::kExit) return spec.frames[node.frame].parent;
  return Enters(node) ? node.enters : node.frame;
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

/// A fetch of a reference is a snapshot at the end of the node that puts it out. Added last, it is
/// the last of that node's consumers, which the executor's stack takes first.
void AddFetchesOfReferences(PlanSpec* spec) {
  for (PlanSpec::Input& fetch : spec->fetches) {
    if (!fetch.snapshot) continue;
    PlanSpec::Node node;
    node.name = StrCat("fetch of ", spec->nodes[fetch.node].name);
    node.op = "Snapshot";
    node.inputs = {fetch};
    node.num_outputs = 1;
    fetch = {static_cast<int>(spec->nodes.size()), 0, false};
    spec->nodes.push_back(std::move(node));
  }
}

}  // namespace

/// Flattens a specification. Each step of `Build` needs what those before it have made.
class Plan::Builder {
 public:
  explicit Builder(PlanSpec spec) : spec_(std::move(spec)), plan_(new Plan) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Build() {
    TROUPE_RETURN_IF_ERROR(CheckIndices(spec_));
    AddFetchesOfReferences(&spec_);
    if (spec_.frames.empty()) {
      spec_.frames.emplace_back();
    } else {
      SendConstantsToMerges(&spec_);
    }
    RenumberByExecution(&spec_);
    n_ = static_cast<int>(spec_.nodes.size());
    MakeRoom();
    TROUPE_RETURN_IF_ERROR(NumberOutputs());
    for (int i = 0; i < n_; ++i) {
      AddNode(i);
      AddInputs(i);
    }
    AddConsumers();
    AddConstants();
    TROUPE_RETURN_IF_ERROR(AddFetches());
    AddUses();
    if (spec_.frames.size() > 1 ||
        std::any_of(spec_.nodes.begin(), spec_.nodes.end(),
                    [](const PlanSpec::Node& node) { return node.flow != FlowOp::kNone; })) {
      AddFrames();
      AddFlowNodes();
      AddFlowEdges();
    }
    plan_->spec = std::move(spec_);
    if (plan_->uses_device) {
      auto texts = std::make_shared<std::vector<std::string>>();
      for (int i = 0; i < n_; ++i) texts->push_back(plan_->NodeText(i));
      plan_->node_texts = std::move(texts);
    }
    return std::shared_ptr<const Plan>(std::move(plan_));
  }

 private:
  bool IsConstant(int node) const { return !spec_.nodes[node].constants.empty(); }

  void MakeRoom() {
    plan_->nodes.resize(n_);
    plan_->initial_pending.assign(n_, 0);
    plan_->costs_ = std::make_unique<std::atomic<uint32_t>[]>(n_);
    int32_t num_outputs = 0;
    for (const PlanSpec::Node& node : spec_.nodes) {
      plan_->first_bytes_.push_back(num_outputs);
      num_outputs += node.num_outputs;
    }
    plan_->output_bytes_ = std::make_unique<std::atomic<int64_t>[]>(num_outputs);
    for (int32_t i = 0; i < num_outputs; ++i) plan_->output_bytes_[i] = -1;
    is_feed_.resize(n_);
    for (int feed : spec_.feeds) is_feed_[feed] = true;
    uses_.resize(spec_.frames.size());
    frames_.resize(spec_.frames.size());
  }

  /// Outputs have slots in the frame of their consumers.
  absl::Status NumberOutputs() {
    for (int i = 0; i < n_; ++i) {
      const PlanSpec::Node& from = spec_.nodes[i];
      if (from.inputs.size() > std::numeric_limits<uint16_t>::max() ||
          from.num_outputs > std::numeric_limits<uint16_t>::max()) {
        return absl::UnimplementedError(
            StrCat("node ", from.name, " has more than 65535 inputs or outputs"));
      }
      PlanNode& node = plan_->nodes[i];
      std::vector<int32_t>& slots = uses_[OutputFrame(spec_, from)];
      node.first_output = static_cast<int32_t>(slots.size());
      node.num_outputs = static_cast<uint16_t>(from.num_outputs);
      slots.resize(slots.size() + from.num_outputs, 0);
    }
    return absl::OkStatus();
  }

  void AddNode(int i) {
    const PlanSpec::Node& from = spec_.nodes[i];
    PlanNode& node = plan_->nodes[i];
    node.first_input = static_cast<int32_t>(plan_->input_slots.size());
    node.num_inputs = static_cast<uint16_t>(from.inputs.size());
    node.kernel = from.kernel.get();
    if (from.flow != FlowOp::kNone) {
      node.kind = PlanNode::kFlow;
    } else if (from.kernel != nullptr) {
      node.on_device = from.spaces.AnyOnDevice();
      plan_->uses_device |= node.on_device;
      node.kind = from.kernel->async() != nullptr ? PlanNode::kAsync
                  : node.on_device                ? PlanNode::kOnDevice
                                                  : PlanNode::kSync;
    } else if (!from.inputs.empty()) {
      node.kind = PlanNode::kPassThrough;
    }
    if (!IsConstant(i) && !is_feed_[i]) ++plan_->num_executed;
    plan_->costs_[i].store(from.cost == KernelCost::kExpensive ? kExpensiveNs : 0,
                           std::memory_order_relaxed);
  }

  /// Where a node finds its inputs, and how many edges it waits for.
  void AddInputs(int i) {
    const PlanSpec::Node& node = spec_.nodes[i];
    for (const PlanSpec::Input& input : node.inputs) {
      plan_->input_slots.push_back(SlotFor(i, input));
      if (!IsConstant(input.node)) ++plan_->initial_pending[i];
    }
    for (int before : node.control_inputs) {
      if (!IsConstant(before)) ++plan_->initial_pending[i];
    }
  }

  int32_t SlotFor(int i, const PlanSpec::Input& input) {
    const int frame = spec_.nodes[i].frame;
    std::vector<int32_t>& slots = uses_[frame];
    const auto new_slot = static_cast<int32_t>(slots.size());
    const int32_t slot = plan_->nodes[input.node].first_output + input.port;
    if (IsConstant(input.node) && frame != 0) {
      // Each frame has a slot of its own for it.
      auto [it, first] = constant_slots_.try_emplace({frame, {input.node, input.port}}, new_slot);
      if (first) {
        slots.push_back(0);
        frames_[frame].constants.emplace_back(new_slot,
                                              spec_.nodes[input.node].constants[input.port]);
      }
      return it->second;
    }
    if (input.snapshot) {
      slots.push_back(1);
      plan_->snapshots.push_back({i, slot, new_slot});
      plan_->nodes[i].has_snapshots = true;
      return new_slot;
    }
    ++slots[slot];
    return slot;
  }

  /// The stack takes last what is pushed first: consumers and roots stand from the highest number
  /// to the lowest.
  void AddConsumers() {
    std::vector<std::vector<int32_t>> consumers(n_);
    for (int i = n_ - 1; i >= 0; --i) {
      for (const PlanSpec::Input& input : spec_.nodes[i].inputs) consumers[input.node].push_back(i);
      for (int before : spec_.nodes[i].control_inputs) consumers[before].push_back(i);
      if (plan_->initial_pending[i] == 0 && !IsConstant(i) && !is_feed_[i]) {
        plan_->roots.push_back(i);
      }
    }
    for (int i = 0; i < n_; ++i) {
      PlanNode& node = plan_->nodes[i];
      node.first_consumer = static_cast<int32_t>(plan_->consumers.size());
      if (IsConstant(i)) continue;
      node.num_consumers = static_cast<int32_t>(consumers[i].size());
      plan_->consumers.insert(plan_->consumers.end(), consumers[i].begin(), consumers[i].end());
    }
  }

  void AddConstants() {
    for (int i = 0; i < n_; ++i) {
      int32_t slot = plan_->nodes[i].first_output;
      for (const Tensor& value : spec_.nodes[i].constants) {
        plan_->constants.emplace_back(slot++, value);
      }
    }
  }

  absl::Status AddFetches() {
    for (const PlanSpec::Input& fetch : spec_.fetches) {
      const int32_t slot = plan_->nodes[fetch.node].first_output + fetch.port;
      if (OutputFrame(spec_, spec_.nodes[fetch.node]) != 0) {
        return absl::InternalError(
            StrCat("plan: fetch of ", spec_.nodes[fetch.node].name, ", which is in a loop"));
      }
      ++uses_[0][slot];
      plan_->fetch_slots.push_back(slot);
    }
    return absl::OkStatus();
  }

  void AddUses() {
    plan_->num_slots = static_cast<int>(uses_[0].size());
    for (const std::vector<int32_t>& uses : uses_) {
      plan_->frame_uses.push_back(static_cast<int32_t>(plan_->slot_uses.size()));
      plan_->slot_uses.insert(plan_->slot_uses.end(), uses.begin(), uses.end());
    }
  }

  // With control flow.

  void AddFrames() {
    child_index_.resize(frames_.size());
    for (size_t f = 0; f < frames_.size(); ++f) {
      frames_[f].num_slots = static_cast<int32_t>(uses_[f].size());
      frames_[f].parent = spec_.frames[f].parent;
      frames_[f].num_enters = spec_.frames[f].num_enters;
      frames_[f].parallel_iterations = spec_.frames[f].parallel_iterations;
      if (f > 0) child_index_[f] = frames_[frames_[f].parent].num_children++;
    }
    plan_->frames = std::move(frames_);
  }

  void AddFlowNodes() {
    plan_->flow_nodes.resize(n_);
    for (int i = 0; i < n_; ++i) {
      const PlanSpec::Node& from = spec_.nodes[i];
      FlowNode& node = plan_->flow_nodes[i];
      PlanFrame& frame = plan_->frames[from.frame];
      node.op = from.flow;
      node.edge = from.edge;
      node.local = frame.num_nodes++;
      NodeState state{plan_->initial_pending[i], 0};
      if (from.flow == FlowOp::kMerge) {
        // Constants send no event, and none of them feeds a Merge: see SendConstantsToMerges.
        const int32_t controls = state.pending - static_cast<int32_t>(from.inputs.size());
        state.pending = 2 * controls + 1;
        plan_->initial_pending[i] = state.pending;
      }
      frame.initial.push_back(state);
      if (from.flow == FlowOp::kSend) frame.sends.push_back(i);
      if (Enters(from)) {
        node.enters = from.enters;
        node.child = child_index_[from.enters];
      }
    }
  }

  void AddFlowEdges() {
    std::vector<FlowNode>& nodes = plan_->flow_nodes;
    std::vector<std::vector<FlowEdge>> edges(n_);
    for (int i = n_ - 1; i >= 0; --i) {
      auto add = [&](int source, int32_t slot, int32_t input) {
        if (IsConstant(source)) return;
        edges[source].push_back({i, nodes[i].local, slot, input, nodes[i].op == FlowOp::kMerge});
      };
      int32_t input = 0;
      for (const PlanSpec::Input& from : spec_.nodes[i].inputs) {
        // A snapshot's input slot gets its value when the node starts; dead or alive is the
        // reference.
        add(from.node, plan_->nodes[from.node].first_output + from.port, input++);
      }
      for (int before : spec_.nodes[i].control_inputs) add(before, -1, -1);
    }
    for (int i = 0; i < n_; ++i) {
      nodes[i].first_edge = static_cast<int32_t>(plan_->flow_edges.size());
      nodes[i].num_edges = static_cast<int32_t>(edges[i].size());
      plan_->flow_edges.insert(plan_->flow_edges.end(), edges[i].begin(), edges[i].end());
    }
  }

  PlanSpec spec_;
  std::unique_ptr<Plan> plan_;
  int n_ = 0;  ///< Nodes.
  std::vector<bool> is_feed_;
  std::vector<std::vector<int32_t>> uses_;  ///< Per frame: of its slots.
  std::vector<PlanFrame> frames_;
  std::vector<int32_t> child_index_;  ///< Per frame: which of its parent's children it is.
  /// Of constants in frames other than the root: by frame, node and output.
  std::map<std::pair<int, std::pair<int, int>>, int32_t> constant_slots_;
};

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Build(PlanSpec spec) {
  return Builder(std::move(spec)).Build();
}

std::string Plan::NodeText(int node) const {
  return StrCat("node ", name(node), " (", op(node), ")");
}

int Plan::ProducerOf(int frame, int32_t slot) const {
  for (int i = 0; i < num_nodes(); ++i) {
    const int32_t output = slot - nodes[i].first_output;
    if (output >= 0 && output < nodes[i].num_outputs && OutputFrame(spec, spec.nodes[i]) == frame) {
      return i;
    }
  }
  return -1;
}

const Plan::Snapshot* Plan::SnapshotsOf(int node) const {
  return &*std::lower_bound(snapshots.begin(), snapshots.end(), node,
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
  for (int i = 0; i < nodes[node].num_outputs; ++i) {
    const Tensor& output = ctx.output(i);
    if (!output.valid()) continue;  // A reference.
    output_bytes_[first_bytes_[node] + i].store(static_cast<int64_t>(output.bytes()),
                                                std::memory_order_relaxed);
  }
}

bool Plan::measured(int node) const {
  const bool expensive = spec.nodes[node].cost == KernelCost::kExpensive;
  return cost_ns(node) != (expensive ? kExpensiveNs : 0);
}

}  // namespace troupe
