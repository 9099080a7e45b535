// Bands of several diagonals of matrices: the second and third versions of MatrixDiag and its kin.
#include <algorithm>
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/matrix_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The diagonals from `lower` to `upper`: 0 is the main one, positive ones are above it.
struct Band {
  int64_t lower = 0, upper = 0;
  int64_t count() const { return upper - lower + 1; }
};

/// From input i, if its value is known.
absl::StatusOr<std::optional<Band>> KnownBand(InferenceContext* c, int i) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(i), 1).status());
  const Tensor& k = c->input_tensor(i);
  if (!k.valid()) return std::optional<Band>();
  const std::vector<int64_t> values = IntegerValues(k);
  if (values.empty() || values.size() > 2) {
    return InvalidArgument("k must hold one or two diagonals, it has ", values.size());
  }
  const Band band = {values.front(), values.back()};
  if (band.lower > band.upper) {
    return InvalidArgument("the lower diagonal of k, ", band.lower, ", is above the upper one, ",
                           band.upper);
  }
  return std::optional<Band>(band);
}

/// Checks diagonals against sizes that may be unknown.
absl::Status CheckBand(const Band& band, int64_t rows, int64_t columns) {
  for (const int64_t d : {band.lower, band.upper}) {
    if (d == 0 || ((rows == -1 || d > -rows) && (columns == -1 || d < columns))) continue;
    return InvalidArgument("diagonal ", d, " of k is outside of matrices of ", rows, " rows and ",
                           columns, " columns");
  }
  return absl::OkStatus();
}

/// The value of input i, a number of rows or columns; -1 if it is not known.
absl::StatusOr<int64_t> KnownSize(InferenceContext* c, int i, bool* known) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  const Tensor& size = c->input_tensor(i);
  *known = size.valid();
  return size.valid() ? ScalarValue(size) : -1;
}

absl::Status DiagonalsToMatrixShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape diagonal, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<Band> band, KnownBand(c, 1));
  bool rows_known = false, columns_known = false;
  TROUPE_ASSIGN_OR_RETURN(int64_t rows, KnownSize(c, 2, &rows_known));
  TROUPE_ASSIGN_OR_RETURN(int64_t columns, KnownSize(c, 3, &columns_known));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(4), 0).status());
  if (!band.has_value() || diagonal.unknown_rank()) return UnknownShape(c);
  int batch_rank = diagonal.rank() - 1;
  if (band->count() > 1) {
    if (--batch_rank < 0) {
      return InvalidArgument("diagonal must have at least two dimensions for the ", band->count(),
                             " diagonals of k");
    }
    const int64_t given = C::DimOf(diagonal, -2);
    if (given != -1 && given != band->count()) {
      return InvalidArgument("diagonal of shape ", diagonal.ToString(), " holds ", given,
                             " diagonals, k asks for ", band->count());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(diagonal, 0, batch_rank));
  const int64_t length = C::DimOf(diagonal, -1);
  if (length == -1 || !rows_known || !columns_known) {
    const auto known = [](int64_t size) { return size >= 0 ? size : -1; };
    return SetShape(c, batch.Concatenate(PartialShape({known(rows), known(columns)})));
  }
  const int64_t least_rows = length - std::min<int64_t>(band->upper, 0);
  const int64_t least_columns = length + std::max<int64_t>(band->lower, 0);
  if ((rows != -1 && rows < least_rows) || (columns != -1 && columns < least_columns)) {
    return InvalidArgument("num_rows ", rows, " or num_cols ", columns,
                           " is too small for diagonals of length ", length);
  }
  if (rows == -1 && columns == -1) {
    rows = columns = std::max(least_rows, least_columns);
  } else if (rows == -1) {
    rows = least_rows;
  } else if (columns == -1) {
    columns = least_columns;
  }
  if (rows != least_rows && columns != least_columns) {
    return InvalidArgument("num_rows ", rows, " and num_cols ", columns,
                           " do not fit diagonals of length ", length);
  }
  return SetShape(c, batch.Concatenate(PartialShape({rows, columns})));
}

absl::Status DiagonalsOfMatrixShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<Band> band, KnownBand(c, 1));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  if (!band.has_value() || input.unknown_rank()) return UnknownShape(c);
  const int64_t rows = C::DimOf(input, -2), columns = C::DimOf(input, -1);
  TROUPE_RETURN_IF_ERROR(CheckBand(*band, rows, columns));
  int64_t length = -1;
  if (rows != -1 && columns != -1) {
    length = std::min(rows + std::min<int64_t>(band->upper, 0),
                      columns - std::max<int64_t>(band->lower, 0));
  }
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, C::Subshape(input, 0, -2));
  if (band->count() > 1) shape = shape.Concatenate(C::VectorOf(band->count()));
  return SetShape(c, shape.Concatenate(C::VectorOf(length)));
}

absl::Status SetDiagonalsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape diagonal, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<Band> band, KnownBand(c, 2));
  if (band.has_value() && !input.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(diagonal,
                            C::WithRank(diagonal, input.rank() - (band->count() > 1 ? 0 : 1)));
    TROUPE_RETURN_IF_ERROR(CheckBand(*band, C::DimOf(input, -2), C::DimOf(input, -1)));
  }
  // A shape that is known is not compared with the diagonals': that is left to the kernel.
  if (band.has_value() && !diagonal.unknown_rank() && !input.fully_known()) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape batch,
                            C::Subshape(diagonal, 0, band->count() > 1 ? -2 : -1));
    TROUPE_ASSIGN_OR_RETURN(input, C::Merge(input, batch.Concatenate(C::UnknownOfRank(2))));
  }
  return SetShape(c, input);
}

const char kBandDoc[] =
    "`k` names a diagonal, or the lowest and the highest of a band, 0 being the main diagonal and "
    "positive ones above it. The diagonals of a band are the rows of its last two dimensions, the "
    "highest first, as long as the longest of them; ";

/// What is said of the elements by which a diagonal is shorter than the longest one.
std::string AlignDoc(bool has_align) {
  return has_align
             ? "shorter ones lie to the side that `align` says, first of those above the "
               "main diagonal, then of those below (RIGHT_LEFT: those above end at the right, "
               "those below begin at the left)."
             : "shorter ones begin at the left.";
}

OpDefBuilder OfBand(const char* name, bool has_align, const char* signature, ShapeFn shape_fn,
                    const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr("T: type").SetShapeFn(shape_fn);
  if (has_align) {
    op.Attr("align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'");
  }
  op.Doc(StrCat(doc, " ", kBandDoc, AlignDoc(has_align)));
  return op;
}

OpDefBuilder Diag(const char* name, bool has_align) {
  return OfBand(name, has_align,
                "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> "
                "output: T",
                DiagonalsToMatrixShape,
                "Gives matrices [..., num_rows, num_cols] with `diagonal` on their diagonals, "
                "`padding_value` elsewhere. A size of -1 is the smallest that fits.");
}

OpDefBuilder DiagPart(const char* name, bool has_align) {
  return OfBand(name, has_align, "input: T, k: int32, padding_value: T -> diagonal: T",
                DiagonalsOfMatrixShape,
                "Gives diagonals of the matrices `input` [..., m, n], filled up with "
                "`padding_value`.");
}

OpDefBuilder SetDiag(const char* name, bool has_align) {
  return OfBand(name, has_align, "input: T, diagonal: T, k: int32 -> output: T", SetDiagonalsShape,
                "Gives the matrices `input` [..., m, n] with `diagonal` on their diagonals.");
}

[[maybe_unused]] const internal::OpRegistrar kBandOps[] = {
    Diag("MatrixDiagV2", false),         Diag("MatrixDiagV3", true),
    DiagPart("MatrixDiagPartV2", false), DiagPart("MatrixDiagPartV3", true),
    SetDiag("MatrixSetDiagV2", false),   SetDiag("MatrixSetDiagV3", true),
};

}  // namespace
}  // namespace troupe
