#include "kernels/linalg/batch.h"

#include <algorithm>
#include <atomic>

#include "devices/status_macros.h"
#include "kernels/common/strided_copy.h"

namespace troupe {
namespace {

/// A dimension of a shape that is extended by dimensions of 1 in front.
int64_t DimOrOne(const Shape& shape, int d) { return d < 0 ? 1 : shape.dim(d); }

}  // namespace

absl::StatusOr<int64_t> SquareSize(const Shape& shape, std::string_view what) {
  const int rank = shape.rank();
  if (rank < 2 || shape.dim(rank - 1) != shape.dim(rank - 2)) {
    return InvalidArgument(std::string(what), " must hold square matrices in its last two ",
                           "dimensions, got shape ", shape.ToString());
  }
  return shape.dim(rank - 1);
}

absl::Status CheckRightSides(const Shape& matrix, const Shape& rhs, int64_t n) {
  if (rhs.rank() >= 2 && rhs.dim(rhs.rank() - 2) == n) return absl::OkStatus();
  return InvalidArgument("rhs of shape ", rhs.ToString(), " must hold matrices of ", n,
                         " rows, as many as those of matrix of shape ", matrix.ToString());
}

absl::Status SingularMatrix(int64_t index, int64_t count) {
  return InvalidArgument("the matrix is not invertible",
                         count > 1 ? StrCat(" (number ", index, " of the batch)") : "");
}

int64_t FirstFailure(KernelContext& ctx, int64_t count, double nanoseconds,
                     absl::FunctionRef<bool(int64_t)> work) {
  std::atomic<int64_t> failed{count};
  ctx.ParallelFor(count, KernelContext::GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (work(i)) continue;
      int64_t first = failed.load();
      while (i < first && !failed.compare_exchange_weak(first, i)) {
      }
      return;
    }
  });
  return failed.load();
}

absl::StatusOr<Shape> PairedShape(const Shape& a, const Shape& b, bool broadcast, int64_t rows,
                                  int64_t columns) {
  if (!broadcast && a.rank() != b.rank()) {
    return InvalidArgument("the batches must have the same rank, got shapes ", a.ToString(),
                           " and ", b.ToString());
  }
  const int rank = std::max(a.rank(), b.rank()) - 2;
  absl::InlinedVector<int64_t, 6> dims(rank + 2);
  for (int d = 0; d < rank; ++d) {
    const int64_t a_dim = DimOrOne(a, d - (rank + 2 - a.rank()));
    const int64_t b_dim = DimOrOne(b, d - (rank + 2 - b.rank()));
    if (a_dim != b_dim && (!broadcast || (a_dim != 1 && b_dim != 1))) {
      return InvalidArgument("the batch dimensions do not fit: ", a.ToString(), " and ",
                             b.ToString());
    }
    dims[d] = a_dim == 1 ? b_dim : a_dim;
  }
  dims[rank] = rows;
  dims[rank + 1] = columns;
  return Shape::Create(dims);
}

absl::StatusOr<MatrixBatch> PairMatrices(const Shape& a, const Shape& b, bool broadcast,
                                         int64_t rows, int64_t columns) {
  MatrixBatch batch;
  TROUPE_ASSIGN_OR_RETURN(batch.shape, PairedShape(a, b, broadcast, rows, columns));
  if (batch.shape.num_elements() == 0) return batch;
  const int rank = batch.shape.rank() - 2;
  absl::InlinedVector<int64_t, 6> a_stride(rank), b_stride(rank);
  int64_t a_count = 1, b_count = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t a_dim = DimOrOne(a, d - (rank + 2 - a.rank()));
    const int64_t b_dim = DimOrOne(b, d - (rank + 2 - b.rank()));
    a_stride[d] = a_dim == 1 ? 0 : a_count;
    b_stride[d] = b_dim == 1 ? 0 : b_count;
    a_count *= a_dim;
    b_count *= b_dim;
  }
  batch.pairs.resize(batch.shape.num_elements() / (rows * columns));
  for (size_t i = 0; i < batch.pairs.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), a_index = 0, b_index = 0;
    for (int d = rank - 1; d >= 0; --d) {
      a_index += rest % batch.shape.dim(d) * a_stride[d];
      b_index += rest % batch.shape.dim(d) * b_stride[d];
      rest /= batch.shape.dim(d);
    }
    batch.pairs[i] = {a_index, b_index};
  }
  return batch;
}

absl::Status FailedMatrix(int64_t index, int64_t count, std::string_view what) {
  return InvalidArgument(what, count > 1 ? StrCat(" (matrix ", index, " of the batch)") : "");
}

absl::StatusOr<Shape> MatrixSizes::Below(std::initializer_list<int64_t> below) const {
  DimVector dims(batch.begin(), batch.end());
  dims.insert(dims.end(), below.begin(), below.end());
  return Shape::Create(dims);
}

absl::StatusOr<MatrixSizes> MatrixSizesOf(const Shape& shape) {
  if (shape.rank() < 2) {
    return InvalidArgument("the input must have at least two dimensions, got shape ",
                           shape.ToString());
  }
  MatrixSizes sizes;
  sizes.batch = shape.dims().first(shape.rank() - 2);
  for (const int64_t size : sizes.batch) sizes.count *= size;
  sizes.rows = shape.dim(shape.rank() - 2);
  sizes.columns = shape.dim(shape.rank() - 1);
  return sizes;
}

absl::StatusOr<MatrixSizes> SquareSizesOf(const Shape& shape) {
  TROUPE_RETURN_IF_ERROR(SquareSize(shape, "input").status());
  return MatrixSizesOf(shape);
}

/// Allocates output i with matrices, or vectors, of the sizes `below`.
absl::StatusOr<Tensor*> AllocateBelow(KernelContext& ctx, int i, ElementType type,
                                      const MatrixSizes& sizes,
                                      std::initializer_list<int64_t> below) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, sizes.Below(below));
  return ctx.AllocateOutput(i, type, shape);
}

/// Output i, which is not computed: a vector of no elements.
absl::Status LeaveOut(KernelContext& ctx, int i, ElementType type) {
  return ctx.AllocateOutput(i, type, Shape({0})).status();
}

}  // namespace troupe
