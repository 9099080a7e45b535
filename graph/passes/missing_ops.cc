#include "graph/passes/missing_ops.h"

#include <vector>

#include "devices/status_macros.h"
#include "graph/function_library.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

MissingOps::MissingOps(const Graph& graph) {
  if (graph.library().function_size() == 0) return;
  library_ = std::make_unique<FunctionLibrary>(graph.library(), *graph.ops());
}

MissingOps::~MissingOps() = default;

void MissingOps::Add(const Node& node) {
  if (!node.op_known()) Note(node.op(), node.name(), "");
  if (library_ != nullptr) AddCalls(node.def());
}

void MissingOps::AddCalls(const NodeDef& node) {
  std::vector<const FunctionDef*> bodies;
  auto call = [&](const NodeDef& from) {
    for (const std::string& called : library_->CalledBy(from)) {
      std::string name = called;
      if (from.op() == "SymbolicGradient") {
        // The function's own gradient is run in its stead, if it has one.
        if (const std::string& gradient = library_->GradientOf(called); !gradient.empty()) {
          name = gradient;
        }
      }
      const FunctionDef* function = library_->Find(name);
      if (function != nullptr && seen_.insert(name).second) bodies.push_back(function);
    }
  };
  call(node);
  while (!bodies.empty()) {
    const FunctionDef& function = *bodies.back();
    bodies.pop_back();
    for (const NodeDef& inner : function.node_def()) {
      if (absl::IsNotFound(library_->Signature(inner.op()).status())) {
        Note(inner.op(), inner.name(), function.signature().name());
      }
      call(inner);
    }
  }
}

void MissingOps::Note(const std::string& op, const std::string& node, const std::string& function) {
  Uses& uses = missing_[op];
  if (uses.nodes++ > 0) return;
  uses.first = StrCat("node '", node, "'");
  if (!function.empty()) uses.first += StrCat(" of function '", function, "'");
}

absl::Status MissingOps::ToStatus() const {
  if (missing_.empty()) return absl::OkStatus();
  std::string list;
  for (const auto& [op, uses] : missing_) {
    list += StrCat(list.empty() ? "" : ", ", op, " (", uses.first);
    if (uses.nodes > 1) list += StrCat(" and ", uses.nodes - 1, " more");
    list += ")";
  }
  return absl::NotFoundError(
      StrCat("the step needs ops that are not registered: ", list,
             "; load the libraries that define them before the graph is imported"));
}

}  // namespace troupe
