#include "tests/graph/passes/partition_player.h"

#include <algorithm>
#include <cmath>

#include "devices/status_macros.h"
#include "graph/passes/frames.h"

namespace troupe {
namespace {

double NumberOf(const Tensor& tensor) {
  if (tensor.num_elements() == 0) return 0;
  switch (tensor.type()) {
    case ElementType::kFloat:
      return tensor.unchecked_data<float>()[0];
    case ElementType::kInt32:
      return tensor.unchecked_data<int32_t>()[0];
    case ElementType::kBool:
      return tensor.unchecked_data<bool>()[0];
    default:
      return 0;
  }
}

bool IsInside(const std::vector<std::pair<std::string, int>>& tag,
              const std::vector<std::pair<std::string, int>>& first) {
  const size_t depth = first.size();
  return tag.size() >= depth && std::equal(first.begin(), first.end() - 1, tag.begin()) &&
         tag[depth - 1].first == first.back().first;
}

}  // namespace

PartitionPlayer::PartitionPlayer(const PartitionedGraph& graph, uint32_t seed)
    : graph_(graph), random_(seed) {
  for (const DevicePartition& partition : graph.partitions) {
    Part& part = parts_.emplace_back();
    part.subgraph = &partition.subgraph;
    const std::vector<SubNode>& nodes = partition.subgraph.nodes;
    part.consumers.resize(nodes.size());
    part.waits_for.assign(nodes.size(), 0);
    for (const SubNode& node : nodes) {
      part.wild.push_back(node.kind == SubNode::Kind::kConstant && node.control_inputs.empty());
    }
    for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
      for (size_t k = 0; k < nodes[i].inputs.size(); ++k) {
        const SubOutput& input = nodes[i].inputs[k];
        part.consumers[input.node].push_back({i, static_cast<int32_t>(k), input.port});
        if (!part.wild[input.node]) ++part.waits_for[i];
      }
      for (int32_t control : nodes[i].control_inputs) {
        part.consumers[control].push_back({i, -1, 0});
        ++part.waits_for[i];
      }
    }
  }
}

std::vector<PlayedFetch> PartitionPlayer::Play(const std::vector<double>& feeds) {
  feeds_ = feeds;
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (size_t i = 0; i < parts_[p].waits_for.size(); ++i) {
      if (parts_[p].waits_for[i] == 0 && !parts_[p].wild[i]) {
        ready_.push_back({static_cast<int32_t>(p), static_cast<int32_t>(i), {}, false});
      }
    }
  }
  do {
    while (!ready_.empty() && num_fired < 1000000) {
      std::swap(ready_[random_() % ready_.size()], ready_.back());
      const Event event = std::move(ready_.back());
      ready_.pop_back();
      Fire(event);
    }
  } while (EndLoops());
  for (const auto& [key, value] : sent_) errors.push_back(StrCat("nobody takes ", key.first));
  for (const auto& [key, value] : waiting_) {
    errors.push_back(StrCat("nobody sends ", key.first, " in depth ", key.second.size()));
  }
  std::vector<PlayedFetch> fetches(graph_.fetches.size());
  for (size_t f = 0; f < fetches.size(); ++f) {
    const PartitionPlace place = graph_.fetches[f];
    const SubOutput at = parts_[place.partition].subgraph->fetches[place.index];
    const SubNode& node = parts_[place.partition].subgraph->nodes[at.node];
    if (parts_[place.partition].wild[at.node]) {
      fetches[f] = {true, false, NumberOf(node.values[at.port])};
      continue;
    }
    auto found = root_outputs_.find({place.partition, at.node});
    if (found == root_outputs_.end()) continue;
    const Value& value = found->second[at.port];
    fetches[f] = {true, value.dead, value.dead ? 0 : value.number};
  }
  return fetches;
}

PartitionPlayer::Value PartitionPlayer::Input(int32_t p, int32_t node, Instance& instance, int k,
                                              bool wants_ref) {
  const SubOutput input = parts_[p].subgraph->nodes[node].inputs[k];
  if (parts_[p].wild[input.node]) {
    Value value;
    value.number = NumberOf(parts_[p].subgraph->nodes[input.node].values[input.port]);
    return value;
  }
  Value value = instance.inputs[k];
  if (!wants_ref && !value.variable.empty()) {
    value.number = variables_[value.variable];
    value.variable.clear();
  }
  return value;
}

void PartitionPlayer::Fire(const Event& event) {
  ++num_fired;
  const int32_t p = event.partition, i = event.node;
  Part& part = parts_[p];
  const SubNode& node = part.subgraph->nodes[i];
  const Node& original = *node.original;
  const std::string& op = original.op();
  const FlowOp flow = node.kind == SubNode::Kind::kOp ? FlowOpOf(original) : FlowOp::kNone;
  Instance& instance = part.instances[{i, event.tag}];
  auto input = [&](int k) { return Input(p, i, instance, k, IsRefType(original.input_type(k))); };
  std::vector<Value> out(std::max(1, node.num_outputs()));
  if (op == "_Send") {
    ++num_sent;
    Value value;
    if (!event.dead) value = input(0);
    value.dead = event.dead;
    const auto key =
        std::make_pair(original.attrs().GetOr<std::string>("tensor_name", ""), event.tag);
    auto waiting = waiting_.find(key);
    if (waiting != waiting_.end()) {
      const Event receiver = waiting->second;
      waiting_.erase(waiting);
      Deliver(receiver.partition, receiver.node, receiver.tag, {value});
    } else if (!sent_.emplace(key, value).second) {
      errors.push_back(StrCat("sent twice: ", key.first));
    }
    return;
  }
  if (op == "_Recv" && !event.dead) {
    const auto key =
        std::make_pair(original.attrs().GetOr<std::string>("tensor_name", ""), event.tag);
    auto sent = sent_.find(key);
    if (sent != sent_.end()) {
      const Value value = sent->second;
      sent_.erase(sent);
      Deliver(p, i, event.tag, {value});
    } else if (!waiting_.emplace(key, event).second) {
      errors.push_back(StrCat("received twice: ", key.first));
    }
    return;
  }
  if (flow == FlowOp::kExit) {
    if (event.dead) {
      part.dead_exits[event.tag].push_back(i);
      return;
    }
    Tag around = event.tag;
    around.pop_back();
    out[0] = input(0);
    Deliver(p, i, around, out);
    return;
  }
  if (flow == FlowOp::kNextIteration) {
    if (event.dead) return;
    Tag first = event.tag, next = event.tag;
    first.back().second = 0;
    ++next.back().second;
    int& last = part.last_iteration[first];
    out[0] = input(0);
    Deliver(p, i, next, out);
    if (next.back().second > last) {
      last = next.back().second;
      const auto invariants = part.invariants[first];
      for (const auto& [enter, value] : invariants) Deliver(p, enter, next, {value});
    }
    return;
  }
  if (flow == FlowOp::kEnter || flow == FlowOp::kConstantEnter) {
    Tag inside = event.tag;
    inside.emplace_back(original.attrs().GetOr<std::string>("frame_name", ""), 0);
    const int last = part.last_iteration.emplace(inside, 0).first->second;
    if (!event.dead) out[0] = input(0);
    out[0].dead = event.dead;
    if (flow == FlowOp::kConstantEnter) part.invariants[inside].emplace_back(i, out[0]);
    const Tag first = inside;
    for (int k = 0; k <= (flow == FlowOp::kConstantEnter ? last : 0); ++k) {
      inside.back().second = k;
      Deliver(p, i, inside, out);
    }
    return;
  }
  if (event.dead && flow != FlowOp::kControlTrigger) {
    for (Value& value : out) value.dead = true;
  } else if (node.kind == SubNode::Kind::kFeed) {
    for (size_t f = 0; f < part.subgraph->feeds.size(); ++f) {
      if (part.subgraph->feeds[f] == i) {
        out[0].number = feeds_[graph_.partitions[p].feeds[f]];
      }
    }
  } else if (flow == FlowOp::kSwitch) {
    const bool pred = input(1).number != 0;
    out[pred] = input(0);
    out[!pred].dead = true;
  } else if (flow == FlowOp::kMerge) {
    out[0] = input(instance.live_input);
    out[1].number = instance.live_input;
  } else if (op == "Const") {
    Tensor value;
    if (original.attrs().Get("value", &value).ok()) out[0].number = NumberOf(value);
  } else if (op == "VariableV2") {
    out[0].variable = original.name();
  } else if (op == "AssignAdd") {
    const Value ref = input(0);
    variables_[ref.variable] += input(1).number;
    out[0] = ref;
  } else if (op == "AddV2") {
    out[0].number = input(0).number + input(1).number;
  } else if (op == "Sub") {
    out[0].number = input(0).number - input(1).number;
  } else if (op == "Minimum") {
    out[0].number = std::min(input(0).number, input(1).number);
  } else if (op == "Less") {
    out[0].number = input(0).number < input(1).number;
  } else if (!node.inputs.empty()) {
    out[0] = input(0);
    if (op == "Neg") out[0].number = -out[0].number;
  }
  Deliver(p, i, event.tag, out);
}

void PartitionPlayer::Deliver(int32_t p, int32_t node, const Tag& tag,
                              const std::vector<Value>& outputs) {
  Part& part = parts_[p];
  const SubNode& sub = part.subgraph->nodes[node];
  const FlowOp flow = sub.kind == SubNode::Kind::kOp ? FlowOpOf(*sub.original) : FlowOp::kNone;
  if (tag.empty()) root_outputs_[{p, node}] = outputs;
  bool all_dead = true;
  for (const Value& value : outputs) all_dead &= value.dead;
  for (const Consumer& consumer : part.consumers[node]) {
    Value value;
    value.dead = all_dead;
    if (consumer.input >= 0) value = outputs[consumer.port];
    Arrive(p, consumer, tag, value, flow == FlowOp::kEnter || flow == FlowOp::kConstantEnter);
  }
}

void PartitionPlayer::Arrive(int32_t p, const Consumer& consumer, const Tag& tag,
                             const Value& value, bool from_enter) {
  Part& part = parts_[p];
  const SubNode& node = part.subgraph->nodes[consumer.node];
  Instance& instance = part.instances[{consumer.node, tag}];
  if (instance.fired && FlowOpOf(*node.original) != FlowOp::kMerge) {
    errors.push_back(StrCat("too many inputs: ", node.original->name()));
    return;
  }
  if (consumer.input < 0) {
    ++instance.controls;
    instance.any_dead |= value.dead;
  } else {
    if (instance.inputs.count(consumer.input) > 0) {
      errors.push_back(StrCat("an input comes twice: ", node.original->name()));
    }
    instance.inputs[consumer.input] = value;
    if (value.dead) {
      instance.any_dead = true;
      instance.dead_inputs += from_enter ? 100 : 1;
    } else if (instance.live_input < 0) {
      instance.live_input = consumer.input;
    }
  }
  if (instance.fired) return;
  if (FlowOpOf(*node.original) == FlowOp::kMerge) {
    if (instance.controls < static_cast<int>(node.control_inputs.size())) return;
    const bool dead = instance.dead_inputs >= static_cast<int>(node.inputs.size());
    if (instance.live_input < 0 && !dead) return;
    instance.fired = true;
    ready_.push_back({p, consumer.node, tag, instance.live_input < 0});
    return;
  }
  if (instance.controls + static_cast<int>(instance.inputs.size()) <
      part.waits_for[consumer.node]) {
    return;
  }
  instance.fired = true;
  ready_.push_back({p, consumer.node, tag, instance.any_dead});
}

/// When nothing moves: loops in which nobody waits are over, and their dead exits are told.
bool PartitionPlayer::EndLoops() {
  bool any = false;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    // Innermost first.
    std::vector<Tag> loops;
    for (const auto& [first, last] : part.last_iteration) loops.push_back(first);
    std::sort(loops.begin(), loops.end(),
              [](const Tag& a, const Tag& b) { return a.size() > b.size(); });
    for (const Tag& first : loops) {
      bool busy = false;
      for (const auto& [key, event] : waiting_) {
        busy |= event.partition == static_cast<int32_t>(p) && IsInside(key.second, first);
      }
      for (const auto& [tag, exits] : part.dead_exits) {
        busy |= tag.size() > first.size() && IsInside(tag, first) && !exits.empty();
      }
      if (busy) continue;
      Tag last = first, around = first;
      last.back().second = part.last_iteration[first];
      around.pop_back();
      std::vector<int32_t> exits;
      exits.swap(part.dead_exits[last]);
      part.last_iteration.erase(first);
      for (auto it = part.dead_exits.begin(); it != part.dead_exits.end();) {
        it = IsInside(it->first, first) ? part.dead_exits.erase(it) : std::next(it);
      }
      for (int32_t exit : exits) {
        Value value;
        value.dead = true;
        Deliver(static_cast<int32_t>(p), exit, around, {value});
        any = true;
      }
      if (any) return true;
    }
  }
  return any || !ready_.empty();
}

PartitionedGraph AsOnePartition(Subgraph subgraph) {
  for (SubNode& node : subgraph.nodes) node.device = "/job:a/replica:0/task:0/device:CPU:0";
  return *Partition(std::move(subgraph), {});
}

}  // namespace troupe
