#include "graph/step_signature.h"

#include <set>
#include <string_view>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<StepSignature> StepSignature::FromNames(const Graph& graph,
                                                       const std::vector<std::string>& feeds,
                                                       const std::vector<std::string>& fetches,
                                                       const std::vector<std::string>& targets) {
  StepSignature signature;
  auto find = [&](const std::string& name, std::string_view role) -> absl::StatusOr<Output> {
    absl::StatusOr<Output> output = graph.FindOutput(name);
    if (output.ok()) return output;
    return WithContext(StrCat(role, " ", name, ": "), output.status());
  };
  for (const std::string& name : feeds) {
    TROUPE_ASSIGN_OR_RETURN(Output output, find(name, "feed"));
    signature.feeds.push_back(output);
  }
  for (const std::string& name : fetches) {
    TROUPE_ASSIGN_OR_RETURN(Output output, find(name, "fetch"));
    signature.fetches.push_back(output);
  }
  for (const std::string& name : targets) {
    std::string_view node_name = name;
    if (!node_name.empty() && node_name[0] == '^') node_name.remove_prefix(1);
    Node* node = graph.FindNode(node_name);
    if (node == nullptr) {
      // A target may be given as a tensor too; its node is meant.
      absl::StatusOr<Output> output = graph.FindOutput(name);
      if (!output.ok()) {
        return absl::NotFoundError(StrCat("target ", name, " is not a node of the graph"));
      }
      node = output->node;
    }
    signature.targets.push_back(node);
  }
  TROUPE_RETURN_IF_ERROR(signature.Check(graph));
  return signature;
}

absl::Status StepSignature::Check(const Graph& graph) const {
  auto check = [&](const Output& output, std::string_view role) {
    if (output.node == nullptr) return InvalidArgument("a ", role, " is no tensor at all");
    if (output.node->graph() != &graph) {
      return InvalidArgument(role, " ", output.name(), " belongs to another graph");
    }
    if (!output.node->op_known()) return absl::OkStatus();  // What it has is not known either.
    if (output.index < 0 || output.index >= output.node->num_outputs()) {
      return InvalidArgument(role, " ", output.name(), ": the node has ",
                             output.node->num_outputs(), " outputs");
    }
    return absl::OkStatus();
  };
  std::set<std::pair<const Node*, int>> fed;
  for (const Output& output : feeds) {
    TROUPE_RETURN_IF_ERROR(check(output, "feed"));
    if (!fed.insert({output.node, output.index}).second) {
      return InvalidArgument("tensor ", output.name(), " is fed more than once");
    }
  }
  for (const Output& output : fetches) {
    TROUPE_RETURN_IF_ERROR(check(output, "fetch"));
    if (fed.count({output.node, output.index}) != 0) {
      return InvalidArgument("tensor ", output.name(),
                             " is both fed and fetched: use the value that you feed");
    }
  }
  for (const Node* node : targets) {
    if (node == nullptr || node->graph() != &graph) {
      return InvalidArgument("a target is no node of the session's graph");
    }
  }
  if (fetches.empty() && targets.empty()) {
    return InvalidArgument("nothing to run: give at least one fetch or target");
  }
  return absl::OkStatus();
}

absl::Status CheckFedValue(std::string_view name, ElementType type, const PartialShape& shape,
                           const Tensor& value) {
  if (!value.valid()) return InvalidArgument("feed ", name, " has no value");
  // A type that is not known is that of an op that is not registered here.
  if (type != ElementType::kInvalid && value.type() != type) {
    return InvalidArgument("feed ", name, " has element type ", ElementTypeName(value.type()),
                           ", expected ", ElementTypeName(type));
  }
  if (!shape.IsCompatibleWith(value.shape())) {
    return InvalidArgument("feed ", name, " has shape ", value.shape().ToString(),
                           ", which does not fit ", shape.ToString());
  }
  return absl::OkStatus();
}

}  // namespace troupe
