// Strings to parts, and parts to strings.
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// A sparse matrix with one row for each string.
absl::Status StringSplitShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 1).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  c->set_output(0, PartialShape({-1, 2}));
  c->set_output(1, C::VectorOf(-1));
  c->set_output(2, C::VectorOf(2));
  return absl::OkStatus();
}

absl::Status ReduceJoinShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtMost(c->input(1), 1).status());
  return ReductionShape(c);
}

absl::Status UnsortedSegmentJoinShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t segments, c->InputAsDim(2));
  const PartialShape &input = c->input(0), &ids = c->input(1);
  PartialShape merged;
  TROUPE_RETURN_IF_ERROR(MergePrefix(input, ids, &merged));
  if (ids.unknown_rank() || merged.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rest, C::Subshape(merged, ids.rank()));
  return SetShape(c, C::VectorOf(segments).Concatenate(rest));
}

absl::Status StringNGramsShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 1).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape splits, C::WithRank(c->input(1), 1));
  c->set_output(0, C::VectorOf(-1));
  c->set_output(1, splits);
  return absl::OkStatus();
}

REGISTER_OP("StringSplit")
    .Signature("input: string, delimiter: string -> indices: int64, values: string, shape: int64")
    .Attr("skip_empty: bool = true")
    .SetShapeFn(StringSplitShape)
    .Doc(
        "Splits each string of the vector `input` at every byte that is in the scalar `delimiter`, "
        "after every byte if that is empty. The result is a sparse matrix with a row of parts for "
        "each string: `indices` [n, 2], `values` [n], `shape` [2]. `skip_empty` leaves empty parts "
        "out. An empty string has no parts.");

REGISTER_OP("StringSplitV2")
    .Signature("input: string, sep: string -> indices: int64, values: string, shape: int64")
    .Attr("maxsplit: int = -1")
    .SetShapeFn(StringSplitShape)
    .Doc(
        "Splits each string of the vector `input` as Python's `str.split` does: at the scalar "
        "`sep`, taken as a whole, or at white space if it is empty; the first `maxsplit` times, or "
        "always if that is negative. The result is a sparse matrix with a row of parts for each "
        "string: `indices` [n, 2], `values` [n], `shape` [2].");

REGISTER_OP("ReduceJoin")
    .Signature("inputs: string, reduction_indices: int32 -> output: string")
    .Attr("keep_dims: bool = false")
    .Attr("separator: string = ''")
    .SetShapeFn(ReduceJoinShape)
    .Doc(
        "Joins the strings of `inputs` along the dimensions `reduction_indices`, with `separator` "
        "between them. The dimension that is named first changes fastest. Those dimensions become "
        "1 "
        "if `keep_dims`, else disappear. No dimensions: `inputs` itself.");

REGISTER_OP("UnsortedSegmentJoin")
    .Signature(
        "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string")
    .Attr("separator: string = ''")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = int32")
    .SetShapeFn(UnsortedSegmentJoinShape)
    .Doc(
        "Joins the strings of `inputs` that have the same segment, with `separator` between them. "
        "The shape of `segment_ids` is the first dimensions of that of `inputs`; in `output` the "
        "dimension `num_segments` takes their place. Ids lie in [0, num_segments).");

REGISTER_OP("StringNGrams")
    .Signature("data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits")
    .Attr("separator: string")
    .Attr("ngram_widths: list(int) >= 0")
    .Attr("left_pad: string")
    .Attr("right_pad: string")
    .Attr("pad_width: int")
    .Attr("preserve_short_sequences: bool")
    .Attr("Tsplits: {int32, int64} = int64")
    .SetShapeFn(StringNGramsShape)
    .Doc(
        "Joins every run of `ngram_widths` neighbours of each row of a ragged tensor, with "
        "`separator` between them. Row i of the vector `data` is elements [data_splits[i], "
        "data_splits[i + 1]); `ngrams` and `ngrams_splits` are the same for the result, of which a "
        "row has the runs of the first width, then those of the next. `pad_width` strings "
        "`left_pad` are put before a row and as many `right_pad` behind it, at most the width less "
        "one, which -1 stands for. `preserve_short_sequences` makes one n-gram of a row that would "
        "have none.");

}  // namespace
}  // namespace troupe
