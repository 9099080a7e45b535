/// What a graph remembers of its collections and variables, beside the names in `Graph`'s
/// collections: what a MetaGraph needs to be written as it came. Thread-safe.
#ifndef TROUPE_GRAPH_COLLECTION_RECORDS_H_
#define TROUPE_GRAPH_COLLECTION_RECORDS_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace troupe {

class Graph;
class VariableDef;

/// What the values of a collection are: strings in any case. Numbers are written in decimal, `kAny`
/// is a serialized google.protobuf.Any.
enum class CollectionKind { kNodes, kBytes, kInt64, kFloat, kAny };

/// nullopt: nobody has said so. Values that all name nodes or tensors are taken for names then,
/// others for bytes.
std::optional<CollectionKind> FindCollectionKind(const Graph& graph, std::string_view key);
void SetCollectionKind(Graph* graph, std::string_view key, CollectionKind kind);

/// What is known of the variable whose node (VarHandleOp, VariableV2) is called `node`: the names
/// of its initializer, of what reads it, of its initial value; its slice of a larger one. As it was
/// set, else as the graph shows it; what that does not show stays empty,
/// and whether it is trainable. NotFound: there is no such
/// node; InvalidArgument: it is no variable.
absl::StatusOr<VariableDef> DescribeVariable(const Graph& graph, std::string_view node);
/// The node is the one that `variable_name` names. Replaces what was known.
void SetVariableDef(Graph* graph, VariableDef def);

}  // namespace troupe

#endif  // TROUPE_GRAPH_COLLECTION_RECORDS_H_
