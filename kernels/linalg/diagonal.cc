// MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart: matrices' diagonals and bands. A
// tensor is a batch of the matrices in its last two dimensions.
#include <algorithm>
#include <cstring>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"

namespace troupe {
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

/// Nanoseconds for moving `elements` elements of `type`.
double MoveNs(ElementType type, int64_t elements) {
  return 1 + 0.1 * static_cast<double>(ElementSize(type)) * static_cast<double>(elements);
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
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (out->num_elements() == 0) return absl::OkStatus();
  const ElementType type = input.type();
  const void* const from = input.raw_data();
  void* const to = out->mutable_raw_data();
  const int64_t size = static_cast<int64_t>(ElementSize(type));
  ctx.ParallelFor(m.count * m.rows, KernelContext::GrainFor(MoveNs(type, m.columns)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) {
                      const int64_t row = r % m.rows;
                      const int64_t first = std::clamp<int64_t>(row - lower, 0, m.columns);
                      const int64_t last = std::clamp<int64_t>(row + upper + 1, first, m.columns);
                      char* line = static_cast<char*>(to) + r * m.columns * size;
                      std::memset(line, 0, first * size);
                      if (from != to) {
                        std::memcpy(line + first * size,
                                    static_cast<const char*>(from) + (r * m.columns + first) * size,
                                    (last - first) * size);
                      }
                      std::memset(line + last * size, 0, (m.columns - last) * size);
                    }
                  });
  return absl::OkStatus();
}

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", PlainTypes()); }

REGISTER_KERNEL(Spec("MatrixDiag"), MakeKernel<MatrixDiag>);
REGISTER_KERNEL(Spec("MatrixDiagPart"), MakeKernel<MatrixDiagPart>);
REGISTER_KERNEL(Spec("MatrixSetDiag"), MakeKernel<MatrixSetDiag>);
REGISTER_KERNEL(Spec("MatrixBandPart").Types("Tindex", IndexTypes()), MakeKernel<MatrixBandPart>);

}  // namespace
}  // namespace troupe
