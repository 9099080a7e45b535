#include "api/internal/plan.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/passes/step_graph.h"
#include "kernels/registered_kernels.h"

namespace troupe {
namespace {

absl::StatusOr<std::vector<PlacementDevice>> Devices(const std::string& text) {
  std::vector<std::string> names;
  if (text.find_first_not_of("0123456789") == std::string::npos && text.size() < 5) {
    const int count = std::atoi(text.c_str());
    for (int i = 0; i < count; ++i) {
      names.push_back(StrCat("/job:localhost/replica:0/task:0/device:CPU:", i));
    }
  } else {
    names = absl::StrSplit(text, ',');
  }
  if (names.empty())
    return InvalidArgument("--devices takes a number, or names, not \"", text, "\"");
  std::vector<PlacementDevice> devices;
  for (const std::string& name : names) {
    TROUPE_ASSIGN_OR_RETURN(DeviceName parsed, DeviceName::Parse(name));
    if (!parsed.complete()) {
      return InvalidArgument("device ", name,
                             " is not complete: write /job:worker/replica:0/task:0/device:CPU:0");
    }
    PlacementDevice device{parsed.ToString(), parsed};
    // The CPU devices of a process share its cores.
    for (size_t k = 0; k < devices.size(); ++k) {
      const DeviceName& other = devices[k].parsed;
      if (other.job == parsed.job && other.replica == parsed.replica && other.task == parsed.task &&
          other.type == parsed.type) {
        device.processor = devices[k].processor;
      }
    }
    if (device.processor < 0) device.processor = static_cast<int>(devices.size());
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<StepSignature> Signature(const Graph& graph, const PlanRequest& request) {
  std::vector<std::string> targets = request.targets;
  if (request.fetches.empty() && targets.empty()) {
    for (const Node* node : graph.nodes()) {
      if (node->id() > 1 && node->out_edges().empty()) targets.push_back(node->name());
    }
  }
  return StepSignature::FromNames(graph, request.feeds, request.fetches, targets);
}

std::string OpOf(const SubNode& node) {
  if (node.kind == SubNode::Kind::kFeed) return "feed";
  return node.kind == SubNode::Kind::kConstant ? "Const" : node.original->op();
}

GraphDef Picture(const PartitionedGraph& parts) {
  GraphDef def;
  std::vector<std::vector<std::string>> names;
  std::set<std::string> taken;
  for (const DevicePartition& partition : parts.partitions) {
    std::vector<std::string>& here = names.emplace_back();
    for (const SubNode& node : partition.subgraph.nodes) {
      std::string name = node.original->name();
      while (!taken.insert(name).second) name += "'";  // Copied to several devices.
      here.push_back(name);
    }
  }
  std::vector<std::vector<NodeDef*>> nodes;
  for (size_t p = 0; p < parts.partitions.size(); ++p) {
    const DevicePartition& partition = parts.partitions[p];
    nodes.emplace_back();
    for (size_t i = 0; i < partition.subgraph.nodes.size(); ++i) {
      const SubNode& node = partition.subgraph.nodes[i];
      NodeDef* to = def.add_node();
      nodes.back().push_back(to);
      to->set_name(names[p][i]);
      to->set_op(OpOf(node));
      to->set_device(partition.device);
      for (const SubOutput& input : node.inputs) {
        to->add_input(StrCat(names[p][input.node], ":", input.port));
      }
      for (int32_t control : node.control_inputs) to->add_input("^" + names[p][control]);
    }
  }
  for (const Transfer& transfer : parts.transfers) {
    const std::string& send = names[transfer.from][transfer.send];
    nodes[transfer.to][transfer.recv]->add_input(transfer.control ? "^" + send : send);
  }
  return def;
}

}  // namespace

absl::StatusOr<StepPlan> MakePlan(const GraphDef& def, const PlanRequest& request) {
  auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), graph.get()));
  TROUPE_ASSIGN_OR_RETURN(const StepSignature signature, Signature(*graph, request));
  PlacementInput input;
  TROUPE_ASSIGN_OR_RETURN(input.devices, Devices(request.devices));
  input.lacks_kernel = RegisteredKernels(*graph);
  TROUPE_ASSIGN_OR_RETURN(
      StepGraph step,
      PrepareStep(*graph, signature, request.optimize, input.devices.size() > 1,
                  [&](const Subgraph& subgraph) { return CheckPlacement(input, subgraph); }));
  PlacementReport report;
  TROUPE_ASSIGN_OR_RETURN(const PartitionedGraph parts, CutStep(
                                                            input, {}, {}, std::move(step.subgraph),
                                                            [](const Subgraph&) {}, &report));
  StepPlan plan;
  plan.text = report.ToString();
  for (const Transfer& transfer : parts.transfers) {
    plan.text +=
        StrCat("transfer: ", transfer.name, " from ", parts.partitions[transfer.from].device,
               " to ", parts.partitions[transfer.to].device, "\n");
  }
  plan.graph = Picture(parts);
  return plan;
}

}  // namespace troupe
