/// Gradients that central differences cannot check: their inputs cannot be fed, or need a variable,
/// or the op is no function.
#ifndef TROUPE_TESTS_GRAPH_GRADIENTS_CHECKED_ELSEWHERE_H_
#define TROUPE_TESTS_GRAPH_GRADIENTS_CHECKED_ELSEWHERE_H_

namespace troupe {

struct CheckedOp {
  const char* op;
  const char* file;  ///< Below tests/. numeric_gradient_test.cc makes sure that it names the op.
};
inline constexpr CheckedOp kCheckedByOtherTests[] = {
    {"Angle", "graph/gradients/numeric_gradient_test.cc"},
    {"AskActor", "api/actors/actors_test.cc"},
    {"BatchNormWithGlobalNormalization", "graph/gradients/gradient_structure_test.cc"},
    {"Cholesky", "graph/gradients/composite_gradient_test.cc"},
    {"Complex", "graph/gradients/numeric_gradient_test.cc"},
    {"ComplexAbs", "graph/gradients/numeric_gradient_test.cc"},
    {"Conj", "graph/gradients/numeric_gradient_test.cc"},
    {"DynamicPartition", "graph/gradients/composite_gradient_test.cc"},
    {"Eig", "graph/gradients/composite_gradient_test.cc"},
    {"FFT", "graph/gradients/composite_gradient_test.cc"},
    {"FusedBatchNormGrad", "graph/gradients/numeric_gradient_test.cc"},
    {"FusedBatchNormGradV2", "graph/gradients/numeric_gradient_test.cc"},
    {"FusedBatchNormGradV3", "graph/gradients/numeric_gradient_test.cc"},
    {"IFFT", "graph/gradients/composite_gradient_test.cc"},
    {"IRFFT2D", "graph/gradients/composite_gradient_test.cc"},
    {"If", "graph/gradients/call_gradient_test.cc"},
    {"Imag", "graph/gradients/numeric_gradient_test.cc"},
    {"MatrixSquareRoot", "graph/gradients/composite_gradient_test.cc"},
    {"OptionalFromValue", "api/data/data_gradients_test.cc"},
    {"OptionalGetValue", "api/data/data_gradients_test.cc"},
    {"PartitionedCall", "graph/gradients/call_gradient_test.cc"},
    {"PreventGradient", "graph/gradients/add_gradients_test.cc"},
    {"RandomGamma", "graph/gradients/random_gradient_test.cc"},
    {"RFFT", "graph/gradients/composite_gradient_test.cc"},
    {"ReadVariableOp", "graph/gradients/add_gradients_test.cc"},
    {"Real", "graph/gradients/numeric_gradient_test.cc"},
    {"ResourceGather", "graph/gradients/sparse_gradient_test.cc"},
    {"ResourceGatherNd", "graph/gradients/sparse_gradient_test.cc"},
    {"SegmentMean", "graph/gradients/composite_gradient_test.cc"},
    {"SegmentSum", "graph/gradients/composite_gradient_test.cc"},
    {"SparseAdd", "graph/gradients/composite_gradient_test.cc"},
    {"SparseFillEmptyRows", "graph/gradients/composite_gradient_test.cc"},
    {"SparseSlice", "graph/gradients/composite_gradient_test.cc"},
    {"StatefulPartitionedCall", "graph/gradients/call_gradient_test.cc"},
    {"StatelessParameterizedTruncatedNormal", "graph/gradients/random_gradient_test.cc"},
    {"StatelessRandomGammaV2", "graph/gradients/random_gradient_test.cc"},
    {"StatelessRandomGammaV3", "graph/gradients/random_gradient_test.cc"},
    {"While", "graph/gradients/call_gradient_test.cc"},
};

/// Each is in a graph, or in a function of it, whose gradients TensorFlow gave
/// (tests/golden/gradients_test.cc makes sure).
inline constexpr const char* kCheckedByGoldenCases[] = {
    "BlockLSTMV2",
    "Enter",
    "Exit",
    "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel",
    "Merge",
    "NextIteration",
    "Print",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV4",
    "Switch",
    "SymbolicGradient",
    "TensorArrayConcatV3",
    "TensorArrayGatherV3",
    "TensorArrayReadV3",
    "TensorArrayScatterV3",
    "TensorArraySplitV3",
    "TensorArrayWriteV3",
    "TensorListConcat",
    "TensorListConcatV2",
    "TensorListFromTensor",
    "TensorListGather",
    "TensorListGetItem",
    "TensorListPopBack",
    "TensorListPushBack",
    "TensorListResize",
    "TensorListScatter",
    "TensorListScatterIntoExistingList",
    "TensorListScatterV2",
    "TensorListSetItem",
    "TensorListSplit",
    "TensorListStack",
};

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_GRADIENTS_CHECKED_ELSEWHERE_H_
