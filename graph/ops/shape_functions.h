/// Shape functions of the ops registered in this folder, by the file that implements them; those
/// that need no more than `shape_inference.h` offers are declared there.
///
/// Each sets all outputs' shapes as far as they are known, or gives InvalidArgument where no values
/// of the unknown sizes could be right.
#ifndef TROUPE_GRAPH_OPS_SHAPE_FUNCTIONS_H_
#define TROUPE_GRAPH_OPS_SHAPE_FUNCTIONS_H_

#include "absl/status/status.h"

namespace troupe {

class InferenceContext;

// array_shapes.cc
absl::Status BroadcastArgsShape(InferenceContext* c);
absl::Status BroadcastGradientArgsShape(InferenceContext* c);
absl::Status BroadcastToShape(InferenceContext* c);
absl::Status ConstShape(InferenceContext* c);
absl::Status EnsureShapeShape(InferenceContext* c);
absl::Status ExpandDimsShape(InferenceContext* c);
absl::Status FillShape(InferenceContext* c);
absl::Status IdentityNShape(InferenceContext* c);
absl::Status OneHotShape(InferenceContext* c);
absl::Status PlaceholderShape(InferenceContext* c);
absl::Status PlaceholderWithDefaultShape(InferenceContext* c);
absl::Status ReshapeShape(InferenceContext* c);
absl::Status ShapeAttrShape(InferenceContext* c);  ///< The attribute `shape`, for output 0.
absl::Status ShapeShape(InferenceContext* c);
absl::Status ShapeNShape(InferenceContext* c);
absl::Status SqueezeShape(InferenceContext* c);
absl::Status WhereShape(InferenceContext* c);

// array_slice_shapes.cc
absl::Status ConcatShape(InferenceContext* c);
absl::Status ConcatOffsetShape(InferenceContext* c);
absl::Status ConcatV2Shape(InferenceContext* c);
absl::Status InvertPermutationShape(InferenceContext* c);
absl::Status PackShape(InferenceContext* c);
absl::Status PadShape(InferenceContext* c);
absl::Status ReverseV2Shape(InferenceContext* c);
absl::Status SliceShape(InferenceContext* c);
absl::Status SplitShape(InferenceContext* c);
absl::Status SplitVShape(InferenceContext* c);
absl::Status StridedSliceShape(InferenceContext* c);
absl::Status FirstInputAsShape(InferenceContext* c);  ///< Output 0: input 0, a vector of sizes.
absl::Status TileShape(InferenceContext* c);
absl::Status TransposeShape(InferenceContext* c);
absl::Status UnpackShape(InferenceContext* c);

// array_index_shapes.cc
absl::Status DynamicStitchShape(InferenceContext* c);
absl::Status GatherShape(InferenceContext* c);
absl::Status GatherV2Shape(InferenceContext* c);
absl::Status InTopKShape(InferenceContext* c);
absl::Status ListDiffShape(InferenceContext* c);
absl::Status ScatterNdShape(InferenceContext* c);
absl::Status TopKShape(InferenceContext* c);

// math_shapes.cc
absl::Status ArgShape(InferenceContext* c);
absl::Status BatchMatMulShape(InferenceContext* c);
absl::Status BatchMatMulV2Shape(InferenceContext* c);
absl::Status EqualShape(InferenceContext* c);
absl::Status LinSpaceShape(InferenceContext* c);
absl::Status MatMulShape(InferenceContext* c);
absl::Status RangeShape(InferenceContext* c);
absl::Status ReductionShape(InferenceContext* c);
absl::Status SelectShape(InferenceContext* c);
absl::Status SelectV2Shape(InferenceContext* c);
absl::Status UnsortedSegmentShape(InferenceContext* c);

// nn_shapes.cc
absl::Status BiasAddShape(InferenceContext* c);
absl::Status BiasAddGradShape(InferenceContext* c);
absl::Status Conv2DShape(InferenceContext* c);
absl::Status Conv2DBackpropFilterShape(InferenceContext* c);
absl::Status Conv2DBackpropInputShape(InferenceContext* c);
absl::Status FusedBatchNormShape(InferenceContext* c);
absl::Status FusedBatchNormGradShape(InferenceContext* c);
absl::Status SoftmaxShape(InferenceContext* c);
absl::Status SoftmaxCrossEntropyShape(InferenceContext* c);
absl::Status SparseSoftmaxCrossEntropyShape(InferenceContext* c);

// pool_shapes.cc
absl::Status AvgPoolShape(InferenceContext* c);
absl::Status AvgPoolGradShape(InferenceContext* c);
absl::Status MaxPoolShape(InferenceContext* c);
absl::Status MaxPoolGradShape(InferenceContext* c);
absl::Status MaxPoolGradGradShape(InferenceContext* c);
absl::Status MaxPoolGradGradV2Shape(InferenceContext* c);
absl::Status MaxPoolV2Shape(InferenceContext* c);

// random_shapes.cc
absl::Status RandomUniformIntShape(InferenceContext* c);

// state_shapes.cc
absl::Status AssignShape(InferenceContext* c);
absl::Status AssignVariableShape(InferenceContext* c);
absl::Status CountUpToShape(InferenceContext* c);
absl::Status ReadVariableShape(InferenceContext* c);
absl::Status VarHandleShape(InferenceContext* c);
absl::Status VariableV1Shape(InferenceContext* c);
absl::Status VariableShapeShape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_SHAPE_FUNCTIONS_H_
