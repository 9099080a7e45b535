/// The ops that a step needs and that are not registered.
#ifndef TROUPE_GRAPH_PASSES_MISSING_OPS_H_
#define TROUPE_GRAPH_PASSES_MISSING_OPS_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace troupe {

class FunctionLibrary;

/// Collects them: those of the nodes that are added, and those in the bodies of the functions that
/// these call, and so on. The graph must outlive it. Not thread-safe.
class MissingOps {
 public:
  explicit MissingOps(const Graph& graph);
  ~MissingOps();

  void Add(const Node& node);
  /// NotFound names all of them, and a node for each.
  absl::Status ToStatus() const;

 private:
  struct Uses {
    int nodes = 0;
    std::string first;  ///< "node 'a'", "node 'b' of function 'f'".
  };
  void AddCalls(const NodeDef& node);
  void Note(const std::string& op, const std::string& node, const std::string& function);

  std::unique_ptr<FunctionLibrary> library_;  ///< nullptr: the graph has no functions.
  std::unordered_set<std::string> seen_;      ///< Functions.
  std::map<std::string, Uses> missing_;
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_MISSING_OPS_H_
