/// Pruning: the nodes that a signature needs, cut at the feeds.
#ifndef TROUPE_GRAPH_PASSES_PRUNE_H_
#define TROUPE_GRAPH_PASSES_PRUNE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// The closure of `fetches` and `targets` over data and control inputs; a fed output is replaced by
/// a kFeed node, and what only it needed is left out. All outputs and nodes must belong to `graph`.
/// InvalidArgument: a tensor fed twice, or fed and fetched; a fed tensor that a consumer wants as a
/// reference; a loop whose back edge was never joined. NotFound: ops that are not registered, all
/// of them, those in the functions that the nodes call included; a feed of unknown type. A feed
/// that nobody consumes is kept (its kFeed node has no consumers). Thread-safe.
absl::StatusOr<Subgraph> Prune(const Graph& graph, absl::Span<const Output> feeds,
                               absl::Span<const Output> fetches, absl::Span<Node* const> targets);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PRUNE_H_
