// Ops whose results do not change with their inputs, or do so only by jumps: they end the chain.
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

REGISTER_NO_GRADIENT("Assert");
REGISTER_NO_GRADIENT("Assign");
REGISTER_NO_GRADIENT("AssignAdd");
REGISTER_NO_GRADIENT("AssignSub");
REGISTER_NO_GRADIENT("BroadcastGradientArgs");
REGISTER_NO_GRADIENT("ConcatOffset");
REGISTER_NO_GRADIENT("Const");
REGISTER_NO_GRADIENT("Equal");
REGISTER_NO_GRADIENT("Greater");
REGISTER_NO_GRADIENT("GreaterEqual");
REGISTER_NO_GRADIENT("InvertPermutation");
REGISTER_NO_GRADIENT("Less");
REGISTER_NO_GRADIENT("LessEqual");
REGISTER_NO_GRADIENT("LinSpace");
REGISTER_NO_GRADIENT("LogicalAnd");
REGISTER_NO_GRADIENT("LogicalNot");
REGISTER_NO_GRADIENT("LogicalOr");
REGISTER_NO_GRADIENT("NotEqual");
REGISTER_NO_GRADIENT("OneHot");
REGISTER_NO_GRADIENT("OnesLike");
REGISTER_NO_GRADIENT("RandomShuffle");
REGISTER_NO_GRADIENT("RandomStandardNormal");
REGISTER_NO_GRADIENT("RandomUniform");
REGISTER_NO_GRADIENT("Range");
REGISTER_NO_GRADIENT("Rank");
REGISTER_NO_GRADIENT("Shape");
REGISTER_NO_GRADIENT("ShapeN");
REGISTER_NO_GRADIENT("Size");
REGISTER_NO_GRADIENT("StopGradient");
REGISTER_NO_GRADIENT("TruncatedNormal");
REGISTER_NO_GRADIENT("VarIsInitializedOp");
REGISTER_NO_GRADIENT("VariableShape");
REGISTER_NO_GRADIENT("ZerosLike");

}  // namespace
}  // namespace troupe
