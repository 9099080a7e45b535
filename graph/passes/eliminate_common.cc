#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "graph/passes/rewrite.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

// Constants up to this size are compared.
constexpr size_t kMaxConstantBytes = 4096;

size_t Mix(size_t hash, size_t value) {
  return (hash ^ (value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2)));
}

bool IsSmallConstant(const SubNode& node) {
  return node.kind == SubNode::Kind::kConstant && node.values.size() == 1 &&
         IsPlain(node.values[0].type()) && node.values[0].bytes() <= kMaxConstantBytes;
}

size_t HashOf(const SubNode& node) {
  if (node.kind == SubNode::Kind::kConstant) {
    const Tensor& value = node.values[0];
    const std::string_view bytes(static_cast<const char*>(value.raw_data()), value.bytes());
    return Mix(std::hash<std::string_view>()(bytes), static_cast<size_t>(value.type()));
  }
  size_t hash = std::hash<std::string>()(node.original->op());
  for (const SubOutput& input : node.inputs) {
    hash = Mix(hash, static_cast<size_t>(input.node) << 8 | static_cast<size_t>(input.port & 255));
  }
  for (int32_t control : node.control_inputs) hash = Mix(hash, ~static_cast<size_t>(control));
  return hash;
}

bool SameAttrs(const NodeDef& a, const NodeDef& b) {
  if (a.attr_size() != b.attr_size()) return false;
  for (const auto& [name, value] : a.attr()) {
    auto other = b.attr().find(name);
    if (other == b.attr().end() || other->second.value_case() != value.value_case()) return false;
    if (other->second.SerializeAsString() != value.SerializeAsString()) return false;
  }
  return true;
}

bool Same(const SubNode& a, const SubNode& b) {
  if (a.kind != b.kind || a.device != b.device) return false;
  if (a.kind == SubNode::Kind::kConstant) {
    const Tensor& x = a.values[0];
    const Tensor& y = b.values[0];
    return x.type() == y.type() && x.shape() == y.shape() &&
           (x.bytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.bytes()) == 0);
  }
  return a.original->op() == b.original->op() && a.inputs == b.inputs &&
         a.control_inputs == b.control_inputs &&
         a.original->requested_device() == b.original->requested_device() &&
         SameAttrs(a.original->def(), b.original->def());
}

}  // namespace

void EliminateCommon(Subgraph* subgraph) {
  std::vector<SubNode>& nodes = subgraph->nodes;
  const std::vector<Uses> uses = CountUses(*subgraph);
  std::vector<int32_t> stands_for(nodes.size());  // the node that remains
  std::unordered_multimap<size_t, int32_t> seen;
  seen.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    SubNode& node = nodes[i];
    stands_for[i] = static_cast<int32_t>(i);
    for (SubOutput& input : node.inputs) {
      // A back edge points at a NextIteration further on, which stands for itself.
      if (input.node < static_cast<int32_t>(i)) input.node = stands_for[input.node];
    }
    if (!node.control_inputs.empty()) {
      for (int32_t& control : node.control_inputs) control = stands_for[control];
      SortUnique(&node.control_inputs);
    }
    // What a Merge waits for must stay apart: two ends of one node would be one event too few.
    if (uses[i].by_merge || !(IsPure(node) || IsSmallConstant(node))) continue;
    if (node.kind == SubNode::Kind::kOp && node.original->num_outputs() == 0) continue;
    const size_t hash = HashOf(node);
    auto [begin, end] = seen.equal_range(hash);
    bool found = false;
    for (auto it = begin; it != end && !found; ++it) {
      if (!Same(nodes[it->second], node)) continue;
      stands_for[i] = it->second;
      found = true;
    }
    if (!found) seen.emplace(hash, static_cast<int32_t>(i));
  }
  for (SubOutput& fetch : subgraph->fetches) fetch.node = stands_for[fetch.node];
  std::vector<int32_t> targets;
  for (int32_t target : subgraph->targets) {
    const int32_t at = stands_for[target];
    if (!absl::c_linear_search(targets, at)) targets.push_back(at);
  }
  subgraph->targets = std::move(targets);
}

}  // namespace troupe
