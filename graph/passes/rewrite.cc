#include "graph/passes/rewrite.h"

#include <algorithm>
#include <string>

namespace troupe {

bool IsMergeOp(std::string_view op) {
  return op == "Merge" || op == "RefMerge" || op == "_XlaMerge";
}

bool IsControlFlow(std::string_view op) {
  if (op.substr(0, 3) == "Ref") op.remove_prefix(3);
  for (std::string_view name : {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond",
                                "ControlTrigger", "_SwitchN", "_XlaMerge"}) {
    if (op == name) return true;
  }
  return false;
}

bool IsPure(const SubNode& node) {
  const Node& original = *node.original;
  if (node.kind != SubNode::Kind::kOp || original.stateful() || IsControlFlow(original.op()) ||
      original.op().compare(0, 11, "Placeholder") == 0) {
    return false;
  }
  for (int i = 0; i < original.num_inputs(); ++i) {
    if (IsRefType(original.input_type(i))) return false;
  }
  for (int i = 0; i < original.num_outputs(); ++i) {
    if (IsRefType(original.output_type(i))) return false;
  }
  return true;
}

bool IsReference(const std::vector<SubNode>& nodes, SubOutput output) {
  return IsRefType(nodes[output.node].output_type(output.port));
}

int32_t ReferenceRoot(const std::vector<SubNode>& nodes, SubOutput reference) {
  while (true) {
    const SubNode& node = nodes[reference.node];
    int32_t next = -1;
    for (size_t k = 0; k < node.inputs.size() && next < 0; ++k) {
      if (IsRefType(node.original->input_type(static_cast<int>(k))) &&
          node.inputs[k].node < reference.node) {
        next = static_cast<int32_t>(k);
      }
    }
    if (next < 0) return reference.node;
    reference = node.inputs[next];
  }
}

std::vector<Uses> CountUses(const Subgraph& subgraph) {
  std::vector<Uses> uses(subgraph.nodes.size());
  for (const SubNode& node : subgraph.nodes) {
    const bool merge = node.kind == SubNode::Kind::kOp && IsMergeOp(node.original->op());
    for (const SubOutput& input : node.inputs) {
      ++uses[input.node].data;
      uses[input.node].by_merge |= merge;
    }
    for (int32_t control : node.control_inputs) ++uses[control].control;
  }
  for (const SubOutput& fetch : subgraph.fetches) uses[fetch.node].fetched = true;
  for (int32_t target : subgraph.targets) uses[target].target = true;
  return uses;
}

void SortUnique(std::vector<int32_t>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

std::vector<std::vector<int32_t>> ConsumersOf(const std::vector<SubNode>& nodes) {
  std::vector<std::vector<int32_t>> consumers(nodes.size());
  for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
    for (const SubOutput& input : nodes[i].inputs) consumers[input.node].push_back(i);
    for (int32_t control : nodes[i].control_inputs) consumers[control].push_back(i);
  }
  return consumers;
}

void Renumber(const std::vector<int32_t>& numbers, Subgraph* subgraph) {
  std::vector<SubNode> moved(*std::max_element(numbers.begin(), numbers.end()) + 1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0) moved[numbers[i]] = std::move(subgraph->nodes[i]);
  }
  for (SubNode& node : moved) {
    for (SubOutput& input : node.inputs) input.node = numbers[input.node];
    for (int32_t& control : node.control_inputs) control = numbers[control];
    SortUnique(&node.control_inputs);
  }
  subgraph->nodes = std::move(moved);
  for (int32_t& feed : subgraph->feeds) feed = numbers[feed];
  for (SubOutput& fetch : subgraph->fetches) fetch.node = numbers[fetch.node];
  for (int32_t& target : subgraph->targets) target = numbers[target];
}

void DropUnused(Subgraph* subgraph) {
  const std::vector<SubNode>& nodes = subgraph->nodes;
  std::vector<char> needed(nodes.size(), 0);
  std::vector<int32_t> stack;
  auto need = [&](int32_t node) {
    if (needed[node]) return;
    needed[node] = 1;
    stack.push_back(node);
  };
  for (int32_t feed : subgraph->feeds) need(feed);
  for (const SubOutput& fetch : subgraph->fetches) need(fetch.node);
  for (int32_t target : subgraph->targets) need(target);
  while (!stack.empty()) {
    const SubNode& node = nodes[stack.back()];
    stack.pop_back();
    for (const SubOutput& input : node.inputs) need(input.node);
    for (int32_t control : node.control_inputs) need(control);
  }
  std::vector<int32_t> index(nodes.size(), -1);
  int32_t kept = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (needed[i]) index[i] = kept++;
  }
  if (kept < static_cast<int32_t>(nodes.size())) Renumber(index, subgraph);
}

void Simplify(const SimplifyOptions& options, const NodeEvaluator& evaluator, Subgraph* subgraph) {
  if (options.remove_identities) RemoveIdentities(subgraph);
  if (options.remove_unused) RemoveUnused(subgraph);
  if (options.fold_constants) FoldConstants(evaluator, options.max_folded_bytes, subgraph);
  if (options.eliminate_common) EliminateCommon(subgraph);
  if (options.remove_identities || options.remove_unused || options.fold_constants ||
      options.eliminate_common) {
    DropUnused(subgraph);
  }
}

}  // namespace troupe
