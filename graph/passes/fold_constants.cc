#include <algorithm>

#include "graph/passes/rewrite.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

int64_t BytesOf(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.bytes());
  return bytes;
}

/// Judged by the inferred shapes, so that nothing large is computed in vain.
bool TooLarge(const Node& node, int64_t max_bytes) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const PartialShape& shape = node.output_shape(i);
    if (!shape.fully_known()) continue;
    const int64_t elements = InferenceContext::NumElements(shape);
    const int64_t size = static_cast<int64_t>(ElementSize(node.output_type(i)));
    if (elements < 0 || (size > 0 && elements > max_bytes / size)) return true;
  }
  return false;
}

bool HoldsHandles(const Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ElementType type = node.output_type(i);
    if (type == ElementType::kResource || type == ElementType::kVariant) return true;
  }
  return false;
}

}  // namespace

bool IsInflated(const Node& node, int64_t max_bytes) {
  if (!TooLarge(node, max_bytes)) return false;
  const AttrValue* value = node.attrs().Find("value");
  const int64_t held = value == nullptr ? 0 : static_cast<int64_t>(value->ByteSizeLong());
  return TooLarge(node, std::max(max_bytes, 16 * held));
}

void FoldConstants(const NodeEvaluator& evaluator, int64_t max_bytes, Subgraph* subgraph) {
  const std::vector<Uses> uses = CountUses(*subgraph);
  std::vector<SubNode>& nodes = subgraph->nodes;
  auto is_constant = [&nodes](int32_t i) { return nodes[i].kind == SubNode::Kind::kConstant; };
  for (size_t i = 0; i < nodes.size(); ++i) {
    SubNode& node = nodes[i];
    std::erase_if(node.control_inputs, is_constant);
    // A control input may make the node dead or put it into a loop. A Merge waits for events, which
    // constants do not send.
    if (!node.control_inputs.empty() || !IsPure(node) || uses[i].by_merge) continue;
    const Node& original = *node.original;
    std::vector<Tensor> values;
    if (original.op() == "Const") {
      Tensor value;
      if (IsInflated(original, max_bytes)) continue;
      if (!original.attrs().Get("value", &value).ok() || value.type() != original.output_type(0)) {
        continue;
      }
      values.push_back(std::move(value));
    } else {
      if (!evaluator || node.inputs.empty() || original.num_outputs() == 0 ||
          HoldsHandles(original) || TooLarge(original, max_bytes)) {
        continue;
      }
      if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const SubOutput& input) { return is_constant(input.node); })) {
        continue;
      }
      std::vector<Tensor> inputs;
      for (const SubOutput& input : node.inputs) {
        inputs.push_back(nodes[input.node].values[input.port]);
      }
      absl::StatusOr<std::vector<Tensor>> outputs = evaluator(original, inputs);
      if (!outputs.ok() || static_cast<int>(outputs->size()) != original.num_outputs() ||
          BytesOf(*outputs) > max_bytes ||
          !std::all_of(outputs->begin(), outputs->end(),
                       [](const Tensor& t) { return t.valid(); })) {
        continue;
      }
      values = *std::move(outputs);
    }
    node.kind = SubNode::Kind::kConstant;
    node.values = std::move(values);
    node.inputs.clear();
  }
  // Control edges may point at constants that come later only across back edges, which have none.
  std::erase_if(subgraph->targets, is_constant);
}

}  // namespace troupe
