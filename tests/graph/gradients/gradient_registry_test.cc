#include "graph/gradients/gradient_registry.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

// Ops about whose gradients nothing is registered, on purpose: as in TensorFlow, asking for one is
// an error. Every other op has a gradient, or is registered as having none.
const std::set<std::string> kUnregistered = {
    // clang-format off
    "Abort", "AccumulatorApplyGradient", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep",
    "AccumulatorTakeGradient", "All", "Any", "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad",
    "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdam", "ApplyAddSign", "ApplyCenteredRMSProp",
    "ApplyFtrl", "ApplyFtrlV2", "ApplyGradientDescent", "ApplyMomentum", "ApplyPowerSign",
    "ApplyProximalAdagrad", "ApplyProximalGradientDescent", "ApplyRMSProp", "AssignAddVariableOp",
    "AssignSubVariableOp", "AssignVariableOp", "Bitcast", "BroadcastArgs", "CloseSummaryWriter",
    "ComputeAccidentalHits", "ConditionalAccumulator", "CountUpTo", "CreateSummaryFileWriter",
    "DataFormatDimMap", "DataFormatVecPermute",
    "DeepCopy", "DestroyResourceOp", "DestroyTemporaryVariable", "DisableCopyOnRead", "Empty",
    "EmptyTensorList", "FIFOQueue", "FIFOQueueV2", "FlushSummaryWriter",
    "IgammaGradA", "ImportEvent", "InTopK",
    "InTopKV2", "InplaceAdd", "InplaceSub", "InplaceUpdate", "IsFinite", "IsInf", "IsNan",
    "IsVariableInitialized", "ListDiff", "LogUniformCandidateSampler", "MaxPoolGradGradV2",
    "MergeV2Checkpoints", "Mod", "NoOp", "OptionalHasValue", "OptionalNone", "PaddingFIFOQueue",
    "PaddingFIFOQueueV2", "Placeholder", "PlaceholderV2", "PrintV2", "PriorityQueue",
    "PriorityQueueV2", "QueueCloseV2", "QueueDequeueManyV2", "QueueDequeueUpToV2", "QueueDequeueV2",
    "QueueEnqueueManyV2", "QueueEnqueueV2", "QueueIsClosed", "QueueIsClosedV2", "QueueSizeV2",
    "RandomShuffleQueue", "RandomShuffleQueueV2", "RandomUniformInt", "RefSelect", "RegexFullMatch",
    "ResourceAccumulatorApplyGradient", "ResourceAccumulatorNumAccumulated",
    "ResourceAccumulatorSetGlobalStep", "ResourceAccumulatorTakeGradient", "ResourceApplyAdaMax",
    "ResourceApplyAdadelta", "ResourceApplyAdagrad", "ResourceApplyAdagradDA",
    "ResourceApplyAdagradV2", "ResourceApplyAdam", "ResourceApplyAdamWithAmsgrad",
    "ResourceApplyAddSign", "ResourceApplyCenteredRMSProp", "ResourceApplyFtrl",
    "ResourceApplyFtrlV2", "ResourceApplyGradientDescent", "ResourceApplyKerasMomentum",
    "ResourceApplyMomentum", "ResourceApplyPowerSign", "ResourceApplyProximalAdagrad",
    "ResourceApplyProximalGradientDescent", "ResourceApplyRMSProp",
    "ResourceConditionalAccumulator", "ResourceCountUpTo", "ResourceScatterAdd",
    "ResourceScatterDiv",
    "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul", "ResourceScatterNdAdd",
    "ResourceScatterNdSub", "ResourceScatterNdUpdate", "ResourceScatterSub",
    "ResourceScatterUpdate", "ResourceSparseApplyAdadelta", "ResourceSparseApplyAdagrad",
    "ResourceSparseApplyAdagradDA", "ResourceSparseApplyAdagradV2",
    "ResourceSparseApplyCenteredRMSProp", "ResourceSparseApplyFtrl", "ResourceSparseApplyFtrlV2",
    "ResourceSparseApplyKerasMomentum", "ResourceSparseApplyMomentum",
    "ResourceSparseApplyProximalAdagrad", "ResourceSparseApplyProximalGradientDescent",
    "ResourceSparseApplyRMSProp", "Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices",
    "SaveV2", "ScatterMax", "ScatterMin", "ScatterUpdate", "ShardedFilename", "ShardedFilespec",
    "Snapshot", "SoftsignGrad", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient",
    "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradDA", "SparseApplyAdagradV2",
    "SparseApplyCenteredRMSProp", "SparseApplyFtrl", "SparseApplyFtrlV2", "SparseApplyMomentum",
    "SparseApplyProximalAdagrad", "SparseApplyProximalGradientDescent", "SparseApplyRMSProp",
    "SparseConditionalAccumulator", "StaticRegexFullMatch", "StaticRegexReplace", "SummaryWriter",
    "TemporaryVariable", "TensorListReserve", "ToBool", "TruncateMod", "UniformCandidateSampler",
    "Unique", "UniqueV2", "VarHandleOp", "Variable", "VariableV2", "Where", "WriteAudioSummary",
    "WriteGraphSummary", "WriteHistogramSummary", "WriteImageSummary", "WriteRawProtoSummary",
    "WriteScalarSummary", "WriteSummary", "_Arg", "_HostRecv", "_HostSend", "_Recv", "_Retval",
    "_Send"
    // clang-format on
};

// The same of tables, barriers, mutexes and staging areas.
const std::set<std::string> kSynchronization = {
    // clang-format off
    "AnonymousHashTable", "Barrier", "BarrierClose", "BarrierIncompleteSize", "BarrierInsertMany",
    "BarrierReadySize", "BarrierTakeMany", "ConsumeMutexLock", "FakeQueue", "LookupTableExport",
    "LookupTableExportV2", "LookupTableImport", "LookupTableImportV2", "LookupTableRemoveV2",
    "MapClear", "MapIncompleteSize", "MapPeek", "MapSize", "MapStage", "MapUnstage",
    "MapUnstageNoKey", "MutexLock", "MutexV2", "OrderedMapClear", "OrderedMapIncompleteSize",
    "OrderedMapPeek", "OrderedMapSize", "OrderedMapStage", "OrderedMapUnstage",
    "OrderedMapUnstageNoKey", "Stage", "StageClear", "StagePeek", "StageSize", "Unstage"
    // clang-format on
};

// The same of ops that read and parse, and of iterators.
const std::set<std::string> kInput = {
    // clang-format off
    "DatasetIterator", "DatasetIteratorInitialize", "DatasetIteratorNext", "DatasetIteratorRestore",
    "DatasetIteratorSave",
    "DecodeCSV", "DecodeCompressed", "DecodeJSONExample", "FixedLengthRecordReaderV2",
    "IdentityReaderV2", "MatchingFiles", "ParseExample", "ParseExampleV2", "ParseSequenceExample",
    "ParseSequenceExampleV2", "ParseSingleExample", "ParseSingleSequenceExample", "ReadFile",
    "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2", "ReaderReadUpToV2",
    "ReaderReadV2", "ReaderResetV2", "ReaderRestoreStateV2", "ReaderSerializeStateV2",
    "TFRecordReaderV2", "TextLineReaderV2", "WholeFileReaderV2", "WriteFile"
    // clang-format on
};

// The same of strings and of sparse tensors.
const std::set<std::string> kText = {
    // clang-format off
    "AddManySparseToTensorsMap", "AddSparseToTensorsMap", "DeserializeManySparse",
    "DeserializeSparse", "SerializeManySparse", "SerializeSparse", "SparseBincount", "SparseCross",
    "SparseCrossHashed", "SparseCrossV2", "SparseDenseCwiseAdd", "SparseFillEmptyRowsGrad",
    "SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSumSparse", "SparseReshape",
    "SparseSliceGrad", "SparseSparseMaximum", "SparseSparseMinimum", "SparseSplit", "StringFormat",
    "StringLength", "StringLower", "StringNGrams", "StringSplitV2", "StringStrip", "StringUpper",
    "Substr", "TakeManySparseFromTensorsMap", "UnsortedSegmentJoin"
    // clang-format on
};

// The same of linear algebra.
const std::set<std::string> kLinalg = {"CholeskyGrad",      "IRFFT3D",         "Lu",
                                       "MatrixExponential", "MatrixLogarithm", "RFFT3D",
                                       "SelfAdjointEig"};

// The same of neural networks.
const std::set<std::string> kNetworks = {
    // clang-format off
    "BatchNormWithGlobalNormalizationGrad", "BlockLSTMGrad", "BlockLSTMGradV2", "Conv",
    "Conv3DBackpropFilter", "Conv3DBackpropInput", "Dilation2DBackpropFilter",
    "Dilation2DBackpropInput", "FractionalAvgPoolGrad", "FractionalMaxPoolGrad", "FusedPadConv2D",
    "FusedResizeAndPadConv2D", "GRUBlockCellGrad", "LRNGrad", "LSTMBlockCellGrad",
    "MaxPoolGradWithArgmax",
    // clang-format on
};

// The same of images.
const std::set<std::string> kImages = {
    // clang-format off
    "AdjustContrast", "AdjustContrastv2", "AdjustHue", "AdjustSaturation",
    "CombinedNonMaxSuppression", "CropAndResizeGradBoxes", "CropAndResizeGradImage",
    "DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng",
    "DrawBoundingBoxesV2", "EncodeJpeg", "EncodeJpegVariableQuality", "EncodePng",
    "ExtractGlimpseV2", "ExtractJpegShape", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
    "NonMaxSuppressionV5", "RandomCrop", "ResizeArea", "ResizeBicubicGrad",
    "ResizeNearestNeighborGrad", "ScaleAndTranslateGrad", "StatelessSampleDistortedBoundingBox"
    // clang-format on
};

// The same of random numbers.
const std::set<std::string> kRandom = {
    // clang-format off
    "AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler",
    "NonDeterministicInts", "RandomGammaGrad", "RandomPoisson", "RandomPoissonV2",
    "StatefulRandomBinomial", "StatefulStandardNormal", "StatefulStandardNormalV2",
    "StatefulTruncatedNormal", "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt",
    "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg",
    "StatelessShuffle", "ThreadUnsafeUnigramCandidateSampler"
    // clang-format on
};

// The same of arrays, segments and slices.
const std::set<std::string> kArrays = {
    // clang-format off
    "Bincount", "Bucketize", "DenseBincount", "HistogramFixedWidth", "ImmutableConst", "LowerBound",
    "ParallelConcat", "ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceStridedSliceAssign",
    "ScatterNdMax", "ScatterNdMin", "SparseSegmentMeanGrad", "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGrad",
    "SparseSegmentSumGradV2", "StridedSliceAssign", "TensorArrayPack", "TensorArrayUnpack",
    "TileGrad", "UniqueWithCounts", "UniqueWithCountsV2", "UnravelIndex", "UpperBound"
    // clang-format on
};

// The same of quantized tensors.
const std::set<std::string> kQuantized = {
    // clang-format off
    "Dequantize", "QuantizeAndDequantizeV4Grad", "QuantizeDownAndShrinkRange", "QuantizeV2",
    "QuantizedAdd", "QuantizedAvgPool", "QuantizedBiasAdd", "QuantizedConcat", "QuantizedConcatV2",
    "QuantizedConv2D", "QuantizedMatMul", "QuantizedMatMulWithBias",
    "QuantizedMatMulWithBiasAndDequantize", "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize", "QuantizedMatMulWithBiasAndRequantize", "QuantizedMaxPool", "QuantizedMul", "QuantizedRelu",
    "QuantizedRelu6", "QuantizedReluX", "QuantizedReshape", "RequantizationRange", "Requantize",
    "QuantizedInstanceNorm", "QuantizedResizeBilinear",
    "QuantizedBatchNormWithGlobalNormalization", "RequantizePerChannel",
    "RequantizationRangePerChannel", "UniformQuantize", "UniformDequantize",
    "UniformRequantize", "UniformQuantizedClipByValue"
    // clang-format on
};

TEST(GradientRegistry, EveryOpIsDecidedOn) {
  for (const std::string& op : OpRegistry::Global()->Names()) {
    if (op[0] == '_') continue;  // The runtime's own.
    int64_t entries = 0;
    for (const auto* set : {&kUnregistered, &kSynchronization, &kInput, &kText, &kLinalg,
                            &kNetworks, &kImages, &kRandom, &kArrays, &kQuantized}) {
      entries += static_cast<int64_t>(set->count(op));
    }
    EXPECT_EQ(entries, GradientRegistry::Global()->LookUp(op).ok() ? 0 : 1)
        << op << " needs a gradient, REGISTER_NO_GRADIENT, or an entry here";
  }
}

TEST(GradientRegistry, EveryEntryIsOfAnOp) {
  for (const std::string& op : GradientRegistry::Global()->Names()) {
    EXPECT_TRUE(OpRegistry::Global()->LookUp(op).ok()) << op;
  }
}

TEST(GradientRegistry, NoEntryIsNotFound) {
  absl::Status status = GradientRegistry::Global()->LookUp("NoSuchOp").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("'NoSuchOp'"));
}

TEST(GradientBuilder, AfterAnErrorNothingIsAdded) {
  TestGraph g;
  Output x = g.Placeholder({3});
  EXPECT_FALSE(g.Op("NoSuchOp", {x}).valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kNotFound);
  const int nodes = g.graph()->num_nodes();
  EXPECT_FALSE(g.Op("Neg", {x}).valid());
  EXPECT_FALSE(g.Shape(x).valid());
  EXPECT_FALSE(g.ScalarOfType(ElementType::kFloat, 1).valid());
  EXPECT_EQ(g.graph()->num_nodes(), nodes);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kNotFound);
}

TEST(GradientBuilder, AMissingInputIsAnError) {
  TestGraph g;
  EXPECT_FALSE(g.Op("Neg", {Output()}).valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInternal);
}

TEST(GradientBuilder, ScalarsOfAllNumericTypes) {
  TestGraph g;
  for (ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16,
        ElementType::kInt8, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
        ElementType::kUint8, ElementType::kUint16, ElementType::kUint32, ElementType::kUint64,
        ElementType::kComplex64, ElementType::kComplex128}) {
    Output two = g.ScalarOfType(type, 2);
    ASSERT_TRUE(two.valid()) << ElementTypeName(type);
    EXPECT_EQ(two.type(), type);
  }
  EXPECT_FALSE(g.ScalarOfType(ElementType::kString, 2).valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
