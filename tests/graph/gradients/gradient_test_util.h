/// Building graphs and looking at their gradients in tests.
#ifndef TROUPE_TESTS_GRAPH_GRADIENTS_GRADIENT_TEST_UTIL_H_
#define TROUPE_TESTS_GRAPH_GRADIENTS_GRADIENT_TEST_UTIL_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/gradients/gradient_registry.h"

namespace troupe {

/// The shape of a scalar (`PartialShape()` is an unknown one).
inline const PartialShape kScalar{Shape()};

/// A graph under construction. Nodes are named "f/<op>".
class TestGraph : public GradientBuilder {
 public:
  TestGraph() : TestGraph(std::make_shared<Graph>()) {}

  Output Placeholder(ElementType type, const PartialShape& shape);
  Output Placeholder(const PartialShape& shape) { return Placeholder(ElementType::kFloat, shape); }
  /// An op with one argument, which is a list.
  Output ListOp(std::string_view op, absl::Span<const Output> list,
                const std::function<void(NodeSpec&)>& attrs = nullptr);

  /// Calls AddSymbolicGradients and expects success.
  std::vector<Output> Gradients(std::vector<Output> ys, std::vector<Output> xs,
                                std::vector<Output> grad_ys = {});
  /// Sorted ops of the nodes that the last call of `Gradients` added, constants left out.
  const std::vector<std::string>& added() const { return added_; }

  const std::shared_ptr<Graph>& shared_graph() const { return shared_; }

 private:
  explicit TestGraph(std::shared_ptr<Graph> graph)
      : GradientBuilder(graph.get(), "f"), shared_(std::move(graph)) {}

  std::shared_ptr<Graph> shared_;
  std::vector<std::string> added_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_GRADIENTS_GRADIENT_TEST_UTIL_H_
