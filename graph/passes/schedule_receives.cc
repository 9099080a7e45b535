#include "graph/passes/schedule_receives.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "graph/passes/frames.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// Every node takes some time, so that times grow along every edge.
constexpr double kLeastUs = 0.05;

bool IsAboutVariables(const std::string& op) {
  constexpr std::string_view kEnd = "VariableOp";
  return op == "Variable" || op == "VariableV2" || op == "TemporaryVariable" ||
         op == "VarHandleOp" ||
         (op.size() >= kEnd.size() &&
          op.compare(op.size() - kEnd.size(), kEnd.size(), kEnd) == 0) ||
         (op.rfind("Resource", 0) == 0 && op.find("Accumulator") == std::string::npos);
}

/// True for ops that may wait for other steps, as far as can be told: what takes a handle or is
/// stateful, and is not about variables, random numbers or transfers.
bool MayWait(const Node& node) {
  const std::string& op = node.op();
  if (op == "_Send" || op == "_Recv" || IsAboutVariables(op)) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const ElementType type = node.input_type(i);
    if (RemoveRef(type) == ElementType::kResource) return true;
    if (IsRefType(type) && RemoveRef(type) == ElementType::kString) return true;  // A handle.
  }
  return node.stateful() && !node.attrs().Has("seed2");
}

class ReceiveScheduler {
 public:
  ReceiveScheduler(const CostModel* costs, const ScheduleReceivesOptions& options,
                   PartitionedGraph* graph)
      : costs_(costs != nullptr ? costs : &no_measurements_), options_(options), graph_(*graph) {}

  int Run() {
    if (std::none_of(graph_.transfers.begin(), graph_.transfers.end(),
                     [&](const Transfer& transfer) { return IsCandidate(transfer); })) {
      return 0;
    }
    Collect();
    if (!FindTimes()) return 0;
    int delayed = 0;
    for (size_t p = 0; p < graph_.partitions.size(); ++p) {
      const int here = Delay(static_cast<int32_t>(p));
      if (here > 0) Reorder(static_cast<int32_t>(p));
      delayed += here;
    }
    return delayed;
  }

 private:
  struct Edge {
    int32_t to;
    double delay_us;
  };

  const SubNode& NodeAt(int32_t partition, int32_t node) const {
    return graph_.partitions[partition].subgraph.nodes[node];
  }
  int64_t BytesOf(const Transfer& transfer) const {
    if (transfer.control) return 0;
    const SubOutput value = NodeAt(transfer.from, transfer.send).inputs[0];
    return costs_->OutputBytes(NodeAt(transfer.from, value.node), value.port);
  }
  bool IsCandidate(const Transfer& transfer) const {
    return NodeAt(transfer.to, transfer.recv).control_inputs.empty() &&
           BytesOf(transfer) >= options_.min_bytes;
  }

  // --- times of all nodes of all partitions
  // --------------------------------------------------------

  void Collect() {
    int32_t n = 0;
    for (const DevicePartition& partition : graph_.partitions) {
      first_.push_back(n);
      n += static_cast<int32_t>(partition.subgraph.nodes.size());
    }
    edges_.resize(n);
    waits_for_.assign(n, 0);
    cost_.resize(n);
    may_die_.assign(n, 0);
    may_wait_.assign(n, 0);
    for (size_t p = 0; p < graph_.partitions.size(); ++p) {
      const std::vector<SubNode>& nodes = graph_.partitions[p].subgraph.nodes;
      for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
        const int32_t at = first_[p] + i;
        cost_[at] = std::max(kLeastUs, costs_->TimeUs(nodes[i]));
        may_die_[at] = FlowOpOf(nodes[i]) != FlowOp::kNone;
        may_wait_[at] = nodes[i].kind == SubNode::Kind::kOp && MayWait(*nodes[i].original);
        for (const SubOutput& input : nodes[i].inputs) {
          if (input.node < i) AddEdge(first_[p] + input.node, at, 0);
        }
        for (int32_t control : nodes[i].control_inputs) AddEdge(first_[p] + control, at, 0);
      }
    }
    for (const Transfer& transfer : graph_.transfers) {
      AddEdge(first_[transfer.from] + transfer.send, first_[transfer.to] + transfer.recv,
              TransferUs(transfer));
    }
  }

  void AddEdge(int32_t from, int32_t to, double delay_us) {
    edges_[from].push_back({to, delay_us});
    ++waits_for_[to];
  }

  double TransferUs(const Transfer& transfer) const {
    return options_.latency_us + static_cast<double>(BytesOf(transfer)) / options_.bytes_per_us;
  }

  /// False if the partitions wait for one another in a circle.
  bool FindTimes() {
    const size_t n = edges_.size();
    std::vector<int32_t> order;
    order.reserve(n);
    std::vector<int32_t> waits_for = waits_for_;
    for (size_t i = 0; i < n; ++i) {
      if (waits_for[i] == 0) order.push_back(static_cast<int32_t>(i));
    }
    earliest_.assign(n, 0);
    double end = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const int32_t i = order[k];
      const double finish = earliest_[i] + cost_[i];
      end = std::max(end, finish);
      for (const Edge& edge : edges_[i]) {
        earliest_[edge.to] = std::max(earliest_[edge.to], finish + edge.delay_us);
        may_die_[edge.to] |= may_die_[i];
        may_wait_[edge.to] |= may_wait_[i];
        if (--waits_for[edge.to] == 0) order.push_back(edge.to);
      }
    }
    if (order.size() < n) return false;
    latest_.resize(n);
    for (size_t k = n; k-- > 0;) {
      const int32_t i = order[k];
      double finish = end;
      for (const Edge& edge : edges_[i]) {
        finish = std::min(finish, latest_[edge.to] - edge.delay_us);
      }
      latest_[i] = finish - cost_[i];
    }
    return true;
  }

  // --- edges
  // ---------------------------------------------------------------------------------------

  /// True for a node whose end a Recv may wait for.
  bool CanBeWaitedFor(int32_t p, int32_t i) const {
    const SubNode& node = NodeAt(p, i);
    const std::string& op = node.original->op();
    return node.kind == SubNode::Kind::kOp && !may_die_[first_[p] + i] &&
           !may_wait_[first_[p] + i] && op != "_Send" && op != "_Recv" && op != "Const";
  }

  int Delay(int32_t p) {
    std::vector<std::pair<double, int32_t>> ends;  // Latest ends of the nodes, ascending.
    int delayed = 0;
    for (const Transfer& transfer : graph_.transfers) {
      if (transfer.to != p || !IsCandidate(transfer)) continue;
      if (ends.empty()) {
        const size_t n = graph_.partitions[p].subgraph.nodes.size();
        for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) {
          if (!CanBeWaitedFor(p, i)) continue;
          ends.emplace_back(latest_[first_[p] + i] + cost_[first_[p] + i], i);
        }
        std::sort(ends.begin(), ends.end());
      }
      const int32_t recv = first_[p] + transfer.recv;
      auto after =
          std::upper_bound(ends.begin(), ends.end(),
                           std::make_pair(latest_[recv], std::numeric_limits<int32_t>::max()));
      if (after == ends.begin()) continue;
      const int32_t chosen = std::prev(after)->second;
      const int32_t at = first_[p] + chosen;
      // What is over before the tensor can be there delays nothing.
      if (earliest_[at] + cost_[at] <= earliest_[recv]) continue;
      graph_.partitions[p].subgraph.nodes[transfer.recv].control_inputs = {chosen};
      ++delayed;
    }
    return delayed;
  }

  /// Producers before consumers again; otherwise as it was.
  void Reorder(int32_t p) {
    Subgraph& subgraph = graph_.partitions[p].subgraph;
    const std::vector<SubNode>& nodes = subgraph.nodes;
    const int32_t n = static_cast<int32_t>(nodes.size());
    std::vector<int32_t> waits_for(n, 0), number(n, 0);
    std::vector<std::vector<int32_t>> consumers(n);
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>> ready;
    for (int32_t i = 0; i < n; ++i) {
      for (const SubOutput& input : nodes[i].inputs) {
        if (input.node >= i) continue;
        consumers[input.node].push_back(i);
        ++waits_for[i];
      }
      for (int32_t control : nodes[i].control_inputs) {
        consumers[control].push_back(i);
        ++waits_for[i];
      }
      if (waits_for[i] == 0) ready.push(i);
    }
    int32_t ordered = 0;
    while (!ready.empty()) {
      const int32_t i = ready.top();
      ready.pop();
      number[i] = ordered++;
      for (int32_t consumer : consumers[i]) {
        if (--waits_for[consumer] == 0) ready.push(consumer);
      }
    }
    Renumber(number, &subgraph);
    for (Transfer& transfer : graph_.transfers) {
      if (transfer.from == p) transfer.send = number[transfer.send];
      if (transfer.to == p) transfer.recv = number[transfer.recv];
    }
    // The times of this partition's nodes are not asked for any more.
  }

  const CostModel no_measurements_;
  const CostModel* const costs_;
  const ScheduleReceivesOptions options_;
  PartitionedGraph& graph_;
  std::vector<int32_t> first_;  // Per partition: the number of its first node among all.
  std::vector<std::vector<Edge>> edges_;
  std::vector<int32_t> waits_for_;
  std::vector<double> cost_, earliest_, latest_;  // Earliest and latest starts.
  std::vector<char> may_die_;                     // Or what it comes after may be dead.
  std::vector<char> may_wait_;  // Or what it comes after may wait for other steps.
};

}  // namespace

int ScheduleReceives(const CostModel* costs, const ScheduleReceivesOptions& options,
                     PartitionedGraph* graph) {
  return ReceiveScheduler(costs, options, graph).Run();
}

}  // namespace troupe
