// Tensor lists: variants that hold a list of tensors of one element type. A changed list is another
// value; the list given stays as it is.
#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// The attribute `element_dtype`.
absl::StatusOr<ElementType> ElementTypeOfOp(InferenceContext* c) {
  return c->attrs().Get<ElementType>("element_dtype");
}

/// The element shape of the list that is input `i`, as far as it is known. InvalidArgument if its
/// elements are known not to be of `type`.
absl::StatusOr<PartialShape> ListShape(InferenceContext* c, int i, ElementType type) {
  const HandleShapes& handle = c->input_handle(i);
  if (handle.empty()) return PartialShape();
  if (handle.size() != 1) {
    return InvalidArgument("input ", i, " holds no list: ", handle.size(),
                           " types are known of it");
  }
  if (handle[0].first != type) {
    return InvalidArgument("Trying to use a list with wrong element dtype. List has type ",
                           ElementTypeName(handle[0].first), " but the op's element_dtype is ",
                           ElementTypeName(type));
  }
  return handle[0].second;
}

void SetList(InferenceContext* c, int i, ElementType type, PartialShape shape) {
  c->set_output(i, InferenceContext::Scalar());
  c->set_output_handle(i, {{type, std::move(shape)}});
}

/// [leading..., element...]
void SetJoined(InferenceContext* c, const PartialShape& leading, const PartialShape& element) {
  c->set_output(0, leading.Concatenate(element));
}

/// What input `shape_input` says of the elements and what is known of list 0 together.
absl::StatusOr<PartialShape> ElementShape(InferenceContext* c, int shape_input, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape list, ListShape(c, 0, type));
  TROUPE_ASSIGN_OR_RETURN(PartialShape given, c->InputAsShape(shape_input, true));
  return given.MergeWith(list);
}

/// Input `i` without its first dimension, of which it has one.
absl::StatusOr<PartialShape> RowOf(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape tensor, InferenceContext::WithRankAtLeast(c->input(i), 1));
  return InferenceContext::Subshape(tensor, 1);
}

absl::Status TensorListMakeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, c->InputAsShape(0, true));
  SetList(c, 0, type, std::move(shape));
  return absl::OkStatus();
}

absl::Status TensorListPushBackShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, ListShape(c, 0, type));
  // Whether the tensor fits is left to the kernel, as in TensorFlow.
  SetList(c, 0, type, std::move(shape));
  return absl::OkStatus();
}

absl::Status TensorListPopBackShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape list, ListShape(c, 0, type));
  SetList(c, 0, type, list);
  c->set_output(1, std::move(list));  // What the input element_shape says goes for the kernel only.
  return absl::OkStatus();
}

absl::Status TensorListSetItemShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, ListShape(c, 0, type));
  TROUPE_RETURN_IF_ERROR(shape.MergeWith(c->input(2)).status());
  SetList(c, 0, type, std::move(shape));
  return absl::OkStatus();
}

absl::Status TensorListGetItemShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 2, type));
  return SetShape(c, std::move(element));
}

absl::Status TensorListElementShapeShape(InferenceContext* c) {
  const HandleShapes& handle = c->input_handle(0);
  // The scalar -1 stands for a shape of unknown rank.
  if (handle.size() == 1 && !handle[0].second.unknown_rank()) {
    c->set_output(0, InferenceContext::VectorOf(handle[0].second.rank()));
  }
  return absl::OkStatus();
}

absl::Status TensorListResizeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(1), 0).status());
  c->set_output(0, InferenceContext::Scalar());
  c->set_output_handle(0, c->input_handle(0));
  return absl::OkStatus();
}

absl::Status TensorListStackShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 1, type));
  const int64_t count = c->attrs().GetOr<int64_t>("num_elements", -1);
  SetJoined(c, InferenceContext::VectorOf(std::max<int64_t>(count, -1)), element);
  return absl::OkStatus();
}

absl::Status TensorListGatherShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 2, type));
  // One new dimension, whatever the rank of the indices.
  SetJoined(c, InferenceContext::VectorOf(InferenceContext::NumElements(c->input(1))), element);
  return absl::OkStatus();
}

absl::Status SetConcat(InferenceContext* c, const PartialShape& element) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, InferenceContext::WithRankAtLeast(element, 1));
  TROUPE_ASSIGN_OR_RETURN(row, InferenceContext::Subshape(row, 1));
  SetJoined(c, InferenceContext::VectorOf(-1), row);
  c->set_output(1, InferenceContext::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status TensorListConcatShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape list, ListShape(c, 0, type));
  TROUPE_ASSIGN_OR_RETURN(PartialShape given, c->attrs().Get<PartialShape>("element_shape"));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, given.MergeWith(list));
  return SetConcat(c, element);
}

absl::Status TensorListConcatV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 1, type));
  return SetConcat(c, element);
}

/// A list of the rows of input 0; input `kShapeInput` says what shape they fit.
template <int kShapeInput>
absl::Status TensorListOfRowsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c, 0));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, c->InputAsShape(kShapeInput, true));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element).status());
  SetList(c, 0, type, std::move(element));
  return absl::OkStatus();
}

absl::Status TensorListSplitShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c, 0));
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(2), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, c->InputAsShape(1, true));
  TROUPE_ASSIGN_OR_RETURN(PartialShape vectors, InferenceContext::WithRankAtLeast(element, 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element_row, InferenceContext::Subshape(vectors, 1));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element_row).status());
  SetList(c, 0, type, std::move(element));
  return absl::OkStatus();
}

absl::Status TensorListScatterIntoShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c, 1));
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(2), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0, type));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element).status());
  SetList(c, 0, type, std::move(element));
  return absl::OkStatus();
}

absl::Status TensorListConcatListsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape batch, c->input(0).MergeWith(c->input(1)));
  TROUPE_ASSIGN_OR_RETURN(PartialShape a, ListShape(c, 0, type));
  TROUPE_ASSIGN_OR_RETURN(PartialShape b, ListShape(c, 1, type));
  TROUPE_ASSIGN_OR_RETURN(PartialShape merged, a.MergeWith(b));
  c->set_output(0, std::move(batch));
  c->set_output_handle(0, {{type, std::move(merged)}});
  return absl::OkStatus();
}

absl::Status TensorListPushBackBatchShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOfOp(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape lists, InferenceContext::WithRank(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape tensor, InferenceContext::WithRankAtLeast(c->input(1), 1));
  if (!tensor.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t batch,
                            InferenceContext::MergeDim(lists.dim(0), tensor.dim(0)));
    lists = InferenceContext::VectorOf(batch);
  }
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, ListShape(c, 0, type));
  c->set_output(0, std::move(lists));
  c->set_output_handle(0, {{type, std::move(shape)}});
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("EmptyTensorList")
    .Signature("element_shape: shape_type, max_num_elements: int32 -> handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListMakeShape)
    .Doc(
        "Gives an empty list of tensors of shape `element_shape` (-1: unknown; a scalar -1: even "
        "the rank), which takes at most `max_num_elements`, -1: any number.");

REGISTER_OP("TensorListConcat")
    .Signature("input_handle: variant -> tensor: element_dtype, lengths: int64")
    .Attr("element_dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .SetShapeFn(TensorListConcatShape)
    .Doc(
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it.");

REGISTER_OP("TensorListConcatLists")
    .Signature("input_a: variant, input_b: variant -> output: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListConcatListsShape)
    .Doc(
        "Gives lists of the elements of those of `input_a`, followed by those of `input_b`, of the "
        "same shape.");

REGISTER_OP("TensorListConcatV2")
    .Signature(
        "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: "
        "element_dtype, lengths: int64")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListConcatV2Shape)
    .Doc(
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it. Uninitialised elements are zeros, as many as the vector `leading_dims` says.");

REGISTER_OP("TensorListElementShape")
    .Signature("input_handle: variant -> element_shape: shape_type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListElementShapeShape)
    .Doc("Gives the shape that the elements of a list fit, -1 where it is unknown.");

REGISTER_OP("TensorListFromTensor")
    .Signature("tensor: element_dtype, element_shape: shape_type -> output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListOfRowsShape<1>)
    .Doc("Gives the list of the rows of `tensor` along its first dimension.");

REGISTER_OP("TensorListGather")
    .Signature(
        "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListGatherShape)
    .Doc("Stacks the elements of a list at `indices`.");

REGISTER_OP("TensorListGetItem")
    .Signature("input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype")
    .Attr("element_dtype: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn(TensorListGetItemShape)
    .Doc("Gives the element of a list at the scalar `index`.");

REGISTER_OP("TensorListLength")
    .Signature("input_handle: variant -> length: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of elements of a list.");

REGISTER_OP("TensorListPopBack")
    .Signature(
        "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: "
        "element_dtype")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPopBackShape)
    .Doc("Gives a list without its last element, and that element.");

REGISTER_OP("TensorListPushBack")
    .Signature("input_handle: variant, tensor: element_dtype -> output_handle: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPushBackShape)
    .Doc("Gives a list with `tensor` appended.");

REGISTER_OP("TensorListPushBackBatch")
    .Signature("input_handles: variant, tensor: element_dtype -> output_handles: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListPushBackBatchShape)
    .Doc("Gives lists with the rows of `tensor` appended, one row to each.");

REGISTER_OP("TensorListReserve")
    .Signature("element_shape: shape_type, num_elements: int32 -> handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListMakeShape)
    .Doc("Gives a list of `num_elements` uninitialised elements of shape `element_shape`.");

REGISTER_OP("TensorListResize")
    .Signature("input_handle: variant, size: int32 -> output_handle: variant")
    .SetShapeFn(TensorListResizeShape)
    .Doc("Gives a list cut to `size` elements, or filled up with uninitialised ones.");

REGISTER_OP("TensorListScatter")
    .Signature(
        "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: "
        "variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListOfRowsShape<2>)
    .Doc(
        "Gives a list with the rows of `tensor` at the vector `indices`, as long as they need; of "
        "equal indices the last one counts.");

REGISTER_OP("TensorListScatterIntoExistingList")
    .Signature(
        "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant")
    .Attr("element_dtype: type")
    .SetShapeFn(TensorListScatterIntoShape)
    .Doc(
        "Gives a list with the rows of `tensor` at the vector `indices`, and longer if they need "
        "it; of equal indices the last one counts.");

REGISTER_OP("TensorListScatterV2")
    .Signature(
        "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> "
        "output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListOfRowsShape<2>)
    .Doc(
        "Gives a list of `num_elements` elements (-1: as many as the indices need) with the rows "
        "of `tensor` at the vector `indices`; of equal indices the last one counts.");

REGISTER_OP("TensorListSetItem")
    .Signature("input_handle: variant, index: int32, item: element_dtype -> output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("resize_if_index_out_of_bounds: bool = false")
    .SetShapeFn(TensorListSetItemShape)
    .Doc("Gives a list with `item` as its element at the scalar `index`.");

REGISTER_OP("TensorListSplit")
    .Signature(
        "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: "
        "variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListSplitShape)
    .Doc(
        "Gives the list of slices of `tensor` along its first dimension, of the sizes in the "
        "vector "
        "`lengths`, which must add up to its size.");

REGISTER_OP("TensorListStack")
    .Signature("input_handle: variant, element_shape: int32 -> tensor: element_dtype")
    .Attr("element_dtype: type")
    .Attr("num_elements: int = -1")
    .SetShapeFn(TensorListStackShape)
    .Doc(
        "Stacks the elements of a list along a new first dimension; there must be `num_elements` "
        "unless that is -1.");

}  // namespace troupe
