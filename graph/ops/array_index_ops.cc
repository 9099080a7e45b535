// Gathering, scattering and searching.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("DynamicStitch")
    .Input("indices: N * int32")
    .Input("data: N * T")
    .Output("merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .SetShapeFn(DynamicStitchShape)
    .Doc(
        "Merges slices: merged[indices[m][i, ...], ...] = data[m][i, ..., ...]. The last of "
        "several for one index counts.");

REGISTER_OP("Gather")
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("validate_indices: bool = true")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .SetShapeFn(GatherShape)
    .Doc(
        "Takes the rows of `params` that `indices` names. Gives indices.shape + "
        "params.shape[1:].");

REGISTER_OP("GatherV2")
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Input("axis: Taxis")
    .Output("output: Tparams")
    .Attr("batch_dims: int = 0")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .SetShapeFn(GatherV2Shape)
    .Doc(
        "Takes the slices of `params` along `axis` that `indices` names, after `batch_dims` "
        "common dimensions. Gives params.shape[:axis] + indices.shape[batch_dims:] + "
        "params.shape[axis+1:].");

REGISTER_OP("InTopK")
    .Input("predictions: float")
    .Input("targets: T")
    .Output("precision: bool")
    .Attr("k: int")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(InTopKShape)
    .Doc(
        "Tells for each row of `predictions` [batch, classes] whether the class `targets` "
        "[batch] is among the `k` largest.");

REGISTER_OP("InTopKV2")
    .Input("predictions: float")
    .Input("targets: T")
    .Input("k: T")
    .Output("precision: bool")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(InTopKShape)
    .Doc(
        "Tells for each row of `predictions` [batch, classes] whether the class `targets` "
        "[batch] is among the `k` largest.");

REGISTER_OP("ListDiff")
    .Input("x: T")
    .Input("y: T")
    .Output("out: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(ListDiffShape)
    .Doc(
        "Gives the elements of vector `x` that are not in vector `y`, in order, and their "
        "positions in `x`.");

REGISTER_OP("ScatterNd")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Input("shape: Tindices")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdShape)
    .Doc(
        "Adds slices of `updates` into zeros of shape `shape` at the coordinates in the last "
        "dimension of `indices`.");

REGISTER_OP("TopKV2")
    .Input("input: T")
    .Input("k: Tk")
    .Output("values: T")
    .Output("indices: index_type")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Attr("Tk: {int16, int32, int64} = DT_INT32")
    .Attr("index_type: {int16, int32, int64} = DT_INT32")
    .SetShapeFn(TopKShape)
    .Doc(
        "Gives the `k` largest elements of each last-dimension row of `input`, in falling order "
        "if `sorted`, and their positions.");

}  // namespace troupe
