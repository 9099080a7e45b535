// Reductions, scans, segment sums and number sequences.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SegmentShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape data, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  if (data.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(data, 1));
  c->set_output(0, C::VectorOf(-1).Concatenate(row));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("All")
    .Input("input: bool")
    .Input("reduction_indices: Tidx")
    .Output("output: bool")
    .Attr("keep_dims: bool = false")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Tells whether all elements along the axes `reduction_indices` are true. The axes are "
        "dropped from the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("Any")
    .Input("input: bool")
    .Input("reduction_indices: Tidx")
    .Output("output: bool")
    .Attr("keep_dims: bool = false")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Tells whether any element along the axes `reduction_indices` is true. The axes are "
        "dropped from the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("ArgMax")
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, qint8, quint8, qint32, qint16, quint16, bool}")
    .Attr("Tidx: {int16, int32, int64} = DT_INT32")
    .Attr("output_type: {int16, uint16, int32, int64} = DT_INT64")
    .SetShapeFn(ArgShape)
    .Doc(
        "Gives the index of the largest element along the axis `dimension`, the first of "
        "several. The axis is dropped from the shape.");

REGISTER_OP("ArgMin")
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, qint8, quint8, qint32, qint16, quint16, bool}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("output_type: {int32, int64} = DT_INT64")
    .SetShapeFn(ArgShape)
    .Doc(
        "Gives the index of the smallest element along the axis `dimension`, the first of "
        "several. The axis is dropped from the shape.");

REGISTER_OP("Cumprod")
    .Input("x: T")
    .Input("axis: Tidx")
    .Output("out: T")
    .Attr("exclusive: bool = false")
    .Attr("reverse: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Multiplies up along `axis`: each element becomes the product of those up to it, itself "
        "left out if `exclusive`, from the end if `reverse`. `out` has the shape of `x`.");

REGISTER_OP("Cumsum")
    .Input("x: T")
    .Input("axis: Tidx")
    .Output("out: T")
    .Attr("exclusive: bool = false")
    .Attr("reverse: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Adds up along `axis`: each element becomes the sum of those up to it, itself left out "
        "if `exclusive`, from the end if `reverse`. `out` has the shape of `x`.");

REGISTER_OP("LinSpace")
    .Input("start: T")
    .Input("stop: T")
    .Input("num: Tidx")
    .Output("output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(LinSpaceShape)
    .Doc(
        "Gives `num` numbers from `start` to `stop`, both included, at equal distances: a "
        "vector.");

REGISTER_OP("Max")
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, qint8, quint8, qint32, qint16, quint16}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Gives the largest element along the axes `reduction_indices`. The axes are dropped "
        "from the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("Mean")
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Gives the mean of the elements along the axes `reduction_indices`. The axes are "
        "dropped from the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("Min")
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, qint8, quint8, qint32, qint16, quint16}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Gives the smallest element along the axes `reduction_indices`. The axes are dropped "
        "from the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("Prod")
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Multiplies the elements along the axes `reduction_indices`. The axes are dropped from "
        "the shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("Range")
    .Input("start: Tidx")
    .Input("limit: Tidx")
    .Input("delta: Tidx")
    .Output("output: Tidx")
    .Attr(
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
        "uint64} = DT_INT32")
    .SetShapeFn(RangeShape)
    .Doc(
        "Gives the numbers `start`, start + delta, ... as far as they do not reach `limit`: a "
        "vector. All inputs are scalars.");

REGISTER_OP("SegmentSum")
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetShapeFn(SegmentShape)
    .Doc(
        "Adds up the rows of `data` that have the same number in the vector `segment_ids`, which "
        "must not fall. `output` has a row for each number from 0 to the last one; zeros where "
        "there is none.");

REGISTER_OP("Sum")
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn(ReductionShape)
    .Doc(
        "Adds the elements along the axes `reduction_indices`. The axes are dropped from the "
        "shape, or kept with size 1 if `keep_dims`.");

REGISTER_OP("UnsortedSegmentSum")
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .SetShapeFn(UnsortedSegmentShape)
    .Doc(
        "Adds up the slices of `data` that have the same number in `segment_ids`, whose shape "
        "is a prefix of that of `data`; negative numbers are dropped. `output` has "
        "`num_segments` rows.");

}  // namespace troupe
