/// Batches of matrices: the last two dimensions of tensors.
#ifndef TROUPE_KERNELS_LINALG_BATCH_H_
#define TROUPE_KERNELS_LINALG_BATCH_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/shape.h"

namespace troupe {

/// The results of an operation on two batches.
struct MatrixBatch {
  Shape shape;
  /// For each result, the numbers of the matrices of the two batches that it is made of.
  absl::InlinedVector<std::pair<int64_t, int64_t>, 1> pairs;
};

/// For batches of shapes `a` and `b`, of rank 2 at least, and results of `rows` x `columns`. The
/// outer dimensions must be equal, or are broadcast; InvalidArgument.
absl::StatusOr<MatrixBatch> PairMatrices(const Shape& a, const Shape& b, bool broadcast,
                                         int64_t rows, int64_t columns);

/// The shape of these results alone.
absl::StatusOr<Shape> PairedShape(const Shape& a, const Shape& b, bool broadcast, int64_t rows,
                                  int64_t columns);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_BATCH_H_
