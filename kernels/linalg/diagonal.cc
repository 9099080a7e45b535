// Diag and DiagPart: diagonals of a tensor as a whole. MatrixDiag, MatrixDiagPart, MatrixSetDiag,
// MatrixBandPart: matrices' diagonals and bands; a tensor is a batch of the matrices in its last
// two dimensions.
#include <algorithm>

#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

/// The matrices of a tensor.
struct Matrices {
  int64_t count = 1, rows = 0, columns = 0;
};

absl::StatusOr<Matrices> MatricesOf(const Shape& shape) {
  if (shape.rank() < 2) {
    return InvalidArgument("the input must have at least two dimensions, got shape ",
                           shape.ToString());
  }
  Matrices m;
  m.rows = shape.dim(shape.rank() - 2);
  m.columns = shape.dim(shape.rank() - 1);
  for (int d = 0; d + 2 < shape.rank(); ++d) m.count *= shape.dim(d);
  return m;
}

/// Copies `m.count` diagonals to or from the matrices.
void CopyDiagonals(KernelContext& ctx, ElementType type, const Matrices& m, void* dst,
                   bool dst_is_matrix, const void* src) {
  const int64_t length = std::min(m.rows, m.columns);
  if (m.count == 0 || length == 0) return;
  const int64_t matrix[] = {m.rows * m.columns, m.columns + 1}, vector[] = {length, 1};
  const int64_t dims[] = {m.count, length};
  StridedCopy(ctx, type, dims, dst, dst_is_matrix ? matrix : vector, src,
              dst_is_matrix ? vector : matrix);
}

}  // namespace

absl::Status Diag(KernelContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  if (diagonal.rank() == 0) return InvalidArgument("the diagonal must have a dimension");
  DimVector dims(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
  for (int d = 0; d < diagonal.rank(); ++d) dims.push_back(diagonal.dim(d));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, diagonal.type(), shape));
  const int64_t n = diagonal.num_elements();
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  CopyRuns(ctx, out->type(), n, 1, out->mutable_raw_data(), n + 1, diagonal.raw_data(), 1);
  return absl::OkStatus();
}

absl::Status DiagPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const auto dims = input.shape().dims();
  const int half = input.rank() / 2;
  if (half == 0 || input.rank() % 2 != 0 || dims.subspan(0, half) != dims.subspan(half)) {
    return InvalidArgument("the input's shape must be the same one twice, got ",
                           input.shape().ToString());
  }
  const Shape shape(dims.subspan(0, half));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  const int64_t n = out->num_elements();
  CopyRuns(ctx, out->type(), n, 1, out->mutable_raw_data(), 1, input.raw_data(), n + 1);
  return absl::OkStatus();
}

absl::Status MatrixDiag(KernelContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  if (diagonal.rank() < 1) {
    return InvalidArgument("the input must have at least one dimension, it is a scalar");
  }
  DimVector dims(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
  dims.push_back(dims.back());
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, diagonal.type(), shape));
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  CopyDiagonals(ctx, out->type(), m, out->mutable_raw_data(), true, diagonal.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixDiagPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(input.shape()));
  const absl::Span<const int64_t> sizes = input.shape().dims();
  DimVector dims(sizes.begin(), sizes.end() - 2);
  dims.push_back(std::min(m.rows, m.columns));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  CopyDiagonals(ctx, out->type(), m, out->mutable_raw_data(), false, input.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixSetDiag(KernelContext& ctx) {
  const Tensor& diagonal = ctx.input(1);
  const Shape shape = ctx.input(0).shape();
  TROUPE_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(shape));
  bool fits = diagonal.rank() == shape.rank() - 1 &&
              diagonal.dim(diagonal.rank() - 1) == std::min(m.rows, m.columns);
  for (int d = 0; fits && d + 1 < diagonal.rank(); ++d) fits = diagonal.dim(d) == shape.dim(d);
  if (!fits) {
    return InvalidArgument("the diagonals' shape ", diagonal.shape().ToString(),
                           " does not fit that of the matrices, ", shape.ToString(),
                           ": it must be its outer dimensions, then the smaller of the last two");
  }
  TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
  Tensor& out = ctx.output(0);
  CopyDiagonals(ctx, out.type(), m, out.mutable_raw_data(), true, diagonal.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixBandPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(input.shape()));
  TROUPE_ASSIGN_OR_RETURN(int64_t lower, ReadIntegerScalar(ctx.input(1), "num_lower"));
  TROUPE_ASSIGN_OR_RETURN(int64_t upper, ReadIntegerScalar(ctx.input(2), "num_upper"));
  if (lower > m.rows) {
    return InvalidArgument("num_lower must be negative or at most the number of rows, ", m.rows,
                           ", got ", lower);
  }
  if (upper > m.columns) {
    return InvalidArgument("num_upper must be negative or at most the number of columns, ",
                           m.columns, ", got ", upper);
  }
  if (lower < 0) lower = m.rows;
  if (upper < 0) upper = m.columns;
  const void* const from = input.raw_data();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (out->num_elements() == 0) return absl::OkStatus();
  KeepBand(ctx, out->type(), m.count * m.rows, m.rows, m.columns, lower, upper,
           out->mutable_raw_data(), from);
  return absl::OkStatus();
}

}  // namespace troupe::layout
