/// Functions as graphs, and graphs as functions.
#ifndef TROUPE_GRAPH_FUNCTION_BODY_H_
#define TROUPE_GRAPH_FUNCTION_BODY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/function_library.h"
#include "graph/graph.h"

namespace troupe {

/// A function with its attributes bound, as a graph of its own.
struct FunctionBody {
  std::string name;
  std::shared_ptr<Graph> graph;
  std::vector<Output> args;     ///< The outputs of _Arg nodes, one per tensor.
  std::vector<Output> results;  ///< One per tensor; may be args.
  /// What must run although no result needs it: stateful nodes and control results.
  std::vector<Node*> effects;
};

/// The body of a function. `function.name()` may be "SymbolicGradient" with the attribute `f`: the
/// function that computes the gradients of the arguments of `f`, given its arguments and the
/// gradients of its results; that is the one the library names, or it is made by differentiation
/// (zeros for what no result depends on). `producer`: the version of the GraphDef that the library
/// comes from. `lowered`: of which calls by attribute compiling may put the bodies into this one;
/// the body's graph has the functions for that only. nullptr: it has all that the body can reach.
/// NotFound: no such function; else the errors of `BindFunction`, of importing the body, of
/// differentiating it, all of which name the function.
absl::StatusOr<FunctionBody> InstantiateFunction(const FunctionLibrary& library,
                                                 const NameAttrList& function, int producer,
                                                 const FunctionLibrary::Follow* lowered = nullptr);

struct FunctionDefOptions {
  /// Names of the results; empty: after the nodes they come from.
  std::vector<std::string> output_names;
  /// Nodes that every call runs, besides those that results need.
  std::vector<Node*> control_outputs;
  std::string description;
};

/// A function that computes `outputs` from `inputs` by the nodes of `graph` between them (and what
/// these need: a placeholder that is no input stays in the body). Its types are the tensors'.
/// Importing the definition with `Graph::AddLibrary` makes it callable. InvalidArgument: tensors
/// that are not of the graph, an input given twice, names that are malformed or given twice,
/// references.
absl::StatusOr<FunctionDef> GraphToFunctionDef(const Graph& graph, std::string_view name,
                                               absl::Span<const Output> inputs,
                                               absl::Span<const Output> outputs,
                                               const FunctionDefOptions& options = {});

/// The same with the _Arg and _Retval nodes of the graph as inputs and outputs, by their `index`;
/// all stateful nodes are control outputs.
absl::StatusOr<FunctionDef> GraphToFunctionDef(const Graph& graph, std::string_view name);

}  // namespace troupe

#endif  // TROUPE_GRAPH_FUNCTION_BODY_H_
