#include "kernels/registered_kernels.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "graph/function_library.h"
#include "graph/passes/colocation.h"
#include "graph/passes/frames.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

bool HasKernel(const Node& node, const std::string& device_type) {
  return FlowOpOf(node) != FlowOp::kNone || !node.graph()->ops()->LookUp(node.op()).ok() ||
         KernelRegistry::Global()->Find(device_type, node.def()).ok();
}

/// What steps are fed needs no kernel.
bool IsFed(const Node& node) { return node.op() == "_Arg" || node.op().starts_with("Placeholder"); }

bool TakesHandles(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i) == ElementType::kResource) return true;
  }
  return false;
}

bool TakesHandles(const OpDef& op) {
  for (const OpDef::ArgDef& arg : op.input_arg()) {
    if (static_cast<ElementType>(arg.type()) == ElementType::kResource) return true;
  }
  return false;
}

/// The nodes of a graph by what they must be with, whatever steps run them.
class Colocated {
 public:
  explicit Colocated(const Graph& graph)
      : graph_(graph),
        library_(graph.library(), *graph.ops()),
        nodes_(graph.nodes()),
        parent_(nodes_.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    std::map<std::string, int> by_shared_name;
    for (const Node* node : nodes_) {
      if (node->IsSource() || node->IsSink()) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Edge* const edge = node->in_data_edge(i);
        if (edge != nullptr && (IsRefType(node->input_type(i)) || TakesHandle(*node, i))) {
          Unite(node->id(), edge->src->id());
        }
      }
      for (const std::string& name : ColocationNames(*node)) {
        const Node* const with = graph.FindNode(name);
        if (with != nullptr) Unite(node->id(), with->id());
      }
      const std::string shared = SharedNameOf(*node);
      if (shared.empty()) continue;
      if (const auto [it, first] = by_shared_name.try_emplace(shared, node->id()); !first) {
        Unite(node->id(), it->second);
      }
    }
    for (const Node* node : nodes_) {
      const int root = Find(node->id());
      if (root != node->id()) groups_[root].push_back(node);
    }
    for (auto& [root, members] : groups_) members.push_back(nodes_[root]);
  }

  /// A node that lacks a kernel there, of those that `node` must be with; nullptr: none does.
  const Node* Lacking(const Node& node, const std::string& device_type) {
    const Node* const known = node.graph() == &graph_ ? &node : graph_.FindNode(node.name());
    if (known == nullptr || static_cast<size_t>(known->id()) >= nodes_.size()) return nullptr;
    const int root = Find(known->id());
    const auto group = groups_.find(root);
    if (group == groups_.end()) return nullptr;
    const auto [it, first] = lacking_.try_emplace({root, device_type}, nullptr);
    if (first) it->second = FindLacking(group->second, device_type);
    return it->second;
  }

 private:
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Unite(int a, int b) {
    // A node that another thread is adding is no part of any step yet.
    if (static_cast<size_t>(std::max(a, b)) >= parent_.size()) return;
    parent_[Find(a)] = Find(b);
  }

  const Node* FindLacking(const std::vector<const Node*>& members, const std::string& device_type) {
    bool stateful = false;
    const Node* lacking = nullptr;
    for (const Node* node : members) {
      stateful |= node->stateful();
      if (lacking != nullptr || IsFed(*node) || node->op() == "NoOp") continue;
      if (!HasKernel(*node, device_type) || BodiesLack(*node, device_type)) lacking = node;
    }
    return stateful ? lacking : nullptr;
  }

  /// True if a body that `node` gives handles to has no kernel for what takes some.
  bool BodiesLack(const Node& node, const std::string& device_type) const {
    if (!TakesHandles(node)) return false;
    std::vector<std::string> called = library_.CalledBy(node.def());
    std::set<std::string> seen(called.begin(), called.end());
    while (!called.empty()) {
      const FunctionDef* const function = library_.Find(called.back());
      called.pop_back();
      if (function == nullptr) continue;
      for (const NodeDef& inside : function->node_def()) {
        if (Lacks(inside, device_type)) return true;
        for (std::string& name : library_.CalledBy(inside)) {
          if (seen.insert(name).second) called.push_back(std::move(name));
        }
      }
    }
    return false;
  }

  /// For a node of a body. Types that only the call knows fit no kernel.
  bool Lacks(const NodeDef& node, const std::string& device_type) const {
    const auto op = graph_.ops()->LookUp(node.op());
    if (!op.ok() || !TakesHandles(*(*op)->def)) return false;
    NodeDef complete = node;
    *complete.mutable_attr() = WithDefaults(node.attr(), *(*op)->def);
    return !KernelRegistry::Global()->Find(device_type, complete).ok();
  }

  const Graph& graph_;
  const FunctionLibrary library_;
  const std::vector<Node*> nodes_;
  std::vector<int> parent_;
  std::map<int, std::vector<const Node*>> groups_;  ///< By root; of more than one node.
  std::map<std::pair<int, std::string>, const Node*> lacking_;
};

}  // namespace

std::function<const Node*(const Node& node, const std::string& device_type)> RegisteredKernels(
    const Graph& graph) {
  return [&graph, colocated = std::shared_ptr<Colocated>()](
             const Node& node, const std::string& device_type) mutable -> const Node* {
    if (!HasKernel(node, device_type)) return &node;
    if (colocated == nullptr) colocated = std::make_shared<Colocated>(graph);
    return colocated->Lacking(node, device_type);
  };
}

}  // namespace troupe
