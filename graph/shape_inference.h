/// What a shape function sees of a node, and helpers for writing one.
#ifndef TROUPE_GRAPH_SHAPE_INFERENCE_H_
#define TROUPE_GRAPH_SHAPE_INFERENCE_H_

#include <climits>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/shape.h"
#include "devices/tensor.h"
#include "graph/attr_reader.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class OpDef;

/// Element types and shapes behind a resource handle.
using HandleShapes = std::vector<std::pair<ElementType, PartialShape>>;

/// The inputs of a node under shape inference, and where its outputs' shapes go. Unknown sizes are
/// -1 (`PartialShape::kUnknown`). Not thread-safe.
class InferenceContext {
 public:
  /// Finds what is known of the values of an input; asked only by shape functions that need values.
  struct ValueSource {
    /// The value, if it is constant; an invalid tensor if not.
    std::function<Tensor(int input)> tensor;
    /// The value read as a shape, as far as it is known (a 1-D integer tensor; -1 is unknown).
    std::function<absl::StatusOr<PartialShape>(int input)> shape;
  };

  InferenceContext(const NodeDef* def, const OpDef* op_def, std::vector<PartialShape> inputs,
                   std::vector<HandleShapes> input_handles, int num_outputs, ValueSource values);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]; }
  /// Inputs [begin, end) of the argument called `name` in the op definition.
  absl::StatusOr<std::pair<int, int>> InputRange(std::string_view name) const;
  const PartialShape& output(int i) const { return outputs_[i]; }
  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  const AttrReader& attrs() const { return attrs_; }
  /// Version of the GraphDef that the node comes from (`producer`); old ones mean other things.
  int graph_version() const { return graph_version_; }
  void set_graph_version(int version) { graph_version_ = version; }
  template <typename T>
  absl::Status GetAttr(std::string_view name, T* value) const {
    return attrs_.Get(name, value);
  }

  /// The constant value of input i; an invalid tensor if it is not known while the graph is built.
  const Tensor& input_tensor(int i);
  /// Input i, a 1-D tensor of sizes, as a shape: what is known of it. A value below -1 is
  /// InvalidArgument; so is a scalar, unless `allow_scalar`, when a scalar -1 is a shape of unknown
  /// rank.
  absl::StatusOr<PartialShape> InputAsShape(int i, bool allow_scalar = false);
  /// A tensor's value as a shape, with the same rules.
  static absl::StatusOr<PartialShape> TensorAsShape(const Tensor& tensor,
                                                    bool allow_scalar = false);
  /// Input i as a scalar size: -1 if unknown; InvalidArgument if negative or no scalar.
  absl::StatusOr<int64_t> InputAsDim(int i);

  const HandleShapes& input_handle(int i) const { return input_handles_[i]; }
  void set_output_handle(int i, HandleShapes shapes) { output_handles_[i] = std::move(shapes); }
  const HandleShapes& output_handle(int i) const { return output_handles_[i]; }

  // --- helpers; errors are InvalidArgument and show the shapes ---

  /// `shape`, known to be of rank `rank` (dimensions unknown if they were).
  static absl::StatusOr<PartialShape> WithRank(const PartialShape& shape, int rank);
  static absl::StatusOr<PartialShape> WithRankAtLeast(const PartialShape& shape, int rank);
  static absl::StatusOr<PartialShape> WithRankAtMost(const PartialShape& shape, int rank);
  /// What is known of a dimension of two; they must not differ.
  static absl::StatusOr<int64_t> MergeDim(int64_t a, int64_t b);
  static absl::StatusOr<PartialShape> Merge(const PartialShape& a, const PartialShape& b) {
    return a.MergeWith(b);
  }
  static PartialShape UnknownOfRank(int rank) {
    return rank < 0 ? PartialShape() : PartialShape(std::vector<int64_t>(rank, -1));
  }
  static PartialShape Scalar() { return PartialShape({}); }
  static PartialShape VectorOf(int64_t size) { return PartialShape({size}); }
  /// Dimensions [begin, end) (negative: from the back). Unknown rank gives unknown.
  static absl::StatusOr<PartialShape> Subshape(const PartialShape& shape, int64_t begin,
                                               int64_t end = INT64_MAX);
  /// Size of dimension i (negative: from the back), -1 if unknown.
  static int64_t DimOf(const PartialShape& shape, int i) {
    if (shape.unknown_rank()) return -1;
    return shape.dim(i < 0 ? i + shape.rank() : i);
  }
  static PartialShape ReplaceDim(PartialShape shape, int i, int64_t size);
  /// Product of all sizes, -1 if unknown.
  static int64_t NumElements(const PartialShape& shape);
  /// Shape of two shapes broadcast against each other (NumPy's rule).
  static absl::StatusOr<PartialShape> Broadcast(const PartialShape& a, const PartialShape& b);
  static int64_t Multiply(int64_t a, int64_t b);  ///< -1 if either is unknown (0 stays 0).

 private:
  AttrReader attrs_;
  int graph_version_ = INT_MAX;
  const OpDef* op_def_;
  std::vector<PartialShape> inputs_, outputs_;
  std::vector<HandleShapes> input_handles_, output_handles_;
  ValueSource values_;
  std::vector<std::optional<Tensor>> tensors_;
};

// Shape functions that many ops share.
absl::Status UnchangedShape(InferenceContext* c);  ///< All outputs like input 0.
absl::Status ScalarShape(InferenceContext* c);     ///< All outputs scalars.
absl::Status UnknownShape(InferenceContext* c);    ///< Nothing known.
absl::Status NoOutputs(InferenceContext* c);
absl::Status BroadcastBinaryShape(InferenceContext* c);  ///< Output 0: inputs 0 and 1 broadcast.
absl::Status MergeInputsShape(InferenceContext* c);      ///< Output 0: all inputs merged.

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_SHAPE_INFERENCE_H_
