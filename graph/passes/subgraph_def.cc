#include "graph/passes/subgraph_def.h"

#include <utility>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

SubgraphWriter::SubgraphWriter(const Graph& graph, const Subgraph& subgraph)
    : subgraph_(subgraph), names_(subgraph.nodes.size()) {
  for (size_t i = 0; i < names_.size(); ++i) {
    const SubNode& node = subgraph.nodes[i];
    if (node.kind == SubNode::Kind::kOp && graph.FindNode(node.original->name()) != nullptr &&
        taken_.insert(node.original->name()).second) {
      names_[i] = node.original->name();
    }
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!names_[i].empty()) continue;
    const SubNode& node = subgraph.nodes[i];
    const bool fed = node.kind == SubNode::Kind::kFeed;
    names_[i] = FreeName(StrCat(node.original->name(), fed ? StrCat("/fed_", node.fed_port) : ""));
  }
}

std::string SubgraphWriter::FreeName(std::string wanted) {
  while (!taken_.insert(wanted).second) wanted += "_";
  return wanted;
}

std::string SubgraphWriter::NameOf(SubOutput output) const {
  const bool constant =
      subgraph_.nodes[static_cast<size_t>(output.node)].kind == SubNode::Kind::kConstant;
  if (constant && output.port > 0) return StrCat(name(output.node), "/output_", output.port, ":0");
  return StrCat(name(output.node), ":", output.port);
}

NodeDef* SubgraphWriter::AddNode(const std::string& name, const char* op, const char* attr,
                                 ElementType type, GraphDef* def) {
  NodeDef* node = def->add_node();
  node->set_name(name);
  node->set_op(op);
  (*node->mutable_attr())[attr].set_type(static_cast<DataType>(type));
  return node;
}

absl::Status SubgraphWriter::Write(size_t index, GraphDef* def) const {
  const SubNode& node = subgraph_.nodes[index];
  const std::string& name = names_[index];
  if (node.kind == SubNode::Kind::kFeed) {
    NodeDef* fed = AddNode(name, "Placeholder", "dtype", node.output_type(0), def);
    node.original->output_shape(node.fed_port)
        .ToProto((*fed->mutable_attr())["shape"].mutable_shape());
    return absl::OkStatus();
  }
  if (node.kind == SubNode::Kind::kConstant) {
    for (size_t port = 0; port < node.values.size(); ++port) {
      const Tensor& value = node.values[port];
      if (value.type() == ElementType::kVariant || value.type() == ElementType::kResource) {
        return absl::UnimplementedError(StrCat("node ", node.original->name(),
                                               " is a constant that has no wire form; create the "
                                               "session without optimization"));
      }
      NodeDef* constant = AddNode(port == 0 ? name : StrCat(name, "/output_", port), "Const",
                                  "dtype", value.type(), def);
      TensorToProto(value, (*constant->mutable_attr())["value"].mutable_tensor());
    }
    return absl::OkStatus();
  }
  NodeDef* op = def->add_node();
  *op = node.original->def();
  op->set_name(name);
  op->clear_input();
  op->mutable_attr()->erase("_class");
  for (const SubOutput& input : node.inputs) op->add_input(NameOf(input));
  for (int32_t control : node.control_inputs) op->add_input("^" + this->name(control));
  return absl::OkStatus();
}

}  // namespace troupe
