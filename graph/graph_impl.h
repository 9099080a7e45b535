/// What a Graph holds. For the sources of `graph/` only.
#ifndef TROUPE_GRAPH_GRAPH_IMPL_H_
#define TROUPE_GRAPH_GRAPH_IMPL_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/collection_records.h"
#include "graph/constant_values.h"
#include "graph/graph.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

class VariableDef;

/// The GraphDef version that this runtime writes and reads (TensorFlow 2.21's).
inline constexpr int kGraphDefVersion = 2474;

/// All members need the lock (`mutex`), which no member function takes.
struct Graph::Impl {
  /// A node to be added, its inputs found.
  struct NewNode {
    std::unique_ptr<NodeDef> def;  ///< Without `input`, if the op is known.
    const OpRegistration* registration = nullptr;
    bool op_known = true;  ///< False: `registration` is an `Unknown` one.
    /// One per data input; an invalid Output is a back edge that comes later (Merge only).
    absl::Span<const Output> inputs;
    absl::Span<Node* const> control_inputs;
    /// GraphDef version of the definition; that of this graph if there is none.
    std::optional<int> producer;
  };

  Impl(Graph* owner, const OpRegistry* registry);
  ~Impl();

  /// The registration of an op or of a function of the library. NotFound; Unimplemented if the op
  /// was removed before version `producer`.
  absl::StatusOr<const OpRegistration*> LookUp(const std::string& op, int producer) const;
  /// The same for a node that is to be added by hand. FailedPrecondition if the graph is finalized.
  absl::StatusOr<const OpRegistration*> LookUpFor(const NodeDef& def) const;
  /// Stands for an op that nobody has registered.
  const OpRegistration* Unknown(const std::string& op);
  /// True if the output exists, or may exist because its node's op is not known.
  static bool MayHave(const Output& output);
  /// OK if input `i`, which should be `expected`, can be `input`.
  absl::Status CheckInput(const NodeDef& def, int i, ElementType expected,
                          const Output& input) const;
  /// The error that input `i` is not `expected`, with how to write a literal that is at fault.
  absl::Status WithHint(const absl::Status& error, absl::Span<const Output> inputs, size_t i,
                        ElementType expected);
  /// Notes that a node takes `output` as `type`: all that is known of an unknown op's outputs.
  static void Adopt(const Output& output, ElementType type);
  /// Completes and checks the definition, infers shapes, joins the edges.
  absl::StatusOr<Node*> Add(NewNode node);
  absl::StatusOr<Output> FindOutput(std::string_view tensor_name) const;
  Node* FindNode(std::string_view name) const;

  Edge* AddEdge(Node* src, int src_output, Node* dst, int dst_input);
  void AddControlEdge(Node* src, Node* dst);
  absl::Status JoinBackEdge(Output src, Node* dst, int dst_input);
  absl::Status Refine(Output tensor, const PartialShape& shape);
  absl::Status AddLibrary(const FunctionDefLibrary& functions);

  /// Takes back every node and edge added since there were `num_nodes` and `num_edges`.
  void Truncate(size_t num_nodes, size_t num_edges);
  /// Takes back the functions and gradients of the library past the first ones.
  void TruncateLibrary(int num_functions, int num_gradients);
  /// Lists the edges that join source and sink to the rest, as of now.
  void ConnectSourceAndSink();

  mutable std::mutex mutex;
  Graph* const graph;
  const OpRegistry* const ops;
  std::vector<std::unique_ptr<Node>> nodes;             // by id
  std::deque<Edge> edges;                               // in the order of adding; never move
  std::unordered_map<std::string_view, Node*> by_name;  // keys live in the nodes' definitions
  std::deque<Edge> boundary_edges;
  size_t connected_nodes = 0, connected_edges = 0;

  std::unordered_map<std::string, int> used_names;  // by UniqueName: the next number to try
  std::unordered_set<std::string> given_names;      // by UniqueName
  std::map<std::string, std::vector<std::string>, std::less<>> collections;
  std::map<std::string, CollectionKind, std::less<>> collection_kinds;  // of those not guessed
  // By the variable's node.
  std::map<std::string, std::shared_ptr<const VariableDef>, std::less<>> variable_defs;
  std::optional<int64_t> seed;
  int producer = kGraphDefVersion;
  bool finalized = false;
  FunctionDefLibrary library;
  std::unordered_map<std::string, std::unique_ptr<OpRegistration>> functions;
  std::unordered_map<std::string, std::unique_ptr<OpRegistration>> unknown_ops;
  mutable ConstantValues constants;
};

/// What puts into a graph, or takes out of it, more than the interface of `Graph` has.
class GraphImporter {
 protected:
  using Impl = Graph::Impl;
  static Impl* Inside(const Graph& graph) { return graph.impl_.get(); }
};

/// True for names that TensorFlow accepts for nodes: a letter, digit or dot, then also `_`, `-`,
/// `/`, `\`, `>`.
bool IsNodeName(std::string_view name);

/// Splits "node:port", "node" (port 0) and "^node" (port Edge::kControlSlot). False if malformed.
bool ParseTensorName(std::string_view text, std::string_view* node, int* port);

}  // namespace troupe

#endif  // TROUPE_GRAPH_GRAPH_IMPL_H_
