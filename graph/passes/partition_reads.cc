#include "graph/passes/partition_reads.h"

#include "graph/passes/frames.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// Past this many visits every other input counts as one to wait for: compiling stays quick.
constexpr int64_t kMostVisits = 20000000;

class ReadOrder {
 public:
  ReadOrder(const Subgraph& subgraph, const std::vector<int32_t>& homes,
            const std::vector<char>& copied)
      : nodes_(subgraph.nodes), homes_(homes), copied_(copied) {}

  std::map<SubInput, std::vector<int32_t>> Run() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    std::map<int32_t, std::vector<SubInput>> readers;  // By the variable's node.
    for (int32_t i = 0; i < n; ++i) {
      const SubNode& node = nodes_[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const SubOutput input = node.inputs[k];
        if ((homes_[input.node] == homes_[i] && !copied_[i]) || input.node > i ||
            !IsReference(nodes_, input) ||
            IsRefType(node.original->input_type(static_cast<int>(k)))) {
          continue;
        }
        // A Merge takes what comes first.
        if (FlowOpOf(*node.original) == FlowOp::kMerge) continue;
        readers[ReferenceRoot(nodes_, input)].emplace_back(i, static_cast<int32_t>(k));
      }
    }
    if (readers.empty()) return {};
    FindWritersAndConsumers();
    for (const auto& [variable, inputs] : readers) {
      auto writers = writers_.find(variable);
      if (writers == writers_.end()) continue;
      MarkAfter(writers->second);
      for (const SubInput& input : inputs) AddWaits(input);
    }
    return std::move(result_);
  }

 private:
  void FindWritersAndConsumers() {
    consumers_ = ConsumersOf(nodes_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const SubNode& node = nodes_[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (IsRefType(node.original->input_type(static_cast<int>(k))) &&
            !IsControlFlow(node.original->op())) {
          writers_[ReferenceRoot(nodes_, node.inputs[k])].push_back(static_cast<int32_t>(i));
        }
      }
    }
  }

  /// Marks the writers and what runs after one of them, in later iterations of a loop and after it,
  /// too.
  void MarkAfter(const std::vector<int32_t>& writers) {
    if (visits_ >= kMostVisits) {
      after_.assign(nodes_.size(), 1);
      return;
    }
    after_.assign(nodes_.size(), 0);
    for (int32_t writer : writers) after_[writer] = 1;
    std::vector<int32_t> stack = writers;
    while (!stack.empty()) {
      const int32_t node = stack.back();
      stack.pop_back();
      ++visits_;
      for (int32_t consumer : consumers_[node]) {
        if (after_[consumer]) continue;
        after_[consumer] = 1;
        stack.push_back(consumer);
      }
    }
  }

  void AddWaits(const SubInput& input) {
    const SubNode& node = nodes_[input.first];
    const int32_t variable = node.inputs[input.second].node;
    std::vector<int32_t> waits;
    auto add = [&](int32_t from) {
      if (from == variable || from >= input.first || !after_[from] ||
          nodes_[from].kind != SubNode::Kind::kOp) {
        return;
      }
      waits.push_back(from);
    };
    for (const SubOutput& other : node.inputs) add(other.node);
    for (int32_t control : node.control_inputs) add(control);
    if (waits.empty()) return;
    SortUnique(&waits);
    result_.emplace(input, std::move(waits));
  }

  const std::vector<SubNode>& nodes_;
  const std::vector<int32_t>& homes_;
  const std::vector<char>& copied_;
  std::map<int32_t, std::vector<int32_t>> writers_;
  std::vector<std::vector<int32_t>> consumers_;
  std::vector<char> after_;
  int64_t visits_ = 0;
  std::map<SubInput, std::vector<int32_t>> result_;
};

}  // namespace

std::map<SubInput, std::vector<int32_t>> FindReadOrder(const Subgraph& subgraph,
                                                       const std::vector<int32_t>& homes,
                                                       const std::vector<char>& copied) {
  return ReadOrder(subgraph, homes, copied).Run();
}

}  // namespace troupe
