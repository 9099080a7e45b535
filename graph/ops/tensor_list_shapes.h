/// Shape functions of the TensorList ops.
#ifndef TROUPE_GRAPH_OPS_TENSOR_LIST_SHAPES_H_
#define TROUPE_GRAPH_OPS_TENSOR_LIST_SHAPES_H_

#include "absl/status/status.h"

namespace troupe {

class InferenceContext;

// What is known of a list's elements (one element type and shape) is kept with its variant, as for
// resource handles. Element types that contradict it are InvalidArgument.
absl::Status TensorListMakeShape(InferenceContext* c);  ///< EmptyTensorList, TensorListReserve.
absl::Status TensorListPushBackShape(InferenceContext* c);
absl::Status TensorListPopBackShape(InferenceContext* c);
absl::Status TensorListSetItemShape(InferenceContext* c);
absl::Status TensorListGetItemShape(InferenceContext* c);
absl::Status TensorListElementShapeShape(InferenceContext* c);
absl::Status TensorListResizeShape(InferenceContext* c);
absl::Status TensorListStackShape(InferenceContext* c);
absl::Status TensorListGatherShape(InferenceContext* c);
absl::Status TensorListConcatShape(InferenceContext* c);
absl::Status TensorListConcatV2Shape(InferenceContext* c);
absl::Status TensorListFromTensorShape(InferenceContext* c);
absl::Status TensorListSplitShape(InferenceContext* c);
absl::Status TensorListScatterShape(InferenceContext* c);
absl::Status TensorListScatterIntoShape(InferenceContext* c);
absl::Status TensorListConcatListsShape(InferenceContext* c);
absl::Status TensorListPushBackBatchShape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_TENSOR_LIST_SHAPES_H_
