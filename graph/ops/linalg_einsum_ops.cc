// Einsum: products and sums that an equation describes.
#include <map>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/einsum_equation.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status EinsumShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, c->attrs().Get<std::string>("equation"));
  TROUPE_ASSIGN_OR_RETURN(const EinsumEquation equation, EinsumEquation::Parse(text));
  if (static_cast<int>(equation.inputs.size()) != c->num_inputs()) {
    return InvalidArgument("Einsum: '", text, "' is about ", equation.inputs.size(),
                           " operands, there are ", c->num_inputs());
  }
  std::map<int, int64_t> sizes;
  PartialShape ellipsis = C::Scalar();
  for (int i = 0; i < c->num_inputs(); ++i) {
    const EinsumTerm& term = equation.inputs[i];
    const PartialShape& shape = c->input(i);
    if (shape.unknown_rank()) {
      if (term.ellipsis) ellipsis = PartialShape();
      for (const std::vector<int>* labels : {&term.before, &term.after}) {
        for (const int label : *labels) sizes.emplace(label, -1);
      }
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> labels, term.LabelsOf(shape.rank()));
    for (int d = 0; d < shape.rank(); ++d) {
      if (labels[d] < 0) continue;
      int64_t& size = sizes.emplace(labels[d], -1).first->second;
      TROUPE_ASSIGN_OR_RETURN(size, C::MergeDim(size, shape.dim(d)));
    }
    if (term.ellipsis) {
      const int64_t begin = static_cast<int64_t>(term.before.size());
      const int64_t end = shape.rank() - static_cast<int64_t>(term.after.size());
      TROUPE_ASSIGN_OR_RETURN(const PartialShape outer, C::Subshape(shape, begin, end));
      TROUPE_ASSIGN_OR_RETURN(ellipsis, BroadcastShapes(ellipsis, outer, false));
    }
  }
  if (!equation.output.ellipsis) {
    if (!ellipsis.unknown_rank() && ellipsis.rank() > 0) {
      return InvalidArgument("Einsum: the result of '", text, "' must have an ellipsis for the ",
                             ellipsis.rank(), " dimensions that are broadcast");
    }
    ellipsis = C::Scalar();
  }
  const auto sized = [&](const std::vector<int>& labels) {
    std::vector<int64_t> dims;
    for (const int label : labels) dims.push_back(sizes.at(label));
    return PartialShape(dims);
  };
  return SetShape(c, sized(equation.output.before)
                         .Concatenate(ellipsis)
                         .Concatenate(sized(equation.output.after)));
}

}  // namespace

REGISTER_OP("Einsum")
    .Signature("inputs: N * T -> output: T")
    .Attr("equation: string")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .SetShapeFn(EinsumShape)
    .Doc(
        "Multiplies one or two tensors and sums the products, as Einstein's convention has it. "
        "`equation` names the dimensions of the `inputs` and of the result by one character each: "
        "\"ij,jk->ik\" is a product of matrices. Dimensions with the same name have the same size "
        "and go along together, within an input, too (\"ii->i\" is a diagonal); those that the "
        "result lacks are summed over; a name that the result repeats gives a diagonal among "
        "zeros. \"...\" stands for any number of dimensions, which are broadcast.");

}  // namespace troupe
