/// Simplification of a pruned graph: the same results with fewer nodes.
#ifndef TROUPE_GRAPH_PASSES_SIMPLIFY_H_
#define TROUPE_GRAPH_PASSES_SIMPLIFY_H_

#include <cstdint>

#include "graph/graph.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// Which simplifications to make; each can be switched off.
struct SimplifyOptions {
  bool fold_constants = true;
  bool eliminate_common = true;
  bool remove_identities = true;
  bool remove_unused = true;
  /// A folded node's outputs together may not be larger (bytes).
  int64_t max_folded_bytes = 10 << 20;
};

/// Rewrites `subgraph` in place; order, feeds, fetches and targets stay valid.
/// - Constant folding: nodes without side effects whose inputs are all known become kConstant,
/// their values
///   computed by `evaluator` (none: nothing is folded). A node that fails is left, so that the
///   error arises when it is run. Const nodes become kConstant too when `fold_constants` is set.
/// - Common subexpressions: of nodes with equal op, attributes, device and inputs one remains.
/// - Identities: Identity, StopGradient, PreventGradient and the like, and NoOps, give way to
/// direct edges
///   where that does not add any; an Identity of a reference is a snapshot and stays.
/// - Unused values: a node that is only waited for, and whose values nobody takes, gives way to
/// what it
///   waited for itself (gradients to inputs of the model, say). Its errors, if any, go with it.
/// Stateful ops, references and control flow are never touched, fetched and targeted nodes stay
/// available.
void Simplify(const SimplifyOptions& options, const NodeEvaluator& evaluator, Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_SIMPLIFY_H_
