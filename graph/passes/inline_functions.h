/// Inlining of function calls in a GraphDef.
#ifndef TROUPE_GRAPH_PASSES_INLINE_FUNCTIONS_H_
#define TROUPE_GRAPH_PASSES_INLINE_FUNCTIONS_H_

#include "absl/status/statusor.h"
#include "graph/op_registry.h"

namespace troupe {

class GraphDef;

/// How deep bodies are put into bodies, each on the stack; deeper calls stay calls, as those do of
/// a function that calls itself. Names grow with the depth as well.
inline constexpr int kMaxBodyNesting = 200;

/// True if some node of `def` is a direct call of a function of its library (its op is the
/// function's name).
bool CallsFunctions(const GraphDef& def);

/// Replaces direct calls by the function's body, calls inside bodies included. The body's nodes are
/// named `call/node`; the call itself becomes an IdentityN of the results (NoOp if there are none)
/// that waits for the body's stateful nodes and control results, so that all names that others use
/// stay. What a call waits for, its whole body waits for. Calls stay calls where a body comes to
/// call its own function again, within `kMaxBodyNesting` bodies, and if the library names a
/// gradient for the function. InvalidArgument names call and function: missing attributes,
/// arguments or results that do not exist, and more than a million nodes in all. Gradients and
/// functional control flow, which name functions in attributes, are left as they are.
absl::StatusOr<GraphDef> InlineFunctionCalls(const GraphDef& def, const OpRegistry& ops);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_INLINE_FUNCTIONS_H_
