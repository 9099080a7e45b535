/// Graphs of ops: nodes, edges, names, shapes, collections.
#ifndef TROUPE_GRAPH_GRAPH_H_
#define TROUPE_GRAPH_GRAPH_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/shape.h"
#include "devices/tensor.h"
#include "graph/attr_reader.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class AttrValue;
class TROUPE_LOCAL ConstantValues;
class FunctionDefLibrary;
class GraphDef;
class MetaGraphDef;
class Graph;
class Node;
class NodeDef;
class OpDef;

/// A value or an ordering that flows from one node to another. Control edges have kControlSlot on
/// both ends.
struct Edge {
  static constexpr int kControlSlot = -1;
  Node* src;
  int src_output;
  Node* dst;
  int dst_input;
  bool control() const { return src_output == kControlSlot; }
};

/// An output port of a node: a tensor of the graph. A value.
struct Output {
  Node* node = nullptr;
  int index = 0;
  Output() = default;
  Output(Node* n, int i = 0) : node(n), index(i) {}  // NOLINT: a node is its first output
  bool operator==(const Output&) const = default;
  bool valid() const { return node != nullptr; }
  std::string name() const;  ///< "node:port"; "<none>" if invalid.
  /// Without reference flag. kInvalid for an invalid output, and for one of a node whose op is not
  /// registered (`Node::op_known`) as long as no known op takes it.
  ElementType type() const;
  /// Unknown for an invalid output.
  const PartialShape& shape() const;
};

/// An instance of an op in a graph. Owned by the graph; its definition does not change once added
/// (but for what the friend `Graph` documents). Thread-safe to read while nobody builds.
class Node {
 public:
  int id() const { return id_; }
  const std::string& name() const;
  const std::string& op() const;
  /// False for a node of an imported graph whose op was not registered: it is kept and exported as
  /// it came, and no step can run it. It has the outputs that others name (at least one), of the
  /// types that known ops take them for, and its definition holds a name only.
  bool op_known() const { return op_known_; }
  const NodeDef& def() const { return *def_; }
  const OpDef& op_def() const { return *registration_->def; }
  AttrReader attrs() const { return AttrReader(def_.get()); }
  const std::string& requested_device() const;
  Graph* graph() const { return graph_; }

  /// Data inputs and outputs; types may be references (`IsRefType`).
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  ElementType input_type(int i) const { return input_types_[i]; }
  ElementType output_type(int i) const { return output_types_[i]; }
  /// The tensor that feeds input i.
  Output input(int i) const { return Output(in_data_[i]->src, in_data_[i]->src_output); }
  std::vector<Node*> control_inputs() const;
  /// Outputs [begin, end) of the argument called `name` in the op definition; {-1,-1} if none.
  std::pair<int, int> OutputRange(std::string_view name) const;
  std::pair<int, int> InputRange(std::string_view name) const;

  /// All edges, control edges included, in the order in which they were added; those from `_SOURCE`
  /// and to `_SINK` are listed by these two only (see `Graph::source`).
  const std::vector<Edge*>& in_edges() const { return in_edges_; }
  const std::vector<Edge*>& out_edges() const { return out_edges_; }
  /// The edge into data input i (nullptr while a back edge is still missing).
  const Edge* in_data_edge(int i) const { return in_data_[i]; }

  /// As inferred so far.
  const PartialShape& output_shape(int i) const { return output_shapes_[i]; }
  const HandleShapes& output_handle(int i) const { return output_handles_[i]; }

  /// The node that is executed in this one's stead; nullptr: itself (see `Graph::Replace`).
  Node* replacement() const { return replacement_.load(std::memory_order_acquire); }

  bool IsSource() const { return id_ == 0; }
  bool IsSink() const { return id_ == 1; }
  bool stateful() const;
  ~Node();

 private:
  friend class Graph;
  friend class ConstantValues;
  Node() = default;

  int id_ = -1;
  bool op_known_ = true;
  Graph* graph_ = nullptr;
  std::unique_ptr<NodeDef> def_;
  const OpRegistration* registration_ = nullptr;
  std::vector<ElementType> input_types_, output_types_;
  std::vector<Edge*> in_edges_, out_edges_, in_data_;
  std::vector<PartialShape> output_shapes_;
  std::vector<HandleShapes> output_handles_;
  std::atomic<Node*> replacement_{nullptr};
};

/// What is needed to add a node. Attributes that have defaults, or that follow from the inputs'
/// types and number (`T`, `N`), may be left out.
class NodeSpec {
 public:
  NodeSpec(std::string op, std::string name);
  ~NodeSpec();
  NodeSpec(NodeSpec&&) noexcept;
  NodeSpec(const NodeSpec&);

  /// The next argument of the op: one tensor.
  NodeSpec& Input(Output tensor);
  /// The next argument: a list of tensors (`N * T` or a list of types).
  NodeSpec& Input(absl::Span<const Output> list);
  NodeSpec& ControlInput(Node* node);
  NodeSpec& Device(std::string device);
  NodeSpec& Attr(std::string_view name, const AttrValue& value);
  NodeSpec& Attr(std::string_view name, std::string_view value);
  NodeSpec& Attr(std::string_view name, const char* value) {
    return Attr(name, std::string_view(value));
  }
  NodeSpec& Attr(std::string_view name, int64_t value);
  NodeSpec& Attr(std::string_view name, int value) { return Attr(name, int64_t{value}); }
  NodeSpec& Attr(std::string_view name, float value);
  NodeSpec& Attr(std::string_view name, double value) {
    return Attr(name, static_cast<float>(value));
  }
  NodeSpec& Attr(std::string_view name, bool value);
  NodeSpec& Attr(std::string_view name, ElementType value);
  NodeSpec& Attr(std::string_view name, const PartialShape& value);
  NodeSpec& Attr(std::string_view name, const Tensor& value);
  NodeSpec& Attr(std::string_view name, absl::Span<const int64_t> value);
  NodeSpec& Attr(std::string_view name, absl::Span<const ElementType> value);
  NodeSpec& Attr(std::string_view name, absl::Span<const std::string> value);
  NodeSpec& Attr(std::string_view name, absl::Span<const PartialShape> value);

 private:
  friend class Graph;
  struct Argument {
    bool list;
    std::vector<Output> tensors;
  };
  std::unique_ptr<NodeDef> def_;
  std::vector<Argument> arguments_;
  std::vector<Node*> control_inputs_;
};

/// Computes a small constant sub-graph while a graph is built: runs `node` on host tensors. Given
/// by whoever has kernels (rooms above); without one only Const nodes have known values.
using NodeEvaluator = std::function<absl::StatusOr<std::vector<Tensor>>(
    const Node& node, absl::Span<const Tensor> inputs)>;

/// A set of nodes and edges, with `_SOURCE` (id 0) and `_SINK` (id 1). Shared by reference: it
/// outlives every session that uses it. Every member function is thread-safe; pointers to nodes
/// stay valid for the life of the graph. Nodes are never removed (passes build new graphs).
class Graph : public std::enable_shared_from_this<Graph> {
 public:
  explicit Graph(const OpRegistry* ops = OpRegistry::Global());
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// The evaluator used by all graphs for constant inputs of shape functions. Set once at start-up.
  static void SetEvaluator(NodeEvaluator evaluator);
  /// The evaluator, empty if none was set.
  static const NodeEvaluator& evaluator();

  /// Adds a node: completes and checks attributes, checks the inputs' types, infers shapes.
  /// InvalidArgument / NotFound (unknown op) / AlreadyExists (name taken) / FailedPrecondition
  /// (finalized) name the node, the op, what was expected and what was got. Nothing is added on
  /// failure.
  absl::StatusOr<Node*> AddNode(const NodeSpec& spec);
  /// The same from a definition whose inputs name nodes of this graph.
  absl::StatusOr<Node*> AddNode(const NodeDef& def);
  /// Joins a loop's back edge: `src` (an output of NextIteration) becomes input `dst_input` of
  /// `dst` (a Merge), which was added with that input missing or repeated.
  absl::Status AddBackEdge(Output src, Node* dst, int dst_input);
  absl::Status AddControlEdge(Node* src, Node* dst);

  /// `prefix`, or `prefix_1`, `prefix_2`...: the first name that no node has and no call gave
  /// before.
  std::string UniqueName(std::string_view prefix);

  /// nullptr if there is none.
  Node* FindNode(std::string_view name) const;
  /// "node:port" or "node"; NotFound / InvalidArgument.
  absl::StatusOr<Output> FindOutput(std::string_view tensor_name) const;
  /// All nodes by id, source and sink included, as of now.
  std::vector<Node*> nodes() const;
  int num_nodes() const;
  /// `_SOURCE` precedes every node without inputs, `_SINK` follows every node whose outputs nobody
  /// uses. A call brings their control edges up to date; the edges listed before become invalid.
  Node* source() const;
  Node* sink() const;

  /// A constant's value if it can be known while building: Const nodes, and small sub-graphs of
  /// them by the evaluator. An invalid tensor if not, or if it is larger than 10 MB.
  Tensor ConstantValue(Output tensor) const;
  /// Sets a better shape for an output (as `Tensor.set_shape`): merged with what is known.
  absl::Status RefineShape(Output tensor, const PartialShape& shape);

  /// From now on runs take `replacement`'s outputs (as many, of the same types) wherever `node`'s
  /// are consumed or fetched, and wait for it wherever they would wait for `node`. Differentiation
  /// does so with functional control flow that it has lowered. InvalidArgument if they do not
  /// match.
  absl::Status Replace(Node* node, Node* replacement);

  /// No nodes can be added any more.
  void Finalize();
  bool finalized() const;

  /// Names kept under a key ("variables", "trainable_variables", "summaries", ...), in order.
  void AddToCollection(std::string_view key, std::string value);
  std::vector<std::string> Collection(std::string_view key) const;
  std::vector<std::string> CollectionKeys() const;
  void ClearCollection(std::string_view key);

  /// The graph's seed: random ops without a seed of their own get one from it and their number.
  void set_seed(int64_t seed);
  /// {seed, seed2} for an op, from the graph's seed and the op's own (TensorFlow's rule).
  std::pair<int64_t, int64_t> OpSeeds(const int64_t* op_seed) const;

  /// GraphDef version of imported graphs (`producer`); what `ToGraphDef` writes.
  int producer() const;
  void set_producer(int version);

  void ToGraphDef(GraphDef* def) const;
  const OpRegistry* ops() const { return ops_; }
  /// Functions that came with imported graphs.
  const FunctionDefLibrary& library() const;
  absl::Status AddLibrary(const FunctionDefLibrary& library);

 private:
  friend class GraphImporter;
  struct TROUPE_LOCAL Impl;
  const OpRegistry* ops_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_GRAPH_H_
