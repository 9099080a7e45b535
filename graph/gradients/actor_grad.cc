// The gradient of AskActor: another actor.
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

void AskActorGrad(GradientContext& g) {
  const Node* node = g.node();
  const std::string actor = node->attrs().GetOr<std::string>("gradient", "");
  if (actor.empty()) {
    return g.Fail(absl::UnimplementedError(
        StrCat("actor ", node->attrs().GetOr<std::string>("actor", ""),
               " has no gradient: the node's attribute `gradient` names none")));
  }
  std::vector<Output> inputs, grads;
  std::vector<ElementType> types;
  std::vector<PartialShape> shapes;
  std::vector<int> with_gradient;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output input = g.input(i);
    inputs.push_back(g.Value(input));
    if (!IsFloating(input.type()) && !IsComplex(input.type())) continue;
    with_gradient.push_back(i);
    types.push_back(input.type());
    shapes.push_back(input.shape());
  }
  for (int i = 0; i < node->num_outputs(); ++i) {
    const ElementType type = g.output(i).type();
    if (IsFloating(type) || IsComplex(type)) inputs.push_back(g.GradOrZeros(i));
  }
  NodeSpec spec("AskActor", g.NewName("AskActor"));
  spec.Input(inputs).Attr("actor", actor).Attr("Tout", types).Attr("shapes", shapes);
  if (const AttrValue* timeout = node->attrs().Find("timeout_ms"))
    spec.Attr("timeout_ms", *timeout);
  Node* const asked = g.Add(std::move(spec));
  if (asked == nullptr) return;
  for (size_t i = 0; i < with_gradient.size(); ++i) {
    g.set(with_gradient[i], Output(asked, static_cast<int>(i)));
  }
}
REGISTER_GRADIENT("AskActor", AskActorGrad);
REGISTER_NO_GRADIENT("TellActor");

}  // namespace
}  // namespace troupe
