/// Constants that wait for something, and need not be executed.
#ifndef TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_
#define TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_

#include "graph/passes/subgraph.h"

namespace troupe {

/// A Const in a branch or loop waits for a pivot, which says that the branch is taken. Where every
/// consumer has other inputs that are alive only if the pivot is, nobody needs to be told: the
/// constant becomes a kConstant without inputs, and what only it needed is dropped.
///
/// Of any other Const, an optimizer's learning rate that waits for reads of its variable, say, the
/// consumers wait in its place, if that takes no more edges: then its value is known while
/// compiling, and a device has it for all steps. Producers stand before consumers but for back
/// edges. What a few bytes say of more than `max_bytes` stays a node.
void LoosenConstants(int64_t max_bytes, Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_LOOSEN_CONSTANTS_H_
