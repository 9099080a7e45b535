#include "kernels/linalg/batch.h"

#include <algorithm>

#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<MatrixBatch> PairMatrices(const Shape& a, const Shape& b, bool broadcast,
                                         int64_t rows, int64_t columns) {
  if (!broadcast && a.rank() != b.rank()) {
    return InvalidArgument("the batches must have the same rank, got shapes ", a.ToString(),
                           " and ", b.ToString());
  }
  const int rank = std::max(a.rank(), b.rank()) - 2;
  absl::InlinedVector<int64_t, 6> dims(rank + 2), a_stride(rank), b_stride(rank);
  int64_t a_count = 1, b_count = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int from_end = rank - d + 2;
    const int64_t a_dim = from_end <= a.rank() ? a.dim(a.rank() - from_end) : 1;
    const int64_t b_dim = from_end <= b.rank() ? b.dim(b.rank() - from_end) : 1;
    if (a_dim != b_dim && (!broadcast || (a_dim != 1 && b_dim != 1))) {
      return InvalidArgument("the batch dimensions do not fit: ", a.ToString(), " and ",
                             b.ToString());
    }
    dims[d] = a_dim == 1 ? b_dim : a_dim;
    a_stride[d] = a_dim == 1 ? 0 : a_count;
    b_stride[d] = b_dim == 1 ? 0 : b_count;
    a_count *= a_dim;
    b_count *= b_dim;
  }
  dims[rank] = rows;
  dims[rank + 1] = columns;
  MatrixBatch batch;
  TROUPE_ASSIGN_OR_RETURN(batch.shape, Shape::Create(dims));
  if (batch.shape.num_elements() == 0) return batch;
  batch.pairs.resize(batch.shape.num_elements() / (rows * columns));
  for (size_t i = 0; i < batch.pairs.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), a_index = 0, b_index = 0;
    for (int d = rank - 1; d >= 0; --d) {
      a_index += rest % dims[d] * a_stride[d];
      b_index += rest % dims[d] * b_stride[d];
      rest /= dims[d];
    }
    batch.pairs[i] = {a_index, b_index};
  }
  return batch;
}

}  // namespace troupe
