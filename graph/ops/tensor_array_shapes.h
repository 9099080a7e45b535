/// Shape functions of the TensorArray ops.
#ifndef TROUPE_GRAPH_OPS_TENSOR_ARRAY_SHAPES_H_
#define TROUPE_GRAPH_OPS_TENSOR_ARRAY_SHAPES_H_

#include "absl/status/status.h"

namespace troupe {

class InferenceContext;

// What is known of the elements of arrays with resource handles is kept with the handle.
absl::Status TensorArrayShape(InferenceContext* c);
absl::Status TensorArrayGradShape(InferenceContext* c);
absl::Status TensorArrayWriteShape(InferenceContext* c);
absl::Status TensorArrayReadShape(InferenceContext* c);
absl::Status TensorArrayGatherShape(InferenceContext* c);
absl::Status TensorArrayScatterShape(InferenceContext* c);
absl::Status TensorArrayConcatShape(InferenceContext* c);
absl::Status TensorArraySplitShape(InferenceContext* c);
absl::Status TensorArraySizeShape(InferenceContext* c);
absl::Status TensorArrayCloseShape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_TENSOR_ARRAY_SHAPES_H_
