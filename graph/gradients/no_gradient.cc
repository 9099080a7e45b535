// Ops that end the chain: their results do not change with their inputs, or do so only by jumps, or
// are dealt with beside the ops that they belong to (stacks of what one loop saves for another).
#include "absl/strings/str_split.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

constexpr char kOps[] =
    "Assert Assign AssignAdd AssignSub AudioSummary AudioSummaryV2 BroadcastGradientArgs "
    "ConcatOffset Const ControlTrigger DeleteSessionTensor Equal GetSessionHandle "
    "GetSessionHandleV2 GetSessionTensor Greater GreaterEqual HistogramSummary ImageSummary "
    "InvertPermutation Less LessEqual LinSpace LogicalAnd LogicalNot LogicalOr LoopCond "
    "MergeSummary Multinomial NotEqual OneHot OnesLike QueueClose QueueDequeue QueueDequeueMany "
    "QueueDequeueUpTo QueueEnqueue QueueEnqueueMany QueueSize RandomShuffle RandomStandardNormal "
    "RandomUniform Range Rank RegexReplace ScalarSummary ScatterAdd ScatterDiv ScatterMul "
    "ScatterNdAdd ScatterNdSub ScatterNdUpdate ScatterSub Shape ShapeN Size Stack StackClose "
    "StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2 StopGradient StringJoin "
    "TensorArray TensorArrayClose TensorArrayGrad TensorArraySize TensorArrayCloseV2 "
    "TensorArrayCloseV3 TensorArrayGradV2 TensorArrayGradV3 "
    "TensorArrayGradWithShape TensorArraySizeV2 TensorArraySizeV3 TensorArrayV2 TensorArrayV3 "
    "TensorListConcatLists TensorListElementShape TensorListLength TensorListPushBackBatch "
    "TensorSummary TensorSummaryV2 TruncatedNormal VarIsInitializedOp VariableShape ZerosLike";

constexpr char kInputOps[] =
    "DecodePaddedRaw DecodeProtoV2 DecodeRaw EncodeProto FixedLengthRecordReader IdentityReader "
    "ParseTensor ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted ReaderRead ReaderReadUpTo "
    "ReaderReset "
    "ReaderRestoreState ReaderSerializeState SerializeTensor TFRecordReader TextLineReader "
    "WholeFileReader";

constexpr char kTableOps[] =
    "HashTable HashTableV2 InitializeTable InitializeTableFromTextFile "
    "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableFind LookupTableFindV2 "
    "LookupTableInsert LookupTableInsertV2 LookupTableSize LookupTableSizeV2 "
    "MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors "
    "MutableHashTableOfTensorsV2 MutableHashTableV2 "
    "StringToHashBucketFast";

[[maybe_unused]] const bool kRegistered = [] {
  for (const char* ops : {kOps, kTableOps, kInputOps}) {
    for (const absl::string_view op : absl::StrSplit(ops, ' ')) {
      GradientRegistry::Global()->Register({op.data(), op.size()}, nullptr);
    }
  }
  return true;
}();

}  // namespace
}  // namespace troupe
