/// Values that are known while a graph is built: constants, and shapes computed from known shapes.
#ifndef TROUPE_GRAPH_CONSTANT_VALUES_H_
#define TROUPE_GRAPH_CONSTANT_VALUES_H_

#include <cstdint>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace troupe {

/// Finds and remembers values of outputs. As TensorFlow's shape refiner: Const nodes, Shape,
/// ShapeN, Size and Rank of known shapes, an element of a partly known shape, and what the
/// evaluator makes of those. Ops with state, Merge and PlaceholderWithDefault end the search. Not
/// thread-safe.
class ConstantValues {
 public:
  /// An invalid tensor if the value is not known.
  Tensor Value(Output tensor);
  /// The value, a vector of sizes, as far as it is known: through Shape, Pack, Concat,
  /// StridedSlice, Cast.
  absl::StatusOr<PartialShape> AsShape(Output tensor);
  /// Shapes have changed: what was unknown may be known now.
  void Forget() { known_.clear(); }

 private:
  absl::StatusOr<PartialShape> AsShape(Output tensor, int* budget);
  absl::StatusOr<PartialShape> PackAsShape(const Node& pack);
  absl::StatusOr<PartialShape> ConcatAsShape(const Node& concat, int* budget);
  absl::StatusOr<PartialShape> SliceAsShape(const Node& slice, int* budget);
  /// A scalar or a single element; false if not known.
  bool Integer(Output tensor, int64_t* value);
  /// What needs no kernel: Const and questions about shapes. Invalid if nothing is known.
  Tensor FromShapes(Output tensor);
  Tensor ElementOfShape(const Node& slice);
  /// Runs `node` on the known values of its inputs.
  bool Evaluate(const Node& node);

  Tensor* Find(Output tensor);
  void Remember(Output tensor, Tensor value);

  std::unordered_map<uint64_t, Tensor> known_;  // by node and port; invalid: not to be known
};

/// Shapes and handle shapes of a node's outputs.
struct InferredShapes {
  std::vector<PartialShape> shapes;
  std::vector<HandleShapes> handles;
};

/// Runs the op's shape function. InvalidArgument names node, op and the inputs' shapes.
absl::Status InferShapes(const NodeDef& def, const OpRegistration& registration,
                         absl::Span<const Output> inputs, int num_outputs, int graph_version,
                         ConstantValues* constants, InferredShapes* result);

}  // namespace troupe

#endif  // TROUPE_GRAPH_CONSTANT_VALUES_H_
