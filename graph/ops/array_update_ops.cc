// Slices written to and taken from computed places, parts by number, distinct elements.
#include <limits>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/scatter_shape.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status BitcastShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType from, c->attrs().Get<ElementType>("T"));
  TROUPE_ASSIGN_OR_RETURN(const ElementType to, c->attrs().Get<ElementType>("type"));
  const PartialShape& input = c->input(0);
  const int64_t from_size = static_cast<int64_t>(ElementSize(from));
  const int64_t to_size = static_cast<int64_t>(ElementSize(to));
  // Types that hold no tensors have no size.
  if (from_size == to_size || from_size == 0 || to_size == 0) return UnchangedShape(c);
  if (from_size > to_size) return SetShape(c, input.Concatenate(C::VectorOf(from_size / to_size)));
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(input, 1).status());
  const int64_t last = C::DimOf(input, -1), needed = to_size / from_size;
  if (last != -1 && last != needed) {
    return InvalidArgument("To become ", ElementTypeName(to), ", elements of type ",
                           ElementTypeName(from), " must come in rows of ", needed,
                           " (the last dimension), not in the shape ", input.ToString());
  }
  return SetShape(c, C::Subshape(input, 0, -1));
}

absl::Status DynamicPartitionShape(InferenceContext* c) {
  const PartialShape& partitions = c->input(1);
  if (partitions.unknown_rank()) return UnknownShape(c);
  PartialShape data;
  TROUPE_RETURN_IF_ERROR(MergePrefix(c->input(0), partitions, &data));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape slice, C::Subshape(data, partitions.rank()));
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, C::VectorOf(-1).Concatenate(slice));
  }
  return absl::OkStatus();
}

absl::Status GatherNdShape(InferenceContext* c) {
  return SetShape(c, GatherNdOutputShape(c->input(0), c->input(1)));
}

absl::Status TensorScatterShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), 1));
  // Updates that are a scalar are left to the kernel, which refuses them.
  if (c->input(2).rank() == 0) return UnchangedShape(c);
  TROUPE_RETURN_IF_ERROR(CheckScatterNdShapes(c->input(0), indices, c->input(2)));
  return UnchangedShape(c);
}

absl::Status UniqueShape(InferenceContext* c) {
  c->set_output(0, C::VectorOf(-1));
  c->set_output(1, c->input(0));  // Of unknown rank if x is, as in TensorFlow.
  return C::WithRank(c->input(0), 1).status();
}

absl::Status UniqueWithCountsShape(InferenceContext* c) {
  c->set_output(0, C::VectorOf(-1));
  c->set_output(1, c->input(0));
  c->set_output(2, C::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status ScatterNdAddShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates, C::WithRankAtLeast(c->input(2), 1));
  TROUPE_RETURN_IF_ERROR(CheckScatterNdShapes(c->input(0), indices, updates));
  return UnchangedShape(c);
}

absl::Status UniqueV2Shape(InferenceContext* c) {
  const PartialShape& x = c->input(0);
  c->set_output(0, C::UnknownOfRank(x.rank()));
  if (c->num_outputs() > 2) c->set_output(2, C::VectorOf(-1));
  const Tensor& axis = c->input_tensor(1);
  if (!axis.valid() || x.unknown_rank()) {
    c->set_output(1, C::VectorOf(-1));
    return absl::OkStatus();
  }
  if (axis.rank() != 1 || axis.num_elements() > 1) {
    return InvalidArgument("axis must be a vector of one element or none, got shape ",
                           axis.shape().ToString());
  }
  if (axis.num_elements() == 0) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(x, 1).status());
    c->set_output(1, x);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const int dim, CanonicalAxis(IntegerValues(axis)[0], x.rank(), "axis"));
  c->set_output(1, C::VectorOf(x.dim(dim)));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("Bitcast")
    .Signature("input: T -> output: type")
    .Attr(
        "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, "
        "int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
    .Attr(
        "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, "
        "int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
    .SetShapeFn(BitcastShape)
    .Doc(
        "Takes the bytes of `input` as elements of `type`. Larger elements become rows of smaller "
        "ones, in a new last dimension; the other way round the last dimension disappears.");

REGISTER_OP("DynamicPartition")
    .Signature("data: T, partitions: int32 -> outputs: num_partitions * T")
    .Attr("num_partitions: int >= 1")
    .Attr("T: type")
    .SetShapeFn(DynamicPartitionShape)
    .Doc(
        "Deals the slices of `data` out to `num_partitions` tensors: `partitions`, whose shape is "
        "a prefix of that of `data`, has the number of each slice's tensor. Gives them in order, "
        "of shape [count] + data.shape[partitions.rank:].");

REGISTER_OP("Empty")
    .Signature("shape: int32 -> output: dtype")
    .Attr("dtype: type")
    .Attr("init: bool = false")
    .SetIsStateful()
    .SetShapeFn(FirstInputAsShape)
    .Doc("Gives a tensor of shape `shape`: of zeros if `init`, else of whatever is in its memory.");

REGISTER_OP("GatherNd")
    .Signature("params: Tparams, indices: Tindices -> output: Tparams")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(GatherNdShape)
    .Doc(
        "Takes the slices of `params` at the coordinates in the last dimension of `indices`. Gives "
        "indices.shape[:-1] + params.shape[indices.shape[-1]:].");

REGISTER_OP("TensorScatterAdd")
    .Signature("tensor: T, indices: Tindices, updates: T -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(TensorScatterShape)
    .Doc(
        "Gives `tensor` with the slices of `updates` added at the coordinates in the last "
        "dimension of `indices`.");

REGISTER_OP("ScatterNdNonAliasingAdd")
    .Signature("input: T, indices: Tindices, updates: T -> output: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
        "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdAddShape)
    .Doc(
        "Gives `input` with the slices of `updates` added at the coordinates in the last dimension "
        "of `indices`. Indices outside are an error unless `bad_indices_policy` is IGNORE.");

REGISTER_OP("TensorScatterMax")
    .Signature("tensor: T, indices: Tindices, updates: T -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(TensorScatterShape)
    .Doc(
        "Gives `tensor` with the slices at the coordinates in the last dimension of `indices` "
        "replaced by those of `updates` where these are larger. Indices outside are an error "
        "unless `bad_indices_policy` is IGNORE.");

REGISTER_OP("TensorScatterMin")
    .Signature("tensor: T, indices: Tindices, updates: T -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(TensorScatterShape)
    .Doc(
        "Gives `tensor` with the slices at the coordinates in the last dimension of `indices` "
        "replaced by those of `updates` where these are smaller. Indices outside are an error "
        "unless `bad_indices_policy` is IGNORE.");

REGISTER_OP("TensorScatterSub")
    .Signature("tensor: T, indices: Tindices, updates: T -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(TensorScatterShape)
    .Doc(
        "Gives `tensor` with the slices of `updates` subtracted at the coordinates in the last "
        "dimension of `indices`. Indices outside are an error unless `bad_indices_policy` is "
        "IGNORE.");

REGISTER_OP("TensorScatterUpdate")
    .Signature("tensor: T, indices: Tindices, updates: T -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64, uint16}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(TensorScatterShape)
    .Doc(
        "Gives `tensor` with the slices at the coordinates in the last dimension of `indices` "
        "replaced by those of `updates`. The last of several for one place counts.");

REGISTER_OP("TensorStridedSliceUpdate")
    .Signature("input: T, begin: Index, end: Index, strides: Index, value: T -> output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Attr("begin_mask: int = 0")
    .Attr("end_mask: int = 0")
    .Attr("ellipsis_mask: int = 0")
    .Attr("new_axis_mask: int = 0")
    .Attr("shrink_axis_mask: int = 0")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives `input` with the part that StridedSlice would take replaced by `value`, which is "
        "broadcast to its shape.");

REGISTER_OP("Unique")
    .Signature("x: T -> y: T, idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(UniqueShape)
    .Doc(
        "Gives the distinct elements `y` of the vector `x` in the order of their first "
        "appearance, and `idx`, for each of `x` its place in `y`.");

REGISTER_OP("UniqueWithCounts")
    .Signature("x: T -> y: T, idx: out_idx, count: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(UniqueWithCountsShape)
    .Doc(
        "Gives the distinct elements `y` of the vector `x` in the order of their first "
        "appearance, `idx`, for each of `x` its place in `y`, and `count`, for each of `y` how "
        "often it is in `x`.");

REGISTER_OP("UniqueWithCountsV2")
    .Signature("x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx")
    .Attr("T: type")
    .Attr("Taxis: {int32, int64} = DT_INT64")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(UniqueV2Shape)
    .Doc(
        "Gives the distinct slices `y` of `x` along `axis`, a vector of one element, in the order "
        "of their first appearance, `idx`, for each slice of `x` its place in `y`, and `count`, "
        "for each of `y` how often it is in `x`. Without an axis `x` is a vector.");

REGISTER_OP("UniqueV2")
    .Signature("x: T, axis: Taxis -> y: T, idx: out_idx")
    .Attr("T: type")
    .Attr("Taxis: {int32, int64} = DT_INT64")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(UniqueV2Shape)
    .Doc(
        "Gives the distinct slices `y` of `x` along `axis`, a vector of one element, in the order "
        "of their first appearance, and `idx`, for each slice of `x` its place in `y`. Without an "
        "axis `x` is a vector.");

}  // namespace troupe
