// Reductions of the rows that have the same number: sums, means, extremes of segments.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status UnsortedSegmentShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  const PartialShape& ids = c->input(1);
  if (ids.unknown_rank()) return UnknownShape(c);
  PartialShape data;
  TROUPE_RETURN_IF_ERROR(MergePrefix(c->input(0), ids, &data));
  TROUPE_ASSIGN_OR_RETURN(const int64_t segments, c->InputAsDim(2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape slice, C::Subshape(data, ids.rank()));
  return SetShape(c, C::VectorOf(segments).Concatenate(slice));
}

/// [rows] and the shape of a row of input 0.
absl::Status SetRows(InferenceContext* c, int64_t rows) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape data, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(data, 1));
  return SetShape(c, C::VectorOf(rows).Concatenate(row));
}

absl::Status SegmentShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  return SetRows(c, -1);
}

/// InvalidArgument unless indices and segment_ids, inputs 1 and 2, are vectors of one size.
absl::Status CheckPairs(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape ids, C::WithRank(c->input(2), 1));
  return C::Merge(indices, ids).status();
}

absl::Status SparseSegmentShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckPairs(c));
  return SetRows(c, -1);
}

/// Of ops with the number of the output's rows as input 3.
absl::Status SparseSegmentRowsShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckPairs(c));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(3), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t rows, c->InputAsDim(3));
  return SetRows(c, rows);
}

absl::Status SparseSegmentGradV2Shape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckPairs(c));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(3), 0).status());
  c->set_output(1, C::VectorOf(-1));
  return SetRows(c, -1);
}

constexpr char kFloats[] = "T: {bfloat16, half, float, double}";

OpDefBuilder Sorted(const char* name, const char* type, const char* doc, const char* missing) {
  OpDefBuilder op(name);
  op.Signature("data: T, segment_ids: Tindices -> output: T")
      .Attr(type)
      .Attr("Tindices: {int32, int64}")
      .SetShapeFn(SegmentShape)
      .Doc(StrCat(doc,
                  " of `data` that have the same number in the vector `segment_ids`, which must "
                  "not fall. `output` has a row for each number from 0 to the last one; ",
                  missing, " where there is none."));
  return op;
}

OpDefBuilder Unsorted(const char* name, const char* type, const char* doc, const char* missing,
                      const char* index_types = "Tindices: {int32, int64}") {
  OpDefBuilder op(name);
  op.Signature("data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T")
      .Attr(type)
      .Attr(index_types)
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .SetShapeFn(UnsortedSegmentShape)
      .Doc(StrCat(doc,
                  " of `data` that have the same number in `segment_ids`, whose shape is a prefix "
                  "of that of `data`; negative numbers are dropped. `output` has `num_segments` "
                  "rows; ",
                  missing, " where there is none."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kDense[] = {
    Sorted("SegmentMax", "T: realnumbertype", "Gives the largest elements of the rows", "zeros"),
    Sorted("SegmentMean", "T: numbertype", "Gives the means of the rows", "zeros"),
    Sorted("SegmentMin", "T: realnumbertype", "Gives the smallest elements of the rows", "zeros"),
    Sorted("SegmentProd", "T: numbertype", "Multiplies the rows", "ones"),
    Sorted("SegmentSum", "T: numbertype", "Adds up the rows", "zeros"),
    Unsorted("UnsortedSegmentMax", "T: realnumbertype", "Gives the largest elements of the slices",
             "the smallest number of the type"),
    Unsorted("UnsortedSegmentMin", "T: realnumbertype", "Gives the smallest elements of the slices",
             "the largest number of the type"),
    Unsorted("UnsortedSegmentProd", "T: numbertype", "Multiplies the slices", "ones"),
    Unsorted("UnsortedSegmentSum", "T: numbertype", "Adds up the slices", "zeros",
             "Tindices: {int16, int32, int64}"),
};

/// What is done with the rows of a segment.
struct SparseRule {
  const char *op, *with_num_segments, *grad, *grad_v2;
  const char* type;
  const char* doc;
  const char* grad_doc;  ///< By what the gradient of a segment is divided.
};

constexpr SparseRule kSparseRules[] = {
    {"SparseSegmentSum", "SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad",
     "SparseSegmentSumGradV2", "T: realnumbertype", "Adds up rows of `data`",
     "The gradient is taken as it is."},
    {"SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad",
     "SparseSegmentMeanGradV2", kFloats, "Gives the means of rows of `data`",
     "The gradient of a segment is divided by the number of its rows."},
    {"SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGrad",
     "SparseSegmentSqrtNGradV2", kFloats,
     "Adds up rows of `data` and divides by the square root of their number",
     "The gradient of a segment is divided by the square root of the number of its rows."},
};

OpDefBuilder Sparse(const SparseRule& rule, bool num_segments) {
  OpDefBuilder op(num_segments ? rule.with_num_segments : rule.op);
  op.Signature(StrCat("data: T, indices: Tidx, segment_ids: Tsegmentids",
                      num_segments ? ", num_segments: Tnumsegments" : "", " -> output: T"))
      .Attr(rule.type)
      .Attr("Tidx: {int32, int64} = DT_INT32");
  if (num_segments) op.Attr("Tnumsegments: {int32, int64} = DT_INT32");
  op.Attr("Tsegmentids: {int32, int64} = DT_INT32")
      .Attr("sparse_gradient: bool = false")
      .SetShapeFn(num_segments ? SparseSegmentRowsShape : SparseSegmentShape)
      .Doc(StrCat(rule.doc,
                  ", those that the vector `indices` names and for which `segment_ids`, a vector "
                  "of the same size that must not fall, has the same number. `output` has ",
                  num_segments ? "`num_segments` rows" : "a row for each number up to the last one",
                  "; zeros where there is none. The gradient has only the rows that are used if "
                  "`sparse_gradient`."));
  return op;
}

OpDefBuilder SparseGrad(const SparseRule& rule, bool v2) {
  OpDefBuilder op(v2 ? rule.grad_v2 : rule.grad);
  const char* rows = v2 ? "dense_output_dim0" : "output_dim0";
  op.Signature(StrCat("grad: T, indices: Tidx, segment_ids: Tsegmentids, ", rows,
                      ": int32 -> output: T", v2 ? ", sorted_unique_indices: Tidx" : ""))
      .Attr(kFloats)
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("Tsegmentids: {int32, int64} = DT_INT32")
      .SetShapeFn(v2 ? SparseSegmentGradV2Shape : SparseSegmentRowsShape)
      .Doc(StrCat("Gradient of ", rule.op, " for its `data` of `", rows,
                  "` rows: adds row segment_ids[i] of `grad`, that of its output, to row "
                  "indices[i]. ",
                  rule.grad_doc,
                  v2 ? " Gives the rows that are named, in the order of `sorted_unique_indices`."
                     : " Rows that nothing names are zeros."));
  return op;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const SparseRule& rule : kSparseRules) {
    for (const bool flag : {false, true}) {
      OpRegistry::Global()->Register(Sparse(rule, flag));
      OpRegistry::Global()->Register(SparseGrad(rule, flag));
    }
  }
  return true;
}();

}  // namespace
}  // namespace troupe
