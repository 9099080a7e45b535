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
///
/// Constant folding: a node without side effects whose inputs are all known becomes a kConstant.
/// `evaluator` computes its values; without one nothing is folded. A node that fails stays, so that
/// the error arises when it is run. Const nodes become kConstant, too.
///
/// Common subexpressions: of nodes with equal op, attributes, device and inputs one remains.
///
/// Identities: Identity, StopGradient, PreventGradient and the like, and NoOps, give way to direct
/// edges where that adds none. An Identity of a reference is a snapshot and stays.
///
/// Unused values: a node whose values nobody takes, and for which others only wait (a gradient of
/// the model's input, say), gives way to what it waits for itself. Its errors go with it.
///
/// Stateful ops, references and control flow are never touched; what is fetched or a target stays.
void Simplify(const SimplifyOptions& options, const NodeEvaluator& evaluator, Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_SIMPLIFY_H_
