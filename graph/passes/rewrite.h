/// What the rewriting passes share. For the sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_REWRITE_H_
#define TROUPE_GRAPH_PASSES_REWRITE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/passes/simplify.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// Switch, Merge, Enter, Exit, NextIteration, LoopCond, ControlTrigger and their reference forms:
/// ops that the executor treats in ways of their own.
bool IsControlFlow(std::string_view op);
bool IsMergeOp(std::string_view op);

/// True for an op node that may be computed once for several, or while compiling: no state, no
/// references, no control flow, no placeholder.
bool IsPure(const SubNode& node);

/// True if the output is a reference to a variable; the node that holds that variable: the first in
/// the chain of references.
bool IsReference(const std::vector<SubNode>& nodes, SubOutput output);
int32_t ReferenceRoot(const std::vector<SubNode>& nodes, SubOutput reference);

/// How the outputs of each node are used.
struct Uses {
  int32_t data = 0;     ///< By inputs of other nodes.
  int32_t control = 0;  ///< By control inputs.
  bool by_merge = false;
  bool fetched = false;
  bool target = false;
};
std::vector<Uses> CountUses(const Subgraph& subgraph);

void SortUnique(std::vector<int32_t>* list);

/// Per node: those that it is an input or a control input of, once for each.
std::vector<std::vector<int32_t>> ConsumersOf(const std::vector<SubNode>& nodes);

/// Moves node i to place numbers[i], or drops it if that is -1. What refers to it follows.
void Renumber(const std::vector<int32_t>& numbers, Subgraph* subgraph);

/// Removes the nodes that neither fetches nor targets need (feeds stay), and numbers the rest anew.
void DropUnused(Subgraph* subgraph);

/// True for a Const node whose few bytes stand for very many elements of one value, more than
/// `max_bytes` of them: it stays a node, whose value lives no longer than its step.
bool IsInflated(const Node& node, int64_t max_bytes);
void FoldConstants(const NodeEvaluator& evaluator, int64_t max_bytes, Subgraph* subgraph);
void EliminateCommon(Subgraph* subgraph);
void RemoveIdentities(Subgraph* subgraph);
/// What becomes unused is still there afterwards; `DropUnused` drops it.
void RemoveUnused(Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_REWRITE_H_
