// The quantized types, floats of 8 bits and integers of 4 for which TensorFlow 2.21's CPU has
// kernels of ops on tensors of any type.
#include <string>

#include "absl/strings/str_split.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

struct Registered {
  const char* attr;
  const char* types;
  const char* ops;
};
constexpr Registered kRegistered[] = {
    {"T", "qint32 qint8 quint8",
     "DynamicStitch MirrorPad Pad PadV2 ParallelDynamicStitch RefSwitch "
     "ResourceStridedSliceAssign Slice StridedSlice StridedSliceAssign StridedSliceGrad "
     "Switch TensorStridedSliceUpdate"},
    {"element_dtype", "qint16 qint32 qint8 quint16 quint8",
     "TensorListConcat TensorListConcatV2 TensorListFromTensor TensorListGather "
     "TensorListGetItem TensorListPopBack TensorListPushBackBatch TensorListScatter "
     "TensorListScatterIntoExistingList TensorListScatterV2 TensorListSplit "
     "TensorListStack"},
    {"dtype", "qint32 qint8 quint8",
     "AssignVariableOp ResourceGather TensorArrayConcat TensorArrayConcatV2 "
     "TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 "
     "TensorArrayPack"},
    {"T", "qint16 qint32 qint8 quint16 quint8", "Concat ConcatV2 Equal Fill NotEqual Pack"},
    {"T", "quint8", "Split SplitV"},
    {"Tparams", "qint16 qint32 qint8 quint16 quint8", "Gather GatherV2"},
    {"T", "qint16 qint8 quint16 quint8", "SparseToDense"},
    {"T", "qint32 qint8 quint16 quint8", "Assign"},
    {"T", "qint8", "SpaceToDepth"},
    {"Tparams", "qint32 qint8 quint8", "GatherNd"},
    {"T", "float8_e5m2 float8_e4m3fn",
     "BroadcastTo Concat ConcatV2 ConjugateTranspose Pack ResourceStridedSliceAssign Slice "
     "StridedSlice StridedSliceAssign StridedSliceGrad TensorStridedSliceUpdate Transpose Unpack"},
    {"Tparams", "float8_e5m2 float8_e4m3fn", "Gather GatherNd GatherV2"},
    {"dtype", "float8_e5m2 float8_e4m3fn int4 uint4", "AssignVariableOp"},
    {"T", "float8_e5m2 float8_e4m3fn int4 uint4", "Split SplitV"},
    {"T", "int4 uint4", "Fill"},
};

/// A node with this type, and others that the op allows.
NodeDef NodeOf(const OpDef& op, const std::string& attr, ElementType type) {
  NodeDef node;
  node.set_name("node");
  node.set_op(op.name());
  for (const OpDef::AttrDef& def : op.attr()) {
    AttrValue& value = (*node.mutable_attr())[def.name()];
    if (def.name() == attr) {
      value.set_type(static_cast<DataType>(type));
    } else if (def.has_default_value()) {
      value = def.default_value();
    } else if (def.type() == "type") {
      value.set_type(DT_INT32);
    }
  }
  return node;
}

TEST(QuantizedAndNarrowTypes, HaveTheKernelsThatTensorFlowHas) {
  for (const Registered& row : kRegistered) {
    for (const absl::string_view name : absl::StrSplit(row.ops, ' ')) {
      const auto op = OpRegistry::Global()->LookUp(std::string(name));
      ASSERT_TRUE(op.ok()) << op.status();
      for (const absl::string_view type_name : absl::StrSplit(row.types, ' ')) {
        ElementType type;
        ASSERT_TRUE(ParseElementType(std::string(type_name), &type));
        const NodeDef node = NodeOf(*(*op)->def, row.attr, type);
        EXPECT_TRUE(KernelRegistry::Global()->Find("CPU", node).ok()) << name << " " << type_name;
      }
    }
  }
}

}  // namespace
}  // namespace troupe
