/// What differentiation gives for a tensor.
#ifndef TROUPE_GRAPH_GRADIENTS_GRADIENT_H_
#define TROUPE_GRAPH_GRADIENTS_GRADIENT_H_

#include "devices/export.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The gradient of a tensor: dense, or the rows that were used (`IndexedSlices`). A value.
struct Gradient {
  Output values;   ///< Dense: the gradient itself, of the tensor's shape. Sparse: [n, ...] rows.
  Output indices;  ///< Sparse: [n] of int32 or int64, which row each is; rows may repeat (they
                   ///< add up). Not valid: dense.
  Output dense_shape;  ///< Sparse: the tensor's shape, [rank] of int32 or int64.

  Gradient() = default;
  Gradient(Output dense) : values(dense) {}  // NOLINT: a tensor is a dense gradient
  Gradient(Output v, Output i, Output shape) : values(v), indices(i), dense_shape(shape) {}
  /// False: nothing depends on the tensor.
  bool valid() const { return values.valid(); }
  bool sparse() const { return indices.valid(); }
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_GRADIENTS_GRADIENT_H_
