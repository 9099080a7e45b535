#include "graph/passes/step_graph.h"

#include <utility>
#include <vector>

#include "devices/log.h"
#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/loosen_constants.h"
#include "graph/passes/lower_step.h"
#include "graph/passes/prune.h"
#include "graph/passes/read_late.h"
#include "graph/passes/simplify.h"

namespace troupe {

absl::StatusOr<StepGraph> PrepareStep(
    const Graph& graph, const StepSignature& signature, bool simplify, bool several_devices,
    absl::FunctionRef<absl::Status(const Subgraph&)> check_devices) {
  StepGraph prepared;
  TROUPE_ASSIGN_OR_RETURN(prepared.subgraph, Prune(graph, signature.feeds, signature.fetches,
                                                   absl::MakeConstSpan(signature.targets)));
  Subgraph& subgraph = prepared.subgraph;
  StepSignature in_lowered;
  TROUPE_ASSIGN_OR_RETURN(prepared.lowered,
                          LowerForStep(graph, subgraph, signature, several_devices, &in_lowered));
  if (prepared.lowered != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(subgraph, Prune(*prepared.lowered, in_lowered.feeds, in_lowered.fetches,
                                            absl::MakeConstSpan(in_lowered.targets)));
  }
  TROUPE_RETURN_IF_ERROR(check_devices(subgraph));
  // Before anything is folded away, too: loops must be well-formed as they were written.
  TROUPE_RETURN_IF_ERROR(FindFrames(subgraph).status());
  ReadLate(&subgraph);
  if (!simplify) return prepared;
  const SimplifyOptions options;
  LoosenConstants(options.max_folded_bytes, &subgraph);
  Simplify(options, Graph::evaluator(), &subgraph);
  return prepared;
}

std::vector<std::vector<int>> FeedsOfFetches(const Subgraph& whole) {
  std::vector<std::vector<int>> needs;
  for (const SubOutput& fetch : whole.fetches) {
    std::vector<bool> seen(whole.nodes.size());
    std::vector<int32_t> todo = {fetch.node};
    while (!todo.empty()) {
      const int32_t i = todo.back();
      todo.pop_back();
      if (seen[static_cast<size_t>(i)]) continue;
      seen[static_cast<size_t>(i)] = true;
      const SubNode& node = whole.nodes[static_cast<size_t>(i)];
      for (const SubOutput& input : node.inputs) todo.push_back(input.node);
      todo.insert(todo.end(), node.control_inputs.begin(), node.control_inputs.end());
    }
    std::vector<int>& feeds = needs.emplace_back();
    for (size_t i = 0; i < whole.feeds.size(); ++i) {
      if (seen[static_cast<size_t>(whole.feeds[i])]) feeds.push_back(static_cast<int>(i));
    }
  }
  return needs;
}

absl::StatusOr<PartitionedGraph> CutStep(const PlacementInput& placement,
                                         const PartitionOptions& partition,
                                         const ScheduleReceivesOptions& schedule, Subgraph subgraph,
                                         absl::FunctionRef<void(const Subgraph&)> placed,
                                         PlacementReport* report) {
  TROUPE_RETURN_IF_ERROR(Place(placement, &subgraph, report));
  placed(subgraph);
  TROUPE_ASSIGN_OR_RETURN(PartitionedGraph parts, Partition(std::move(subgraph), partition));
  ScheduleReceives(placement.costs, schedule, &parts);
  return parts;
}

void LogPlacement(const Subgraph& subgraph, const std::string& device) {
  constexpr size_t kLineBytes = 3500;
  std::string line, first;
  const auto write = [&] {
    if (line.empty()) return;
    WriteLog(LogLevel::kWarning, "", {"placement", first}, "placed on ", device, ": ", line);
    line.clear();
  };
  for (const SubNode& node : subgraph.nodes) {
    if (node.kind == SubNode::Kind::kFeed) continue;
    const Node& original = *node.original;
    if (line.empty()) first = original.name();
    line += StrCat(line.empty() ? "" : ", ", original.name(), " (", original.op(), ")");
    if (line.size() >= kLineBytes) write();
  }
  write();
}

}  // namespace troupe
