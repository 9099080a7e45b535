#include "graph/passes/read_late.h"

#include <map>
#include <utility>
#include <vector>

#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// Past this many visits the rest of the graph is left as it is: compiling stays quick.
constexpr int64_t kMostVisits = 20000000;

class LateReader {
 public:
  explicit LateReader(Subgraph* subgraph) : nodes_(subgraph->nodes) {}

  void Run() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    alias_.resize(n);
    for (int32_t i = 0; i < n; ++i) Classify(i);
    if (readers_.empty() || writers_.empty()) return;
    consumers_ = ConsumersOf(nodes_);
    for (const auto& [variable, writers] : writers_) {
      auto readers = readers_.find(variable);
      if (readers == readers_.end()) continue;
      MarkAfter(writers);
      for (int32_t reader : readers->second) {
        if (after_[reader]) continue;
        for (int32_t consumer : consumers_[reader]) {
          if (after_[consumer]) Redirect(consumer, reader);
        }
      }
    }
  }

 private:
  void Classify(int32_t i) {
    const SubNode& node = nodes_[i];
    if (node.kind != SubNode::Kind::kOp) return;
    if (node.original->op() == "Identity" && node.inputs[0].node < i) {
      const SubOutput from = node.inputs[0];
      if (IsReference(nodes_, from)) {
        alias_[i] = from;
      } else if (alias_[from.node].node >= 0) {
        alias_[i] = alias_[from.node];
      }
      if (alias_[i].node >= 0) readers_[ReferenceRoot(nodes_, alias_[i])].push_back(i);
      return;
    }
    if (IsControlFlow(node.original->op())) return;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsRefType(node.original->input_type(static_cast<int>(k)))) {
        writers_[ReferenceRoot(nodes_, node.inputs[k])].push_back(i);
      }
    }
  }

  /// Marks what runs after one of the nodes.
  void MarkAfter(const std::vector<int32_t>& writers) {
    after_.assign(nodes_.size(), 0);
    std::vector<int32_t> stack = writers;
    while (!stack.empty() && ++visits_ < kMostVisits) {
      const int32_t node = stack.back();
      stack.pop_back();
      for (int32_t consumer : consumers_[node]) {
        if (consumer <= node || after_[consumer]) continue;
        after_[consumer] = 1;
        stack.push_back(consumer);
      }
    }
  }

  void Redirect(int32_t consumer, int32_t reader) {
    SubNode& node = nodes_[consumer];
    // A Merge takes what comes first.
    if (node.kind != SubNode::Kind::kOp || IsControlFlow(node.original->op())) return;
    bool changed = false;
    for (SubOutput& input : node.inputs) {
      if (input.node != reader) continue;
      input = alias_[reader];
      changed = true;
    }
    if (!changed || nodes_[reader].control_inputs.empty()) return;
    node.control_inputs.push_back(reader);
    SortUnique(&node.control_inputs);
  }

  std::vector<SubNode>& nodes_;
  std::vector<SubOutput> alias_;                               // Of Identities: the reference read.
  std::map<int32_t, std::vector<int32_t>> readers_, writers_;  // By the variable's node.
  std::vector<std::vector<int32_t>> consumers_;
  std::vector<char> after_;
  int64_t visits_ = 0;
};

}  // namespace

void ReadLate(Subgraph* subgraph) { LateReader(subgraph).Run(); }

}  // namespace troupe
