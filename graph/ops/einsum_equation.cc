#include "graph/ops/einsum_equation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

absl::StatusOr<EinsumTerm> ParseTerm(std::string_view text) {
  EinsumTerm term;
  term.text = std::string(text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      (term.ellipsis ? term.after : term.before).push_back(static_cast<unsigned char>(text[i]));
      continue;
    }
    if (text.substr(i, 3) != "..." || term.ellipsis) {
      return InvalidArgument("Einsum: '", text, "' has a dot that belongs to no ellipsis, or two ",
                             "ellipses");
    }
    term.ellipsis = true;
    i += 2;
  }
  return term;
}

}  // namespace

bool EinsumTerm::Has(int label) const {
  return std::find(before.begin(), before.end(), label) != before.end() ||
         std::find(after.begin(), after.end(), label) != after.end();
}

absl::StatusOr<std::vector<int>> EinsumTerm::LabelsOf(int rank) const {
  const int named = static_cast<int>(before.size() + after.size());
  if (ellipsis ? rank < named : rank != named) {
    return InvalidArgument("Einsum: '", text, "' asks for ", ellipsis ? "at least " : "", named,
                           " dimensions, the operand has ", rank);
  }
  std::vector<int> labels = before;
  for (int i = rank - named; i > 0; --i) labels.push_back(-i);
  labels.insert(labels.end(), after.begin(), after.end());
  return labels;
}

absl::StatusOr<EinsumEquation> EinsumEquation::Parse(std::string_view text) {
  const std::vector<std::string> sides =
      absl::StrSplit(absl::string_view(text.data(), text.size()), "->");
  if (sides.size() != 2) {
    return InvalidArgument("Einsum: the equation must have exactly one '->', got '", text, "'");
  }
  EinsumEquation equation;
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  for (const std::string& term : terms) {
    TROUPE_ASSIGN_OR_RETURN(equation.inputs.emplace_back(), ParseTerm(term));
  }
  if (equation.inputs.size() > 2) {
    return InvalidArgument("Einsum: the equation must have one or two operands, got '", text, "'");
  }
  TROUPE_ASSIGN_OR_RETURN(equation.output, ParseTerm(sides[1]));
  for (const std::vector<int>* labels : {&equation.output.before, &equation.output.after}) {
    for (const int label : *labels) {
      const bool known = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                     [&](const EinsumTerm& term) { return term.Has(label); });
      if (!known) {
        return InvalidArgument("Einsum: label '", std::string(1, static_cast<char>(label)),
                               "' of the result is in no operand of '", text, "'");
      }
    }
  }
  return equation;
}

}  // namespace troupe
