/// What shape functions of ops on sparse tensors share: a sparse tensor is three inputs, `indices`
/// [n, rank], `values` [n] and `shape` [rank].
#ifndef TROUPE_GRAPH_OPS_SPARSE_SHAPES_H_
#define TROUPE_GRAPH_OPS_SPARSE_SHAPES_H_

#include "absl/status/statusor.h"
#include "graph/shape_inference.h"

namespace troupe {

/// What is known of a sparse tensor's sizes; -1 is unknown.
struct SparseSizes {
  int64_t count = -1, rank = -1;
};

/// Checks the three inputs that begin at input `first` against each other.
absl::StatusOr<SparseSizes> SparseInputSizes(InferenceContext* c, int first);

/// Makes outputs 0 to 2 a sparse tensor.
void SetSparseOutput(InferenceContext* c, SparseSizes sizes);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_SPARSE_SHAPES_H_
