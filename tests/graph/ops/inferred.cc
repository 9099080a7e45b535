#include "tests/graph/ops/inferred.h"

#include <gtest/gtest.h>

namespace troupe {

Inferred::Inferred(std::string op)
    : graph_(std::make_shared<Graph>()), spec_(std::move(op), "op") {}

std::string Inferred::NextName() { return "input" + std::to_string(names_++); }

Output Inferred::Add(const NodeSpec& spec) {
  auto node = graph_->AddNode(spec);
  if (!node.ok()) {
    ADD_FAILURE() << node.status();
    return Output();
  }
  return Output(*node);
}

Output Inferred::Placeholder(const PartialShape& shape, ElementType type) {
  return Add(NodeSpec("Placeholder", NextName()).Attr("dtype", type).Attr("shape", shape));
}

Inferred& Inferred::In(PartialShape shape, ElementType type) {
  spec_.Input(Placeholder(shape, type));
  return *this;
}

Inferred& Inferred::Value(const Tensor& value) {
  spec_.Input(Add(NodeSpec("Const", NextName()).Attr("dtype", value.type()).Attr("value", value)));
  return *this;
}

Inferred& Inferred::PartVector(std::initializer_list<int64_t> sizes) {
  // The shape of a tensor that is known only in part.
  const Output tensor = Placeholder(PartialShape(sizes), ElementType::kFloat);
  spec_.Input(Add(NodeSpec("Shape", NextName()).Input(tensor)));
  return *this;
}

Inferred& Inferred::List(const std::vector<PartialShape>& shapes, ElementType type) {
  std::vector<Output> list;
  for (const PartialShape& shape : shapes) list.push_back(Placeholder(shape, type));
  spec_.Input(absl::MakeConstSpan(list));
  return *this;
}

Inferred& Inferred::Handle(PartialShape shape, ElementType type) {
  spec_.Input(Add(NodeSpec("VarHandleOp", NextName()).Attr("dtype", type).Attr("shape", shape)));
  return *this;
}

Inferred& Inferred::Variable(PartialShape shape) {
  spec_.Input(Add(
      NodeSpec("VariableV2", NextName()).Attr("dtype", ElementType::kFloat).Attr("shape", shape)));
  return *this;
}

std::string Inferred::Shapes() {
  auto node = graph_->AddNode(spec_);
  if (!node.ok()) return std::string(absl::StatusCodeToString(node.status().code()));
  std::string shapes;
  for (int i = 0; i < (*node)->num_outputs(); ++i) {
    if (i > 0) shapes += ' ';
    shapes += (*node)->output_shape(i).ToString();
  }
  return shapes;
}

}  // namespace troupe
