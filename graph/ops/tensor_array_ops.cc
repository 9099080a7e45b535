// Tensor arrays: arrays of tensors that are written and read element by element, mostly by loops.
// Version 2 has strings as handles, which are looked up; version 3 has resources.
#include "graph/op_registry.h"
#include "graph/ops/tensor_array_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("TensorArrayCloseV2")
    .Input("handle: string")
    .Deprecated(26, "Use TensorArrayCloseV3")
    .SetShapeFn(TensorArrayCloseShape)
    .Doc("Lets go of the tensors of an array; using it afterwards is an error.");

REGISTER_OP("TensorArrayCloseV3")
    .Input("handle: resource")
    .SetIsStateful()
    .SetShapeFn(TensorArrayCloseShape)
    .Doc("Lets go of the tensors of an array; using it afterwards is an error.");

REGISTER_OP("TensorArrayConcatV2")
    .Input("handle: string")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Output("lengths: int64")
    .Attr("dtype: type")
    .Attr("element_shape_except0: shape = { unknown_rank: true }")
    .SetShapeFn(TensorArrayConcatShape)
    .Doc(
        "Concatenates the elements of an array along their first dimension; `lengths`: their sizes "
        "in it.");

REGISTER_OP("TensorArrayConcatV3")
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Output("lengths: int64")
    .Attr("dtype: type")
    .Attr("element_shape_except0: shape = { unknown_rank: true }")
    .SetIsStateful()
    .SetShapeFn(TensorArrayConcatShape)
    .Doc(
        "Concatenates the elements of an array along their first dimension; `lengths`: their sizes "
        "in it.");

REGISTER_OP("TensorArrayGatherV2")
    .Input("handle: string")
    .Input("indices: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Deprecated(26, "Use TensorArrayGatherV3")
    .SetShapeFn(TensorArrayGatherShape)
    .Doc("Stacks the elements of an array at the vector `indices`.");

REGISTER_OP("TensorArrayGatherV3")
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .SetIsStateful()
    .SetShapeFn(TensorArrayGatherShape)
    .Doc("Stacks the elements of an array at the vector `indices`.");

REGISTER_OP("TensorArrayGradV2")
    .Input("handle: string")
    .Input("flow_in: float")
    .Output("grad_handle: string")
    .Attr("source: string")
    .SetIsStateful()
    .Deprecated(26, "Use TensorArrayGradV3")
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, one for each `source`: "
        "made by the first call, kept by the array. Writes to one index are added up.");

REGISTER_OP("TensorArrayGradV3")
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("grad_handle: resource")
    .Output("flow_out: float")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, one for each `source`: "
        "made by the first call, kept by the array. Writes to one index are added up.");

REGISTER_OP("TensorArrayGradWithShape")
    .Input("handle: resource")
    .Input("flow_in: float")
    .Input("shape_to_prepend: int32")
    .Output("grad_handle: resource")
    .Output("flow_out: float")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, as TensorArrayGradV3 does; "
        "they have the dimensions `shape_to_prepend` before those of the elements.");

REGISTER_OP("TensorArrayReadV2")
    .Input("handle: string")
    .Input("index: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Deprecated(26, "Use TensorArrayReadV3")
    .SetShapeFn(TensorArrayReadShape)
    .Doc("Gives the element of an array at the scalar `index`.");

REGISTER_OP("TensorArrayReadV3")
    .Input("handle: resource")
    .Input("index: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .SetIsStateful()
    .SetShapeFn(TensorArrayReadShape)
    .Doc("Gives the element of an array at the scalar `index`.");

REGISTER_OP("TensorArrayScatterV2")
    .Input("handle: string")
    .Input("indices: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Deprecated(26, "Use TensorArrayScatterV3")
    .SetShapeFn(TensorArrayScatterShape)
    .Doc("Writes the rows of `value` to the elements of an array at the vector `indices`.");

REGISTER_OP("TensorArrayScatterV3")
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(TensorArrayScatterShape)
    .Doc("Writes the rows of `value` to the elements of an array at the vector `indices`.");

REGISTER_OP("TensorArraySizeV2")
    .Input("handle: string")
    .Input("flow_in: float")
    .Output("size: int32")
    .Deprecated(26, "Use TensorArraySizeV3")
    .SetShapeFn(TensorArraySizeShape)
    .Doc("Gives the number of elements of an array.");

REGISTER_OP("TensorArraySizeV3")
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("size: int32")
    .SetIsStateful()
    .SetShapeFn(TensorArraySizeShape)
    .Doc("Gives the number of elements of an array.");

REGISTER_OP("TensorArraySplitV2")
    .Input("handle: string")
    .Input("value: T")
    .Input("lengths: int64")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Deprecated(26, "Use TensorArraySplitV3")
    .SetShapeFn(TensorArraySplitShape)
    .Doc(
        "Writes slices of `value` along its first dimension, of the sizes in the vector `lengths`, "
        "to the elements of an array.");

REGISTER_OP("TensorArraySplitV3")
    .Input("handle: resource")
    .Input("value: T")
    .Input("lengths: int64")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(TensorArraySplitShape)
    .Doc(
        "Writes slices of `value` along its first dimension, of the sizes in the vector `lengths`, "
        "to the elements of an array.");

REGISTER_OP("TensorArrayV2")
    .Input("size: int32")
    .Output("handle: string")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("tensor_array_name: string = ''")
    .SetIsStateful()
    .Deprecated(26, "Use TensorArrayV3")
    .SetShapeFn(TensorArrayShape)
    .Doc(
        "Makes an array of `size` tensors of type `dtype`, which lives as long as the step. Each "
        "is written once and, with `clear_after_read`, read once.");

REGISTER_OP("TensorArrayV3")
    .Input("size: int32")
    .Output("handle: resource")
    .Output("flow: float")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("identical_element_shapes: bool = false")
    .Attr("tensor_array_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(TensorArrayShape)
    .Doc(
        "Makes an array of `size` tensors of type `dtype`, which lives as long as its handle. Each "
        "is written once and, with `clear_after_read`, read once. `flow` orders the ops on the "
        "array: each takes the flow of those before it.");

REGISTER_OP("TensorArrayWriteV2")
    .Input("handle: string")
    .Input("index: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Deprecated(26, "Use TensorArrayWriteV3")
    .SetShapeFn(TensorArrayWriteShape)
    .Doc("Writes `value` to the element of an array at the scalar `index`.");

REGISTER_OP("TensorArrayWriteV3")
    .Input("handle: resource")
    .Input("index: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(TensorArrayWriteShape)
    .Doc("Writes `value` to the element of an array at the scalar `index`.");

}  // namespace troupe
