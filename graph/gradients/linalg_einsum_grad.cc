// The gradient of Einsum: of each operand, an Einsum of the gradient and the other operand.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/gradients/gradient_ops.h"
#include "graph/ops/einsum_equation.h"

namespace troupe::gradients {
namespace {

Output Einsum(GradientContext& g, const std::vector<Output>& operands,
              const std::string& equation) {
  return OfLists(g, "Einsum", {operands}, [&](NodeSpec& spec) { spec.Attr("equation", equation); });
}

std::string Named(const EinsumTerm& term) {
  std::string labels;
  for (const std::vector<int>* part : {&term.before, &term.after}) {
    for (const int label : *part) labels.push_back(static_cast<char>(label));
  }
  return labels;
}

/// The sizes of the dimensions that the term's ellipsis stands for.
Sizes EllipsisSizes(GradientContext& g, const EinsumTerm& term, Output operand) {
  if (!term.ellipsis) return Sizes::Known(g, {});
  const int after = static_cast<int>(term.after.size());
  return Sizes::OfShape(g, operand)
      .Slice(static_cast<int>(term.before.size()), after == 0 ? Sizes::kEnd : -after);
}

/// The size of dimension number i of those that have names.
Sizes NamedSize(GradientContext& g, const EinsumTerm& term, Output operand, int i) {
  const int before = static_cast<int>(term.before.size());
  const int count = before + static_cast<int>(term.after.size());
  const Sizes sizes = Sizes::OfShape(g, operand);
  if (i < before) return sizes.Slice(i, i + 1);
  return sizes.Slice(i - count, i - count + 1 == 0 ? Sizes::kEnd : i - count + 1);
}

/// The gradient of operand `i`.
Output OperandGrad(GradientContext& g, const EinsumEquation& equation, int i) {
  const EinsumTerm& term = equation.inputs[i];
  const bool binary = equation.inputs.size() == 2;
  const EinsumTerm* other = binary ? &equation.inputs[1 - i] : nullptr;
  const Output input = g.input(i);

  // The labels that the gradient or the other operand has, each once; those that were summed over.
  std::string kept, summed;
  std::vector<Sizes> kept_sizes, summed_sizes;
  const std::string named = Named(term);
  for (size_t d = 0; d < named.size(); ++d) {
    const int label = static_cast<unsigned char>(named[d]);
    const bool keeps = equation.output.Has(label) || (binary && other->Has(label));
    std::string& list = keeps ? kept : summed;
    if (list.find(named[d]) != std::string::npos) continue;
    list.push_back(named[d]);
    (keeps ? kept_sizes : summed_sizes).push_back(NamedSize(g, term, input, static_cast<int>(d)));
  }

  const bool ellipsis = equation.output.ellipsis;
  const std::string outer = ellipsis ? "..." : "";
  std::vector<Output> operands = {g.grad()};
  std::string text = equation.output.text;
  if (binary) {
    operands.push_back(g.Conj(g.input(1 - i)));
    text += "," + other->text;
  }
  Output grad = Einsum(g, operands, text + "->" + outer + kept);
  if (ellipsis && binary) {
    // What was broadcast is summed.
    const Sizes mine = EllipsisSizes(g, term, input);
    Sizes target = mine;
    for (const Sizes& size : kept_sizes) target = target.Concat(size);
    Unbroadcast unbroadcast(g, mine, EllipsisSizes(g, *other, g.input(1 - i)));
    grad = unbroadcast.Reduce(0, grad, &target);
  }
  const std::string mine = (term.ellipsis ? "..." : "") + kept;
  if (summed.empty()) {
    return mine == term.text ? grad : Einsum(g, {grad}, mine + "->" + term.text);
  }
  Sizes sizes = summed_sizes[0];
  for (size_t s = 1; s < summed_sizes.size(); ++s) sizes = sizes.Concat(summed_sizes[s]);
  const Output ones = g.Op("Fill", {sizes.Vector(), g.ScalarOfType(input.type(), 1)});
  return Einsum(g, {grad, ones}, mine + "," + summed + "->" + term.text);
}

void EinsumGrad(GradientContext& g) {
  const absl::StatusOr<EinsumEquation> equation =
      EinsumEquation::Parse(g.node()->attrs().GetOr<std::string>("equation", ""));
  if (!equation.ok()) return g.Fail(equation.status());
  for (int i = 0; i < static_cast<int>(equation->inputs.size()); ++i) {
    if (g.wanted(i)) g.set(i, OperandGrad(g, *equation, i));
  }
}
REGISTER_GRADIENT("Einsum", EinsumGrad);

}  // namespace
}  // namespace troupe::gradients
