// MatrixDiagV2 and V3, MatrixDiagPartV2 and V3, MatrixSetDiagV2 and V3: bands of diagonals of the
// matrices in a tensor's last two dimensions.
#include <algorithm>
#include <string>

#include "absl/strings/str_join.h"
#include "kernels/array/layout_engine.h"
#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"

namespace troupe::layout {
namespace {

/// The attribute `align`: first the diagonals above the main one, then those below.
void SetAlignment(const std::string& align, MatrixBand* band) {
  band->left_above = align.rfind("LEFT", 0) == 0;
  band->left_below = align.find("_LEFT") != std::string::npos;
}

/// Reads the band's diagonals from the tensor `k`. They are checked against matrices only by
/// `CheckFits`.
absl::Status ReadBand(const Tensor& k, MatrixBand* band) {
  if (k.rank() > 1 || k.num_elements() < 1 || k.num_elements() > 2) {
    return InvalidArgument("k must be a scalar or a vector of one or two diagonals, got shape ",
                           k.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(k, "k"));
  band->lower = values.front();
  band->upper = values.back();
  if (band->lower > band->upper) {
    return InvalidArgument("the lower diagonal of k, ", band->lower, ", is above the upper one, ",
                           band->upper);
  }
  return absl::OkStatus();
}

absl::Status CheckFits(const MatrixBand& m) {
  for (const int64_t d : {m.lower, m.upper}) {
    if (d == 0 || (d > -m.rows && d < m.columns)) continue;
    return InvalidArgument("diagonal ", d, " of k is outside of matrices of ", m.rows, " rows and ",
                           m.columns, " columns");
  }
  return absl::OkStatus();
}

/// The dimensions of a tensor of diagonals, below those of the batch.
void AppendDiagonals(const MatrixBand& m, DimVector* dims) {
  if (m.count() > 1) dims->push_back(m.count());
  dims->push_back(m.Width());
}

/// The band of a batch of matrices.
absl::StatusOr<MatrixBand> MatricesWithBand(const Shape& shape, const Tensor& k) {
  if (shape.rank() < 2) {
    return InvalidArgument("the input must have at least two dimensions, got shape ",
                           shape.ToString());
  }
  MatrixBand m;
  TROUPE_RETURN_IF_ERROR(ReadBand(k, &m));
  for (int d = 0; d + 2 < shape.rank(); ++d) m.batch *= shape.dim(d);
  m.rows = shape.dim(shape.rank() - 2);
  m.columns = shape.dim(shape.rank() - 1);
  TROUPE_RETURN_IF_ERROR(CheckFits(m));
  return m;
}

/// The sizes that diagonals of `length` make; -1 is the smallest that fits.
absl::Status SetSizes(int64_t length, int64_t rows, int64_t columns, MatrixBand* m) {
  const int64_t least_rows = length - std::min<int64_t>(m->upper, 0);
  const int64_t least_columns = length + std::max<int64_t>(m->lower, 0);
  if ((rows != -1 && rows < least_rows) || (columns != -1 && columns < least_columns)) {
    return InvalidArgument("num_rows ", rows, " or num_cols ", columns,
                           " is too small for diagonals of length ", length);
  }
  m->rows = rows;
  m->columns = columns;
  if (rows == -1 && columns == -1) {
    m->rows = m->columns = std::max(least_rows, least_columns);
  } else if (rows == -1) {
    m->rows = least_rows;
  } else if (columns == -1) {
    m->columns = least_columns;
  }
  if (m->rows != least_rows && m->columns != least_columns) {
    return InvalidArgument("num_rows ", m->rows, " and num_cols ", m->columns,
                           " do not fit diagonals of length ", length);
  }
  return absl::OkStatus();
}

/// What the second versions, which have no attribute `align`, do.
constexpr char kLeft[] = "LEFT_LEFT";

}  // namespace

absl::Status MatrixDiagV3(KernelContext& ctx, const std::string& align) {
  const Tensor& diagonal = ctx.input(0);
  MatrixBand m;
  TROUPE_RETURN_IF_ERROR(ReadBand(ctx.input(1), &m));
  SetAlignment(align, &m);
  TROUPE_ASSIGN_OR_RETURN(const int64_t rows, ReadIntegerScalar(ctx.input(2), "num_rows"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t columns, ReadIntegerScalar(ctx.input(3), "num_cols"));
  if (ctx.input(4).rank() != 0) {
    return InvalidArgument("padding_value must be a scalar, got shape ",
                           ctx.input(4).shape().ToString());
  }
  const int batch_rank = diagonal.rank() - (m.count() > 1 ? 2 : 1);
  if (batch_rank < 0 || (m.count() > 1 && diagonal.dim(batch_rank) != m.count())) {
    return InvalidArgument("diagonal of shape ", diagonal.shape().ToString(), " does not hold the ",
                           m.count(), " diagonals that k asks for");
  }
  TROUPE_RETURN_IF_ERROR(SetSizes(diagonal.dim(diagonal.rank() - 1), rows, columns, &m));
  TROUPE_RETURN_IF_ERROR(CheckFits(m));
  DimVector dims(diagonal.shape().dims().begin(), diagonal.shape().dims().begin() + batch_rank);
  for (const int64_t size : dims) m.batch *= size;
  dims.push_back(m.rows);
  dims.push_back(m.columns);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, diagonal.type(), shape));
  FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(),
               ctx.input(4).raw_data());
  CopyBand(ctx, out->type(), m, out->mutable_raw_data(), true, diagonal.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixDiagPartV3(KernelContext& ctx, const std::string& align) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(MatrixBand m, MatricesWithBand(input.shape(), ctx.input(1)));
  SetAlignment(align, &m);
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("padding_value must have one element, got shape ",
                           ctx.input(2).shape().ToString());
  }
  DimVector dims(input.shape().dims().begin(), input.shape().dims().end() - 2);
  AppendDiagonals(m, &dims);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (m.count() > 1) {  // Shorter diagonals are filled up.
    FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(),
                 ctx.input(2).raw_data());
  }
  CopyBand(ctx, out->type(), m, out->mutable_raw_data(), false, input.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixSetDiagV3(KernelContext& ctx, const std::string& align) {
  const Tensor& diagonal = ctx.input(1);
  const Shape shape = ctx.input(0).shape();
  TROUPE_ASSIGN_OR_RETURN(MatrixBand m, MatricesWithBand(shape, ctx.input(2)));
  SetAlignment(align, &m);
  DimVector dims(shape.dims().begin(), shape.dims().end() - 2);
  AppendDiagonals(m, &dims);
  if (diagonal.shape().dims() != absl::MakeConstSpan(dims)) {
    return InvalidArgument("diagonal of shape ", diagonal.shape().ToString(), " must be of shape [",
                           absl::StrJoin(dims, ","), "] for the ", m.count(),
                           " diagonals of k in matrices of shape ", shape.ToString());
  }
  TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
  Tensor& out = ctx.output(0);
  CopyBand(ctx, out.type(), m, out.mutable_raw_data(), true, diagonal.raw_data());
  return absl::OkStatus();
}

absl::Status MatrixDiagV2(KernelContext& ctx) { return MatrixDiagV3(ctx, kLeft); }
absl::Status MatrixDiagPartV2(KernelContext& ctx) { return MatrixDiagPartV3(ctx, kLeft); }
absl::Status MatrixSetDiagV2(KernelContext& ctx) { return MatrixSetDiagV3(ctx, kLeft); }

}  // namespace troupe::layout
