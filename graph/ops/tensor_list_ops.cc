// Tensor lists: variants that hold a list of tensors of one element type. A changed list is another
// value; the list given stays as it is.
#include "graph/op_registry.h"
#include "graph/ops/tensor_list_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("EmptyTensorList")
    .Input("element_shape: shape_type")
    .Input("max_num_elements: int32")
    .Output("handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListMakeShape)
    .Doc(
        "Gives an empty list of tensors of shape `element_shape` (-1: unknown; a scalar -1: even "
        "the rank), which takes at most `max_num_elements`, -1: any number.");

REGISTER_OP("TensorListConcat")
    .Input("input_handle: variant")
    .Output("tensor: element_dtype")
    .Output("lengths: int64")
    .Attr("element_dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .SetShapeFn(TensorListConcatShape)
    .Doc(
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it.");

REGISTER_OP("TensorListConcatLists")
    .Input("input_a: variant")
    .Input("input_b: variant")
    .Output("output: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListConcatListsShape)
    .Doc(
        "Gives lists of the elements of those of `input_a`, followed by those of `input_b`, of the "
        "same shape.");

REGISTER_OP("TensorListConcatV2")
    .Input("input_handle: variant")
    .Input("element_shape: shape_type")
    .Input("leading_dims: int64")
    .Output("tensor: element_dtype")
    .Output("lengths: int64")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListConcatV2Shape)
    .Doc(
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it. Uninitialised elements are zeros, as many as the vector `leading_dims` says.");

REGISTER_OP("TensorListElementShape")
    .Input("input_handle: variant")
    .Output("element_shape: shape_type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListElementShapeShape)
    .Doc("Gives the shape that the elements of a list fit, -1 where it is unknown.");

REGISTER_OP("TensorListFromTensor")
    .Input("tensor: element_dtype")
    .Input("element_shape: shape_type")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListFromTensorShape)
    .Doc("Gives the list of the rows of `tensor` along its first dimension.");

REGISTER_OP("TensorListGather")
    .Input("input_handle: variant")
    .Input("indices: int32")
    .Input("element_shape: int32")
    .Output("values: element_dtype")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListGatherShape)
    .Doc("Stacks the elements of a list at `indices`.");

REGISTER_OP("TensorListGetItem")
    .Input("input_handle: variant")
    .Input("index: int32")
    .Input("element_shape: Tshape")
    .Output("item: element_dtype")
    .Attr("element_dtype: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn(TensorListGetItemShape)
    .Doc("Gives the element of a list at the scalar `index`.");

REGISTER_OP("TensorListLength")
    .Input("input_handle: variant")
    .Output("length: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of elements of a list.");

REGISTER_OP("TensorListPopBack")
    .Input("input_handle: variant")
    .Input("element_shape: int32")
    .Output("output_handle: variant")
    .Output("tensor: element_dtype")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPopBackShape)
    .Doc("Gives a list without its last element, and that element.");

REGISTER_OP("TensorListPushBack")
    .Input("input_handle: variant")
    .Input("tensor: element_dtype")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPushBackShape)
    .Doc("Gives a list with `tensor` appended.");

REGISTER_OP("TensorListPushBackBatch")
    .Input("input_handles: variant")
    .Input("tensor: element_dtype")
    .Output("output_handles: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPushBackBatchShape)
    .Doc("Gives lists with the rows of `tensor` appended, one row to each.");

REGISTER_OP("TensorListReserve")
    .Input("element_shape: shape_type")
    .Input("num_elements: int32")
    .Output("handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListMakeShape)
    .Doc("Gives a list of `num_elements` uninitialised elements of shape `element_shape`.");

REGISTER_OP("TensorListResize")
    .Input("input_handle: variant")
    .Input("size: int32")
    .Output("output_handle: variant")
    .SetShapeFn(TensorListResizeShape)
    .Doc("Gives a list cut to `size` elements, or filled up with uninitialised ones.");

REGISTER_OP("TensorListScatter")
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Input("element_shape: shape_type")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListScatterShape)
    .Doc(
        "Gives a list with the rows of `tensor` at the vector `indices`, as long as they need; of "
        "equal indices the last one counts.");

REGISTER_OP("TensorListScatterIntoExistingList")
    .Input("input_handle: variant")
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListScatterIntoShape)
    .Doc(
        "Gives a list with the rows of `tensor` at the vector `indices`, and longer if they need "
        "it; of equal indices the last one counts.");

REGISTER_OP("TensorListScatterV2")
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Input("element_shape: shape_type")
    .Input("num_elements: int32")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListScatterShape)
    .Doc(
        "Gives a list of `num_elements` elements (-1: as many as the indices need) with the rows "
        "of `tensor` at the vector `indices`; of equal indices the last one counts.");

REGISTER_OP("TensorListSetItem")
    .Input("input_handle: variant")
    .Input("index: int32")
    .Input("item: element_dtype")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("resize_if_index_out_of_bounds: bool = false")
    .SetShapeFn(TensorListSetItemShape)
    .Doc("Gives a list with `item` as its element at the scalar `index`.");

REGISTER_OP("TensorListSplit")
    .Input("tensor: element_dtype")
    .Input("element_shape: shape_type")
    .Input("lengths: int64")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListSplitShape)
    .Doc(
        "Gives the list of slices of `tensor` along its first dimension, of the sizes in the "
        "vector "
        "`lengths`, which must add up to its size.");

REGISTER_OP("TensorListStack")
    .Input("input_handle: variant")
    .Input("element_shape: int32")
    .Output("tensor: element_dtype")
    .Attr("element_dtype: type")
    .Attr("num_elements: int = -1")
    .SetShapeFn(TensorListStackShape)
    .Doc(
        "Stacks the elements of a list along a new first dimension; there must be `num_elements` "
        "unless that is -1.");

}  // namespace troupe
