// Strings: joining, regular expressions.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// Inputs that are no scalars have one shape, which is the result's.
absl::Status StringJoinShape(InferenceContext* c) {
  PartialShape result;
  bool scalars = true;
  for (int i = 0; i < c->num_inputs(); ++i) {
    const PartialShape& input = c->input(i);
    if (!input.unknown_rank() && input.rank() == 0) continue;
    scalars = false;
    TROUPE_ASSIGN_OR_RETURN(result, InferenceContext::Merge(result, input));
  }
  c->set_output(0, scalars ? InferenceContext::Scalar() : result);
  return absl::OkStatus();
}

/// The inputs after the first one are scalars.
absl::Status RegexShape(InferenceContext* c) {
  for (int i = 1; i < c->num_inputs(); ++i) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(i), 0).status());
  }
  return UnchangedShape(c);
}

REGISTER_OP("StringJoin")
    .Signature("inputs: N * string -> output: string")
    .Attr("N: int >= 0")
    .Attr("separator: string = ''")
    .SetShapeFn(StringJoinShape)
    .Doc(
        "Joins strings element by element, with `separator` between them. Inputs have one shape, "
        "or are scalars.");

REGISTER_OP("RegexFullMatch")
    .Signature("input: string, pattern: string -> output: bool")
    .SetShapeFn(RegexShape)
    .Doc("Whether all of each string matches the regular expression `pattern` (RE2's syntax).");

REGISTER_OP("StaticRegexFullMatch")
    .Signature("input: string -> output: bool")
    .Attr("pattern: string")
    .SetShapeFn(UnchangedShape)
    .Doc("As `RegexFullMatch`, with the pattern known when the graph is built.");

REGISTER_OP("RegexReplace")
    .Signature("input: string, pattern: string, rewrite: string -> output: string")
    .Attr("replace_global: bool = true")
    .SetShapeFn(RegexShape)
    .Doc(
        "Replaces what matches the regular expression `pattern` (RE2's syntax) in each string: "
        "all of it, or the first place only. In `rewrite`, \\\\1 to \\\\9 stand for what groups "
        "have matched, \\\\0 for the whole match.");

REGISTER_OP("StaticRegexReplace")
    .Signature("input: string -> output: string")
    .Attr("pattern: string")
    .Attr("rewrite: string")
    .Attr("replace_global: bool = true")
    .SetShapeFn(UnchangedShape)
    .Doc("As `RegexReplace`, with pattern and replacement known when the graph is built.");

}  // namespace
}  // namespace troupe
