/// Constants in branches and loops that need not be executed.
#ifndef TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_
#define TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_

#include "graph/passes/subgraph.h"

namespace troupe {

/// A Const in a branch or loop waits for a pivot, which says that the branch is taken. Where every
/// consumer has other inputs that are alive only if the pivot is, nobody needs to be told: the
/// constant becomes a kConstant without inputs, and what only it needed is dropped. For graphs with
/// control flow; producers stand before consumers but for back edges.
void LoosenConstants(Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_
