// Gradients of optionals: optionals of gradients.
#include <vector>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void OptionalFromValueGrad(GradientContext& g) {
  std::vector<ElementType> types;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < g.node()->num_inputs(); ++i) {
    types.push_back(g.input(i).type());
    shapes.push_back(g.input(i).shape());
  }
  Node* values = g.Add("OptionalGetValue", {g.grad()}, [&](NodeSpec& spec) {
    spec.Attr("output_types", absl::MakeConstSpan(types))
        .Attr("output_shapes", absl::MakeConstSpan(shapes));
  });
  for (int i = 0; i < g.node()->num_inputs(); ++i) g.set(i, Output(values, i));
}
REGISTER_GRADIENT("OptionalFromValue", OptionalFromValueGrad);

void OptionalGetValueGrad(GradientContext& g) {
  std::vector<Output> grads;
  for (int i = 0; i < g.node()->num_outputs(); ++i) grads.push_back(g.GradOrZeros(i));
  g.set(0, OfLists(g, "OptionalFromValue", {grads}));
}
REGISTER_GRADIENT("OptionalGetValue", OptionalGetValueGrad);

}  // namespace
}  // namespace troupe::gradients
