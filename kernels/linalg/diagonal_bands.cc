// MatrixDiagV2 and V3, MatrixDiagPartV2 and V3, MatrixSetDiagV2 and V3: bands of diagonals of the
// matrices in a tensor's last two dimensions.
#include <algorithm>
#include <string>

#include "absl/strings/str_join.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/strided_copy.h"
#include "kernels/linalg/batch.h"

namespace troupe {
namespace {

/// To which side diagonals lie that are shorter than their row.
struct Alignment {
  /// From the attribute `align`: first the diagonals above the main one, then those below.
  static Alignment Of(const std::string& align) {
    return {align.rfind("LEFT", 0) == 0, align.find("_LEFT") != std::string::npos};
  }
  bool left_above = true, left_below = true;
};

/// The diagonals from `lower` to `upper`: 0 is the main one, positive ones are above it.
struct DiagonalBand {
  int64_t count() const { return upper - lower + 1; }
  int64_t lower = 0, upper = 0;
};

/// The band that the tensor `k` holds. It is checked against matrices only by `CheckFits`.
absl::StatusOr<DiagonalBand> ReadBand(const Tensor& k) {
  if (k.rank() > 1 || k.num_elements() < 1 || k.num_elements() > 2) {
    return InvalidArgument("k must be a scalar or a vector of one or two diagonals, got shape ",
                           k.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(k, "k"));
  const DiagonalBand band = {values.front(), values.back()};
  if (band.lower > band.upper) {
    return InvalidArgument("the lower diagonal of k, ", band.lower, ", is above the upper one, ",
                           band.upper);
  }
  return band;
}

/// Matrices and the rows of diagonals that belong to them.
struct BandOfMatrices {
  /// The row of diagonals' elements that one matrix has.
  int64_t Length(int64_t diagonal) const {
    return std::min(rows + std::min<int64_t>(diagonal, 0),
                    columns - std::max<int64_t>(diagonal, 0));
  }
  absl::Status CheckFits() const {
    for (const int64_t d : {band.lower, band.upper}) {
      if (d == 0 || (d > -rows && d < columns)) continue;
      return InvalidArgument("diagonal ", d, " of k is outside of matrices of ", rows, " rows and ",
                             columns, " columns");
    }
    return absl::OkStatus();
  }
  /// The longest diagonal: that which is nearest to the main one, or as long.
  int64_t Width() const {
    return std::min(rows + std::min<int64_t>(band.upper, 0),
                    columns - std::max<int64_t>(band.lower, 0));
  }
  /// The dimensions of a tensor of diagonals, below those of the batch.
  void AppendDiagonals(DimVector* dims) const {
    if (band.count() > 1) dims->push_back(band.count());
    dims->push_back(Width());
  }

  DiagonalBand band;
  int64_t batch = 1, rows = 0, columns = 0;
};

/// The sizes of a batch of matrices.
absl::StatusOr<BandOfMatrices> MatricesWithBand(const Shape& shape, const Tensor& k) {
  if (shape.rank() < 2) {
    return InvalidArgument("the input must have at least two dimensions, got shape ",
                           shape.ToString());
  }
  BandOfMatrices m;
  TROUPE_ASSIGN_OR_RETURN(m.band, ReadBand(k));
  for (int d = 0; d + 2 < shape.rank(); ++d) m.batch *= shape.dim(d);
  m.rows = shape.dim(shape.rank() - 2);
  m.columns = shape.dim(shape.rank() - 1);
  TROUPE_RETURN_IF_ERROR(m.CheckFits());
  return m;
}

/// Copies the diagonals to the matrices or from them.
void CopyBand(KernelContext& ctx, ElementType type, const BandOfMatrices& m, Alignment align,
              void* dst, bool dst_is_matrix, const void* src) {
  const int64_t width = m.Width();
  if (m.batch == 0 || width <= 0) return;
  for (int64_t d = m.band.lower; d <= m.band.upper; ++d) {
    const int64_t length = m.Length(d);
    const bool left = (d >= 0 && align.left_above) || (d <= 0 && align.left_below);
    const int64_t in_matrix = d >= 0 ? d : -d * m.columns;
    const int64_t in_row = (m.band.upper - d) * width + (left ? 0 : width - length);
    const int64_t matrix[] = {m.rows * m.columns, m.columns + 1};
    const int64_t row[] = {m.band.count() * width, 1};
    const int64_t dims[] = {m.batch, length};
    StridedCopy(ctx, type, dims, ElementAt(type, dst, dst_is_matrix ? in_matrix : in_row),
                dst_is_matrix ? matrix : row,
                ElementAt(type, src, dst_is_matrix ? in_row : in_matrix),
                dst_is_matrix ? row : matrix);
  }
}

/// The sizes that diagonals of `length` make; -1 is the smallest that fits.
absl::Status SetSizes(int64_t length, int64_t rows, int64_t columns, BandOfMatrices* m) {
  const int64_t least_rows = length - std::min<int64_t>(m->band.upper, 0);
  const int64_t least_columns = length + std::max<int64_t>(m->band.lower, 0);
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

absl::Status DiagAligned(KernelContext& ctx, const std::string& align) {
  const Tensor& diagonal = ctx.input(0);
  BandOfMatrices m;
  TROUPE_ASSIGN_OR_RETURN(m.band, ReadBand(ctx.input(1)));
  TROUPE_ASSIGN_OR_RETURN(const int64_t rows, ReadIntegerScalar(ctx.input(2), "num_rows"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t columns, ReadIntegerScalar(ctx.input(3), "num_cols"));
  if (ctx.input(4).rank() != 0) {
    return InvalidArgument("padding_value must be a scalar, got shape ",
                           ctx.input(4).shape().ToString());
  }
  const int batch_rank = diagonal.rank() - (m.band.count() > 1 ? 2 : 1);
  if (batch_rank < 0 || (m.band.count() > 1 && diagonal.dim(batch_rank) != m.band.count())) {
    return InvalidArgument("diagonal of shape ", diagonal.shape().ToString(), " does not hold the ",
                           m.band.count(), " diagonals that k asks for");
  }
  TROUPE_RETURN_IF_ERROR(SetSizes(diagonal.dim(diagonal.rank() - 1), rows, columns, &m));
  TROUPE_RETURN_IF_ERROR(m.CheckFits());
  DimVector dims(diagonal.shape().dims().begin(), diagonal.shape().dims().begin() + batch_rank);
  for (const int64_t size : dims) m.batch *= size;
  dims.push_back(m.rows);
  dims.push_back(m.columns);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, diagonal.type(), shape));
  FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(),
               ctx.input(4).raw_data());
  CopyBand(ctx, out->type(), m, Alignment::Of(align), out->mutable_raw_data(), true,
           diagonal.raw_data());
  return absl::OkStatus();
}

absl::Status DiagPartAligned(KernelContext& ctx, const std::string& align) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const BandOfMatrices m, MatricesWithBand(input.shape(), ctx.input(1)));
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("padding_value must have one element, got shape ",
                           ctx.input(2).shape().ToString());
  }
  DimVector dims(input.shape().dims().begin(), input.shape().dims().end() - 2);
  m.AppendDiagonals(&dims);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, input.type(), shape));
  if (m.band.count() > 1) {  // Shorter diagonals are filled up.
    FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(),
                 ctx.input(2).raw_data());
  }
  CopyBand(ctx, out->type(), m, Alignment::Of(align), out->mutable_raw_data(), false,
           input.raw_data());
  return absl::OkStatus();
}

absl::Status SetDiagAligned(KernelContext& ctx, const std::string& align) {
  const Tensor& diagonal = ctx.input(1);
  const Shape shape = ctx.input(0).shape();
  TROUPE_ASSIGN_OR_RETURN(const BandOfMatrices m, MatricesWithBand(shape, ctx.input(2)));
  DimVector dims(shape.dims().begin(), shape.dims().end() - 2);
  m.AppendDiagonals(&dims);
  if (diagonal.shape().dims() != absl::MakeConstSpan(dims)) {
    return InvalidArgument("diagonal of shape ", diagonal.shape().ToString(), " must be of shape [",
                           absl::StrJoin(dims, ","), "] for the ", m.band.count(),
                           " diagonals of k in matrices of shape ", shape.ToString());
  }
  TROUPE_RETURN_IF_ERROR(ForwardOrCopy(ctx));
  Tensor& out = ctx.output(0);
  CopyBand(ctx, out.type(), m, Alignment::Of(align), out.mutable_raw_data(), true,
           diagonal.raw_data());
  return absl::OkStatus();
}

/// The second versions have no attribute `align`.
template <absl::Status (*kAligned)(KernelContext&, const std::string&)>
absl::Status AlignLeft(KernelContext& ctx) {
  return kAligned(ctx, "LEFT_LEFT");
}

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", PlainTypes()); }

REGISTER_KERNEL(Spec("MatrixDiagV2"), MakeKernel<AlignLeft<DiagAligned>>);
REGISTER_KERNEL(Spec("MatrixDiagV3"), (MakeAttrKernel<DiagAligned, "align">));
REGISTER_KERNEL(Spec("MatrixDiagPartV2"), MakeKernel<AlignLeft<DiagPartAligned>>);
REGISTER_KERNEL(Spec("MatrixDiagPartV3"), (MakeAttrKernel<DiagPartAligned, "align">));
REGISTER_KERNEL(Spec("MatrixSetDiagV2"), MakeKernel<AlignLeft<SetDiagAligned>>);
REGISTER_KERNEL(Spec("MatrixSetDiagV3"), (MakeAttrKernel<SetDiagAligned, "align">));

}  // namespace
}  // namespace troupe
