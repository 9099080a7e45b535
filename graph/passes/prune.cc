#include "graph/passes/prune.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "devices/status_macros.h"
#include "graph/passes/missing_ops.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

uint64_t Key(const Node* node, int port) {
  return static_cast<uint64_t>(node->id()) << 32 | static_cast<uint32_t>(port);
}

bool IsMerge(const Node& node) { return node.op() == "Merge" || node.op() == "RefMerge"; }
bool IsNextIteration(const Node& node) {
  return node.op() == "NextIteration" || node.op() == "RefNextIteration";
}
bool IsBackEdge(const Edge& edge) {
  return !edge.control() && IsMerge(*edge.dst) && IsNextIteration(*edge.src);
}

/// Who runs in a node's stead.
const Node* Stand(const Node* node) {
  while (const Node* replacement = node->replacement()) node = replacement;
  return node;
}

/// One pruning: which nodes are needed, in which order, and their copies.
class Pruner {
 public:
  Pruner(const Graph& graph, absl::Span<const Output> feeds, absl::Span<const Output> fetches,
         absl::Span<Node* const> targets)
      : graph_(graph), feeds_(feeds), fetches_(fetches), targets_(targets) {}

  absl::StatusOr<Subgraph> Run() {
    TROUPE_RETURN_IF_ERROR(CheckSignature());
    TROUPE_RETURN_IF_ERROR(FindNeeded());
    TROUPE_RETURN_IF_ERROR(Order());
    return Build();
  }

 private:
  absl::Status CheckOutput(const Output& output, std::string_view what) const {
    if (!output.valid() || output.node->graph() != &graph_ || output.node->id() < 2) {
      return InvalidArgument("a ", what, " is no tensor of the graph");
    }
    const bool unknown = !output.node->op_known() && output.index >= 0;
    if (what == "feed" && unknown && output.type() == ElementType::kInvalid) {
      return absl::NotFoundError(StrCat("feed '", output.name(),
                                        "': its type is not known, as op '", output.node->op(),
                                        "' is not registered and no op that is takes it"));
    }
    if (output.index < 0 || (output.index >= output.node->num_outputs() && !unknown)) {
      return InvalidArgument(what, " '", output.name(), "': node '", output.node->name(), "' (op ",
                             output.node->op(), ") has ", output.node->num_outputs(), " outputs");
    }
    return absl::OkStatus();
  }

  absl::Status CheckSignature() {
    for (size_t i = 0; i < feeds_.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(CheckOutput(feeds_[i], "feed"));
      if (!fed_.emplace(Key(feeds_[i].node, feeds_[i].index), static_cast<int>(i)).second) {
        return InvalidArgument("tensor '", feeds_[i].name(), "' is fed more than once");
      }
    }
    for (const Output& fetch : fetches_) {
      TROUPE_RETURN_IF_ERROR(CheckOutput(fetch, "fetch"));
      if (Fed(fetch.node, fetch.index) >= 0) {
        return InvalidArgument("tensor '", fetch.name(), "' is both fed and fetched");
      }
    }
    for (const Node* target : targets_) {
      if (target == nullptr || target->graph() != &graph_ || target->id() < 2) {
        return InvalidArgument("a target is no node of the graph");
      }
    }
    return absl::OkStatus();
  }

  /// The feed that replaces an output, -1 if it is not fed.
  int Fed(const Node* node, int port) const {
    if (fed_.empty()) return -1;
    auto found = fed_.find(Key(node, port));
    return found == fed_.end() ? -1 : found->second;
  }

  /// A fed placeholder has nothing left to run: who waits for it need not.
  bool Replaced(const Node* node) const {
    return Fed(node, 0) >= 0 && node->op().compare(0, 11, "Placeholder") == 0 &&
           node->op() != "PlaceholderWithDefault";
  }

  absl::Status FindNeeded() {
    MissingOps missing(graph_);
    needed_.assign(graph_.num_nodes(), 0);
    std::vector<const Node*> stack;
    auto need = [&](const Node* node) {
      node = Stand(node);
      if (node->id() >= static_cast<int>(needed_.size()) || needed_[node->id()]) return;
      needed_[node->id()] = 1;
      stack.push_back(node);
    };
    for (const Output& fetch : fetches_) need(fetch.node);
    for (const Node* target : targets_) {
      if (!Replaced(target)) need(target);
    }
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      order_.push_back(node);
      missing.Add(*node);
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Edge* edge = node->in_data_edge(i);
        if (edge == nullptr) {
          return InvalidArgument("input ", i, " of node '", node->name(), "' (op ", node->op(),
                                 ") was never joined: the loop has no back edge");
        }
        if (Fed(edge->src, edge->src_output) < 0) {
          need(edge->src);
        } else if (IsRefType(node->input_type(i))) {
          return InvalidArgument("tensor '", Output(edge->src, edge->src_output).name(),
                                 "' cannot be fed: node '", node->name(), "' (op ", node->op(),
                                 ") needs it as a reference");
        }
      }
      for (const Edge* edge : node->in_edges()) {
        if (edge->control() && !Replaced(edge->src)) need(edge->src);
      }
    }
    return missing.ToStatus();
  }

  /// True for an edge whose source must come first.
  bool Orders(const Edge& edge) const {
    if (IsBackEdge(edge)) return false;
    if (edge.control()) return !Replaced(edge.src);
    return Fed(edge.src, edge.src_output) < 0;
  }

  absl::Status Order() {
    auto by_id = [](const Node* a, const Node* b) { return a->id() < b->id(); };
    std::sort(order_.begin(), order_.end(), by_id);
    // A graph is built producers first; only control edges added later may point backwards.
    bool in_order = true;
    for (const Node* node : order_) {
      for (const Edge* edge : node->in_edges()) {
        if (Stand(edge->src)->id() >= node->id() && Orders(*edge)) in_order = false;
      }
    }
    if (in_order) return absl::OkStatus();

    std::vector<int> waits_for(needed_.size(), 0);
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    std::unordered_map<int, const Node*> nodes;
    std::unordered_map<const Node*, std::vector<const Edge*>> stands_for;
    for (const Node* node : order_) {
      nodes[node->id()] = node;
      for (const Edge* edge : node->in_edges()) {
        waits_for[node->id()] += Orders(*edge);
        const Node* stand = Stand(edge->src);
        if (stand != edge->src) stands_for[stand].push_back(edge);
      }
      if (waits_for[node->id()] == 0) ready.push(node->id());
    }
    std::vector<const Node*> sorted;
    while (!ready.empty()) {
      const Node* node = nodes[ready.top()];
      ready.pop();
      sorted.push_back(node);
      auto finish = [&](const Edge* edge) {
        const int id = edge->dst->id();
        if (id < static_cast<int>(needed_.size()) && needed_[id] && Orders(*edge) &&
            --waits_for[id] == 0) {
          ready.push(id);
        }
      };
      for (const Edge* edge : node->out_edges()) finish(edge);
      if (auto found = stands_for.find(node); found != stands_for.end()) {
        for (const Edge* edge : found->second) finish(edge);
      }
    }
    if (sorted.size() < order_.size()) {
      for (const Node* node : order_) {
        if (waits_for[node->id()] > 0) {
          return InvalidArgument(order_.size() - sorted.size(),
                                 " nodes are in a cycle or depend on one, among them '",
                                 node->name(), "' (op ", node->op(), ")");
        }
      }
    }
    order_ = std::move(sorted);
    return absl::OkStatus();
  }

  Subgraph Build() const {
    Subgraph subgraph;
    subgraph.nodes.resize(feeds_.size() + order_.size());
    std::vector<int32_t> index(needed_.size(), -1);
    for (size_t i = 0; i < feeds_.size(); ++i) {
      SubNode& node = subgraph.nodes[i];
      node.kind = SubNode::Kind::kFeed;
      node.original = feeds_[i].node;
      node.fed_port = feeds_[i].index;
      subgraph.feeds.push_back(static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      index[order_[i]->id()] = static_cast<int32_t>(feeds_.size() + i);
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node* original = order_[i];
      SubNode& node = subgraph.nodes[feeds_.size() + i];
      node.original = original;
      node.inputs.reserve(original->num_inputs());
      for (int k = 0; k < original->num_inputs(); ++k) {
        const Edge* edge = original->in_data_edge(k);
        const int feed = Fed(edge->src, edge->src_output);
        node.inputs.push_back(feed >= 0
                                  ? SubOutput{feed, 0}
                                  : SubOutput{index[Stand(edge->src)->id()], edge->src_output});
      }
      if (original->in_edges().size() == node.inputs.size()) continue;
      for (const Edge* edge : original->in_edges()) {
        if (edge->control() && !Replaced(edge->src)) {
          node.control_inputs.push_back(index[Stand(edge->src)->id()]);
        }
      }
      SortUnique(&node.control_inputs);
    }
    for (const Output& fetch : fetches_) {
      subgraph.fetches.push_back({index[Stand(fetch.node)->id()], fetch.index});
    }
    for (const Node* target : targets_) {
      const int32_t at = index[Stand(target)->id()];
      if (at >= 0 && !absl::c_linear_search(subgraph.targets, at)) subgraph.targets.push_back(at);
    }
    return subgraph;
  }

  const Graph& graph_;
  absl::Span<const Output> feeds_;
  absl::Span<const Output> fetches_;
  absl::Span<Node* const> targets_;
  std::unordered_map<uint64_t, int> fed_;
  std::vector<char> needed_;  // by node id
  std::vector<const Node*> order_;
};

}  // namespace

absl::StatusOr<Subgraph> Prune(const Graph& graph, absl::Span<const Output> feeds,
                               absl::Span<const Output> fetches, absl::Span<Node* const> targets) {
  return Pruner(graph, feeds, fetches, targets).Run();
}

}  // namespace troupe
