#include <algorithm>
#include <iomanip>
#include <sstream>

#include "api/layers/layers.h"

namespace troupe::layers {

namespace {

/// The product of the sizes up to `end`, of which unknown ones count as 1.
int64_t Elements(const PartialShape& shape, int end) {
  int64_t count = 1;
  for (int i = 0; i < end && i < shape.rank(); ++i) count *= std::max<int64_t>(shape.dim(i), 1);
  return count;
}
/// Of all axes but the last one.
int64_t Rows(const PartialShape& shape) { return Elements(shape, shape.rank() - 1); }

/// How often a run of `node` multiplies each weight of its input `slot`; 0 if it does not.
int64_t Uses(const Node& node, int slot) {
  const std::string& op = node.op();
  const PartialShape& out = node.output_shape(0);
  const PartialShape& weights = node.input(slot).shape();
  if (out.unknown_rank() || weights.unknown_rank()) return 0;
  if (op == "MatMul" && slot == 1) {
    // Of x [batch, time, depth] as rows, their number is unknown if the batch is, and that of x's
    // rows is not.
    const Node& rows = *node.input(0).node;
    if (rows.op() != "Reshape" || out.dim(0) >= 0) return Rows(out);
    const PartialShape& x = rows.input(0).shape();
    const bool same_depth = x.rank() > 0 && x.dim(x.rank() - 1) == weights.dim(0);
    return same_depth ? Rows(x) : Rows(out);
  }
  if (op.starts_with("BatchMatMul") && slot == 1) {
    return Rows(out) / std::max<int64_t>(Elements(weights, weights.rank() - 2), 1);
  }
  if (slot == 1 && (op == "Conv2D" || op == "Conv3D" || op == "DepthwiseConv2dNative")) {
    return Rows(out);
  }
  if (slot == 1 && (op == "Conv2DBackpropInput" || op == "Conv3DBackpropInputV2") &&
      !node.input(2).shape().unknown_rank()) {
    return Rows(node.input(2).shape());
  }
  return 0;
}

bool IsGradient(const Node& node) {
  return node.name().starts_with("gradients") ||
         node.name().find("/gradients") != std::string::npos;
}

/// How often each element of `tensor` is multiplied, here and where ops that only hand it on take
/// it.
int64_t UsesOf(const Output& tensor) {
  int64_t uses = 0;
  for (const Edge* edge : tensor.node->out_edges()) {
    if (edge->control() || edge->src_output != tensor.index || IsGradient(*edge->dst)) continue;
    const std::string& op = edge->dst->op();
    if (op == "Identity" || op == "Enter" || op == "ExpandDims" || op == "ConcatV2" ||
        op == "Reshape" || op == "Cast") {
      uses += edge->dst_input == 0 || op == "ConcatV2" ? UsesOf(Output(edge->dst)) : 0;
    } else if (op == "Switch") {
      if (edge->dst_input == 0) uses += UsesOf({edge->dst, 0}) + UsesOf({edge->dst, 1});
    } else {
      uses += Uses(*edge->dst, edge->dst_input);
    }
  }
  return uses;
}

}  // namespace

std::string Summary(const Graph& graph) {
  const std::vector<std::string> trainable = graph.Collection(collections::kTrainableVariables);
  std::ostringstream text;
  int64_t sums[2] = {0, 0}, multiply_adds = 0;
  text << std::left << std::setw(40) << "variable" << ' ' << std::setw(20) << "shape" << ' '
       << std::right << std::setw(12) << "parameters" << ' ' << std::setw(14) << "multiply-adds"
       << '\n';
  for (const std::string& handle : graph.Collection(collections::kVariables)) {
    const ModelVariable variable = ModelVariable::FromHandle(graph, handle);
    if (!variable.valid()) continue;
    const absl::StatusOr<Shape> shape = variable.shape().ToShape();
    const bool is_trainable =
        std::find(trainable.begin(), trainable.end(), handle) != trainable.end();
    text << std::left << std::setw(40) << variable.name() << ' ' << std::setw(20)
         << variable.shape().ToString() << ' ' << std::right << std::setw(12);
    if (shape.ok()) {
      const int64_t multiplied = UsesOf(variable.value()) * shape->num_elements();
      text << shape->num_elements() << ' ' << std::setw(14) << multiplied;
      sums[is_trainable ? 0 : 1] += shape->num_elements();
      multiply_adds += multiplied;
    } else {
      text << '?' << ' ' << std::setw(14) << '?';
    }
    text << (is_trainable ? "" : "  not trained") << '\n';
  }
  text << sums[0] << " parameters are trained, " << sums[1] << " are not\n"
       << multiply_adds << " multiply-adds\n";
  return text.str();
}

}  // namespace troupe::layers
