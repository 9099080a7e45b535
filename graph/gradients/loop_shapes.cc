#include "graph/gradients/loop_shapes.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/shape_inference.h"

namespace troupe::gradients {
namespace {

constexpr int kMaxRounds = 20;

/// What two shapes have in common.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (a.unknown_rank() || b.unknown_rank() || a.rank() != b.rank()) return PartialShape();
  std::vector<int64_t> dims;
  for (int d = 0; d < a.rank(); ++d) {
    dims.push_back(a.dim(d) == b.dim(d) ? a.dim(d) : PartialShape::kUnknown);
  }
  return PartialShape(dims);
}

class LoopShapes {
 public:
  LoopShapes(Graph* graph, const ControlFlowAnalysis& flow, int frame) : graph_(graph) {
    for (Node* node : graph->nodes()) {
      if (node->id() < 2) continue;
      int loop = flow.LoopOf(node);
      while (flow.frame(loop).depth > flow.frame(frame).depth) loop = flow.frame(loop).parent;
      if (loop == frame) nodes_.push_back(node);
    }
  }

  void Run() {
    if (AllKnown()) return;
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = round == 0;
      for (Node* node : nodes_) {
        std::vector<PartialShape> shapes = Infer(node);
        std::vector<PartialShape>& known = shapes_[node];
        changed |= shapes != known;
        known = std::move(shapes);
      }
      if (!changed) return Commit();
    }
  }

 private:
  bool AllKnown() const {
    for (const Node* node : nodes_) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        if (!node->output_shape(i).fully_known()) return false;
      }
    }
    return true;
  }

  PartialShape ShapeOf(const Edge* edge) const {
    auto found = shapes_.find(edge->src);
    if (found == shapes_.end() || found->second.empty()) {
      return edge->src->output_shape(edge->src_output);
    }
    return found->second[edge->src_output];
  }

  std::vector<PartialShape> InferMerge(const Node* node) const {
    // Until the first round is over nothing is known of what comes back.
    std::optional<PartialShape> shape;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Edge* edge = node->in_data_edge(i);
      if (edge == nullptr) return {PartialShape(), PartialShape(Shape())};
      if (IsNextIteration(edge->src) && !shapes_.contains(edge->src)) continue;
      shape = shape ? Common(*shape, ShapeOf(edge)) : ShapeOf(edge);
    }
    return {shape.value_or(PartialShape()), PartialShape(Shape())};
  }

  Tensor ValueOf(const Edge* edge) const {
    const Output output(edge->src, edge->src_output);
    Tensor value = graph_->ConstantValue(output);
    if (value.valid() || edge->src->op() != "Shape" || edge->src->num_inputs() != 1) return value;
    const PartialShape shape = ShapeOf(edge->src->in_data_edge(0));
    if (!shape.fully_known() || output.type() != ElementType::kInt32) return value;
    std::vector<int32_t> sizes;
    for (const int64_t size : shape.dims()) {
      if (size > INT32_MAX) return value;
      sizes.push_back(static_cast<int32_t>(size));
    }
    return Tensor::Vector<int32_t>(sizes);
  }

  std::vector<PartialShape> Infer(const Node* node) const {
    std::vector<PartialShape> found;
    if (IsMerge(node)) {
      found = InferMerge(node);
    } else {
      const auto registration = graph_->ops()->LookUp(node->op());
      found.resize(node->num_outputs());
      if (registration.ok() && (*registration)->shape_fn != nullptr) {
        std::vector<PartialShape> shapes;
        std::vector<HandleShapes> handles;
        for (int i = 0; i < node->num_inputs(); ++i) {
          const Edge* edge = node->in_data_edge(i);
          if (edge == nullptr) return found;
          shapes.push_back(ShapeOf(edge));
          handles.push_back(edge->src->output_handle(edge->src_output));
        }
        InferenceContext::ValueSource values;
        values.tensor = [this, node](int i) { return ValueOf(node->in_data_edge(i)); };
        InferenceContext context(&node->def(), &node->op_def(), std::move(shapes),
                                 std::move(handles), node->num_outputs(), std::move(values));
        context.set_graph_version(graph_->producer());
        if (CatchExceptions([&] { return (*registration)->shape_fn(&context); }).ok()) {
          for (int i = 0; i < node->num_outputs(); ++i) found[i] = context.output(i);
        }
      }
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      auto merged = found[i].MergeWith(node->output_shape(i));
      if (merged.ok()) found[i] = *std::move(merged);
    }
    return found;
  }

  void Commit() {
    for (Node* node : nodes_) {
      const std::vector<PartialShape>& shapes = shapes_[node];
      for (int i = 0; i < node->num_outputs(); ++i) {
        // One that contradicts what was known is no better than that.
        if (shapes[i] != node->output_shape(i)) {
          graph_->RefineShape(Output(node, i), shapes[i]).IgnoreError();
        }
      }
    }
  }

  Graph* graph_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, std::vector<PartialShape>> shapes_;
};

}  // namespace

void InferLoopShapes(Graph* graph, const ControlFlowAnalysis& flow, int frame) {
  LoopShapes(graph, flow, frame).Run();
}

}  // namespace troupe::gradients
