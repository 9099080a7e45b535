#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "api/cli/cli.h"
#include "api/cli/draw.h"
#include "api/internal/plan.h"
#include "api/saved_model.h"
#include "devices/status_macros.h"
#include "graph/attr_check.h"
#include "graph/graph_def.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"

namespace troupe::cli {

namespace {

/// The element types of a node's type attributes: "float", "float,int32".
std::string TypesOf(const NodeDef& node, const OpDef& op) {
  std::string types;
  for (const OpDef::AttrDef& attr : op.attr()) {
    if (attr.type() != "type") continue;
    auto it = node.attr().find(attr.name());
    if (it == node.attr().end()) continue;
    if (!types.empty()) types += ",";
    types += ElementTypeName(static_cast<ElementType>(it->second.type()));
  }
  return types.empty() ? "-" : types;
}

/// What a graph needs and is not here.
class Missing {
 public:
  explicit Missing(const FunctionDefLibrary& library) {
    for (const FunctionDef& function : library.function()) {
      functions_.insert(function.signature().name());
    }
  }
  void Check(const NodeDef& node) {
    if (functions_.count(node.op()) > 0) return;
    absl::StatusOr<const OpRegistration*> op = OpRegistry::Global()->LookUp(node.op());
    if (!op.ok()) {
      ++ops_[node.op()];
      return;
    }
    const OpDef& def = *(*op)->def;
    NodeDef full = node;
    FillDefaultAttrs(def, &full);
    // In a function's body types may be the function's own attributes, which each call sets.
    const bool open = std::any_of(full.attr().begin(), full.attr().end(), [](const auto& attr) {
      return attr.second.value_case() == AttrValue::kPlaceholder;
    });
    if (!open && !KernelRegistry::Global()->Find("CPU", full).ok()) {
      ++kernels_[node.op() + " " + TypesOf(full, def)];
    }
  }
  bool any() const { return !ops_.empty() || !kernels_.empty(); }
  void Print() const {
    for (const auto& [op, n] : ops_) std::cout << "missing op: " << op << " (" << n << " nodes)\n";
    for (const auto& [kernel, n] : kernels_) {
      std::cout << "missing kernel: " << kernel << " (" << n << " nodes)\n";
    }
  }

 private:
  std::set<std::string> functions_;
  std::map<std::string, int> ops_, kernels_;
};

/// A line for each tensor of a signature: "input x: serving_default_x:0 float [?,3]".
void PrintTensors(const char* side, const google::protobuf::Map<std::string, TensorInfo>& tensors) {
  for (const SignatureTensor& tensor : SignatureTensors(tensors)) {
    std::cout << "  " << side << " " << tensor.name << ": " << tensor.tensor;
    const auto found = tensors.find(tensor.name);
    if (found != tensors.end()) {
      std::cout << " " << ElementTypeName(static_cast<ElementType>(found->second.dtype()));
      const auto shape = PartialShape::FromProto(found->second.tensor_shape());
      if (shape.ok()) std::cout << " " << shape->ToString();
    }
    std::cout << "\n";
  }
}

void PrintModel(const MetaGraphDef& model) {
  for (const std::string& tag : model.meta_info_def().tags()) std::cout << "tag: " << tag << "\n";
  const std::map<std::string, SignatureDef> signatures(model.signature_def().begin(),
                                                       model.signature_def().end());
  for (const auto& [name, signature] : signatures) {
    if (saved_model::IsInternal(name)) continue;
    std::cout << "signature: " << name << "\n";
    PrintTensors("input", signature.inputs());
    PrintTensors("output", signature.outputs());
  }
  for (const AssetFileDef& asset : model.asset_file_def()) {
    std::cout << "asset: " << asset.filename() << " (" << asset.tensor_info().name() << ")\n";
  }
}

}  // namespace

absl::Status WriteFile(const std::string& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary);
  out << content;
  out.close();
  return out.good() ? absl::OkStatus() : absl::PermissionDeniedError(StrCat("cannot write ", file));
}

absl::StatusOr<int> GraphCommand(const Options& options) {
  const bool step = !options.feeds.empty() || !options.fetches.empty() ||
                    !options.targets.empty() || options.no_optimize;
  if (step && options.devices.empty()) {
    throw UsageError{"graph takes a step only for a plan: give --devices"};
  }
  GraphDef def;
  MetaGraphDef meta_graph;
  TROUPE_RETURN_IF_ERROR(ReadGraphOf(options, &def, &meta_graph));
  std::map<std::string, int> ops;
  std::set<std::string> devices;
  int64_t data_edges = 0, control_edges = 0;
  Missing missing(def.library());
  for (const NodeDef& node : def.node()) {
    ++ops[node.op()];
    if (!node.device().empty()) devices.insert(node.device());
    for (const std::string& input : node.input()) {
      ++(!input.empty() && input[0] == '^' ? control_edges : data_edges);
    }
    missing.Check(node);
  }
  for (const FunctionDef& function : def.library().function()) {
    for (const NodeDef& node : function.node_def()) missing.Check(node);
  }
  std::cout << options.graph << ": " << def.node_size() << " nodes, " << data_edges
            << " data edges, " << control_edges << " control edges, "
            << def.library().function_size() << " functions, producer " << def.versions().producer()
            << "\n";
  for (const std::string& device : devices) std::cout << "device: " << device << "\n";
  std::vector<std::pair<std::string, int>> by_count(ops.begin(), ops.end());
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [op, n] : by_count) std::cout << "  " << n << " " << op << "\n";
  PrintModel(meta_graph);
  missing.Print();
  if (!options.devices.empty() && !missing.any()) {
    PlanRequest request{
        .targets = options.targets, .devices = options.devices, .optimize = !options.no_optimize};
    for (const auto& feed : options.feeds) request.feeds.push_back(feed.first);
    for (const auto& fetch : options.fetches) request.fetches.push_back(fetch.first);
    TROUPE_ASSIGN_OR_RETURN(StepPlan plan, MakePlan(def, request));
    std::cout << plan.text;
    def.Swap(&plan.graph);
  }
  if (!options.dot_file.empty()) TROUPE_RETURN_IF_ERROR(WriteFile(options.dot_file, ToDot(def)));
  if (!options.svg_file.empty()) TROUPE_RETURN_IF_ERROR(DrawSvg(ToDot(def), options.svg_file));
  return missing.any() ? 1 : 0;
}

}  // namespace troupe::cli
