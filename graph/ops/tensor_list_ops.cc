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

using C = InferenceContext;

/// The element shape of the list that is input `i`, as far as it is known. InvalidArgument if its
/// elements are known not to be of the attribute `element_dtype`.
absl::StatusOr<PartialShape> ListShape(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, c->attrs().Get<ElementType>("element_dtype"));
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

/// Output 0: `lists` of elements of the shape `element`.
absl::Status SetList(InferenceContext* c, PartialShape element, PartialShape lists = C::Scalar()) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, c->attrs().Get<ElementType>("element_dtype"));
  c->set_output(0, std::move(lists));
  c->set_output_handle(0, {{type, std::move(element)}});
  return absl::OkStatus();
}

/// What input `shape_input` says of the elements and what is known of list 0 together.
absl::StatusOr<PartialShape> ElementShape(InferenceContext* c, int shape_input) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape list, ListShape(c, 0));
  TROUPE_ASSIGN_OR_RETURN(PartialShape given, c->InputAsShape(shape_input, true));
  return given.MergeWith(list);
}

/// `shape` without its first dimension, of which it has one.
absl::StatusOr<PartialShape> RowOf(const PartialShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape rows, C::WithRankAtLeast(shape, 1));
  return C::Subshape(rows, 1);
}

absl::Status TensorListMakeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, c->InputAsShape(0, true));
  return SetList(c, std::move(element));
}

absl::Status TensorListPushBackShape(InferenceContext* c) {
  // Whether the tensor fits is left to the kernel, as in TensorFlow.
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0));
  return SetList(c, std::move(element));
}

absl::Status TensorListPopBackShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0));
  c->set_output(1, element);  // What the input element_shape says goes for the kernel only.
  return SetList(c, std::move(element));
}

absl::Status TensorListSetItemShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0));
  TROUPE_RETURN_IF_ERROR(element.MergeWith(c->input(2)).status());
  return SetList(c, std::move(element));
}

absl::Status TensorListGetItemShape(InferenceContext* c) { return SetShape(c, ElementShape(c, 2)); }

absl::Status TensorListElementShapeShape(InferenceContext* c) {
  const HandleShapes& handle = c->input_handle(0);
  // The scalar -1 stands for a shape of unknown rank.
  if (handle.size() == 1 && !handle[0].second.unknown_rank()) {
    c->set_output(0, C::VectorOf(handle[0].second.rank()));
  }
  return absl::OkStatus();
}

absl::Status TensorListResizeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 0).status());
  c->set_output(0, C::Scalar());
  c->set_output_handle(0, c->input_handle(0));
  return absl::OkStatus();
}

absl::Status TensorListStackShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 1));
  const int64_t count = c->attrs().GetOr<int64_t>("num_elements", -1);
  return SetShape(c, C::VectorOf(std::max<int64_t>(count, -1)).Concatenate(element));
}

absl::Status TensorListGatherShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 2));
  // One new dimension, whatever the rank of the indices.
  return SetShape(c, C::VectorOf(C::NumElements(c->input(1))).Concatenate(element));
}

absl::Status SetConcat(InferenceContext* c, const PartialShape& element) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(element));
  c->set_output(1, C::VectorOf(-1));
  return SetShape(c, C::VectorOf(-1).Concatenate(row));
}

absl::Status TensorListConcatShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape list, ListShape(c, 0));
  TROUPE_ASSIGN_OR_RETURN(PartialShape given, c->attrs().Get<PartialShape>("element_shape"));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, given.MergeWith(list));
  return SetConcat(c, element);
}

absl::Status TensorListConcatV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ElementShape(c, 1));
  return SetConcat(c, element);
}

/// A list of the rows of input 0; input `kShapeInput` says what shape they fit.
template <int kShapeInput>
absl::Status TensorListOfRowsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c->input(0)));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, c->InputAsShape(kShapeInput, true));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element).status());
  return SetList(c, std::move(element));
}

absl::Status TensorListSplitShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c->input(0)));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, c->InputAsShape(1, true));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element_row, RowOf(element));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element_row).status());
  return SetList(c, std::move(element));
}

absl::Status TensorListScatterIntoShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape row, RowOf(c->input(1)));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0));
  TROUPE_RETURN_IF_ERROR(row.MergeWith(element).status());
  return SetList(c, std::move(element));
}

absl::Status TensorListConcatListsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape lists, c->input(0).MergeWith(c->input(1)));
  TROUPE_ASSIGN_OR_RETURN(PartialShape a, ListShape(c, 0));
  TROUPE_ASSIGN_OR_RETURN(PartialShape b, ListShape(c, 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, a.MergeWith(b));
  return SetList(c, std::move(element), std::move(lists));
}

absl::Status TensorListPushBackBatchShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape lists, C::WithRank(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape tensor, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, C::MergeDim(lists.dim(0), C::DimOf(tensor, 0)));
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, ListShape(c, 0));
  return SetList(c, std::move(element), C::VectorOf(batch));
}

/// An op on lists whose elements are of the type `element_dtype`.
OpDefBuilder ListOp(const char* name, const char* signature, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr("element_dtype: type").SetShapeFn(shape_fn).Doc(doc);
  return op;
}

/// One that takes the elements' shape as a vector of either type.
OpDefBuilder ShapedListOp(const char* name, const char* signature, ShapeFn shape_fn,
                          const char* doc) {
  return std::move(ListOp(name, signature, shape_fn, doc).Attr("shape_type: {int32, int64}"));
}

[[maybe_unused]] const internal::OpRegistrar kListOps[] = {
    ShapedListOp(
        "EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant",
        TensorListMakeShape,
        "Gives an empty list of tensors of shape `element_shape` (-1: unknown; a scalar -1: even "
        "the rank), which takes at most `max_num_elements`, -1: any number."),
    ListOp(
        "TensorListConcat", "input_handle: variant -> tensor: element_dtype, lengths: int64",
        TensorListConcatShape,
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it.")
        .Attr("element_shape: shape = { unknown_rank: true }"),
    ListOp(
        "TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant",
        TensorListConcatListsShape,
        "Gives lists of the elements of those of `input_a`, followed by those of `input_b`, of the "
        "same shape."),
    ShapedListOp(
        "TensorListConcatV2",
        "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: "
        "element_dtype, lengths: int64",
        TensorListConcatV2Shape,
        "Concatenates the elements of a list along their first dimension; `lengths`: their sizes "
        "in it. Uninitialised elements are zeros, as many as the vector `leading_dims` says."),
    ShapedListOp("TensorListFromTensor",
                 "tensor: element_dtype, element_shape: shape_type -> output_handle: variant",
                 TensorListOfRowsShape<1>,
                 "Gives the list of the rows of `tensor` along its first dimension."),
    ListOp("TensorListGather",
           "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
           TensorListGatherShape, "Stacks the elements of a list at `indices`."),
    ListOp("TensorListGetItem",
           "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
           TensorListGetItemShape, "Gives the element of a list at the scalar `index`.")
        .Attr("Tshape: {int32, int64} = DT_INT32"),
    ListOp("TensorListPopBack",
           "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: "
           "element_dtype",
           TensorListPopBackShape, "Gives a list without its last element, and that element."),
    ListOp("TensorListPushBack",
           "input_handle: variant, tensor: element_dtype -> output_handle: variant",
           TensorListPushBackShape, "Gives a list with `tensor` appended."),
    ListOp("TensorListPushBackBatch",
           "input_handles: variant, tensor: element_dtype -> output_handles: variant",
           TensorListPushBackBatchShape,
           "Gives lists with the rows of `tensor` appended, one row to each."),
    ShapedListOp("TensorListReserve",
                 "element_shape: shape_type, num_elements: int32 -> handle: variant",
                 TensorListMakeShape,
                 "Gives a list of `num_elements` uninitialised elements of shape `element_shape`."),
    ShapedListOp(
        "TensorListScatter",
        "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: "
        "variant",
        TensorListOfRowsShape<2>,
        "Gives a list with the rows of `tensor` at the vector `indices`, as long as they need; of "
        "equal indices the last one counts."),
    ListOp(
        "TensorListScatterIntoExistingList",
        "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant",
        TensorListScatterIntoShape,
        "Gives a list with the rows of `tensor` at the vector `indices`, and longer if they need "
        "it; of equal indices the last one counts."),
    ShapedListOp(
        "TensorListScatterV2",
        "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> "
        "output_handle: variant",
        TensorListOfRowsShape<2>,
        "Gives a list of `num_elements` elements (-1: as many as the indices need) with the rows "
        "of `tensor` at the vector `indices`; of equal indices the last one counts."),
    ListOp("TensorListSetItem",
           "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
           TensorListSetItemShape, "Gives a list with `item` as its element at the scalar `index`.")
        .Attr("resize_if_index_out_of_bounds: bool = false"),
    ShapedListOp(
        "TensorListSplit",
        "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: "
        "variant",
        TensorListSplitShape,
        "Gives the list of slices of `tensor` along its first dimension, of the sizes in the "
        "vector `lengths`, which must add up to its size."),
    ListOp(
        "TensorListStack", "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
        TensorListStackShape,
        "Stacks the elements of a list along a new first dimension; there must be `num_elements` "
        "unless that is -1.")
        .Attr("num_elements: int = -1"),
};

}  // namespace

REGISTER_OP("TensorListElementShape")
    .Signature("input_handle: variant -> element_shape: shape_type")
    .Attr("shape_type: {int32, int64}")
    .SetShapeFn(TensorListElementShapeShape)
    .Doc("Gives the shape that the elements of a list fit, -1 where it is unknown.");

REGISTER_OP("TensorListLength")
    .Signature("input_handle: variant -> length: int32")
    .SetShapeFn(ScalarShape)
    .Doc("Gives the number of elements of a list.");

REGISTER_OP("TensorListResize")
    .Signature("input_handle: variant, size: int32 -> output_handle: variant")
    .SetShapeFn(TensorListResizeShape)
    .Doc("Gives a list cut to `size` elements, or filled up with uninitialised ones.");

}  // namespace troupe
