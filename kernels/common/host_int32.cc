// On devices with a memory of their own, tensors of int32 are on the host, for they are sizes, axes
// and counters: what computes with them is the CPU's. A kernel of a device type's own for int32
// comes first.
#include "devices/status_macros.h"
#include "kernels/argument_spaces.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeForHost(KernelConstruction& construction) {
  TROUPE_ASSIGN_OR_RETURN(const KernelRegistration* kernel,
                          KernelRegistry::Global()->Find("CPU", construction.attrs().def()));
  // Other types of the node may be such that the CPU has no kernel, and this one is found again.
  if (kernel->factory == MakeForHost) {
    return absl::NotFoundError("the CPU has no kernel for the types of the node's attributes");
  }
  return kernel->factory(construction);
}

void Register(const char* attr, std::initializer_list<const char*> ops) {
  for (const char* op : ops) {
    KernelRegistry::Global()->Register(KernelSpec(op)
                                           .Device(std::string(kAnyDeviceType))
                                           .Types(attr, {ElementType::kInt32})
                                           .HostMemory(kAllArguments)
                                           .Cost(KernelCost::kCheap),
                                       MakeForHost);
  }
}

[[maybe_unused]] const bool registered = [] {
  Register("T", {"Abs",
                 "Add",
                 "AddN",
                 "AddV2",
                 "BitwiseAnd",
                 "BitwiseOr",
                 "BitwiseXor",
                 "BroadcastTo",
                 "ClipByValue",
                 "Concat",
                 "ConcatV2",
                 "ConjugateTranspose",
                 "Cumprod",
                 "Cumsum",
                 "DataFormatDimMap",
                 "DataFormatVecPermute",
                 "DeepCopy",
                 "Diag",
                 "DiagPart",
                 "Div",
                 "DynamicPartition",
                 "DynamicStitch",
                 "Equal",
                 "Fill",
                 "FloorDiv",
                 "FloorMod",
                 "Greater",
                 "GreaterEqual",
                 "InplaceAdd",
                 "InplaceSub",
                 "InplaceUpdate",
                 "Invert",
                 "LeftShift",
                 "Less",
                 "LessEqual",
                 "ListDiff",
                 "Max",
                 "Maximum",
                 "Mean",
                 "Min",
                 "Minimum",
                 "Mod",
                 "Mul",
                 "Neg",
                 "NotEqual",
                 "OneHot",
                 "OnesLike",
                 "Pack",
                 "Pad",
                 "PadV2",
                 "ParallelDynamicStitch",
                 "PopulationCount",
                 "Prod",
                 "RandomShuffle",
                 "Reverse",
                 "ReverseV2",
                 "RightShift",
                 "Roll",
                 "Round",
                 "ScatterNd",
                 "ScatterNdNonAliasingAdd",
                 "Select",
                 "SelectV2",
                 "Sign",
                 "Slice",
                 "Split",
                 "SparseToDense",
                 "SplitV",
                 "Square",
                 "SquaredDifference",
                 "StridedSlice",
                 "StridedSliceGrad",
                 "Sub",
                 "Sum",
                 "TensorScatterAdd",
                 "TensorScatterMax",
                 "TensorScatterMin",
                 "TensorScatterSub",
                 "TensorScatterUpdate",
                 "TensorStridedSliceUpdate",
                 "Tile",
                 "TileGrad",
                 "Transpose",
                 "TruncateDiv",
                 "TruncateMod",
                 "Unpack",
                 "ZerosLike"});
  Register("Tidx", {"Range"});
  // All arguments are on the host, whatever their type: they are few numbers.
  KernelRegistry::Global()->Register(KernelSpec("LinSpace")
                                         .Device(std::string(kAnyDeviceType))
                                         .Types("T", {ElementType::kFloat, ElementType::kDouble})
                                         .HostMemory(kAllArguments)
                                         .Cost(KernelCost::kCheap),
                                     MakeForHost);
  Register("Tparams", {"Gather", "GatherNd", "GatherV2"});
  // Variables of int32 are on the host, too.
  Register("T", {"AssignAdd",
                 "AssignSub",
                 "CountUpTo",
                 "ScatterAdd",
                 "ScatterDiv",
                 "ScatterMax",
                 "ScatterMin",
                 "ScatterMul",
                 "ScatterNdAdd",
                 "ScatterNdMax",
                 "ScatterNdMin",
                 "ScatterNdSub",
                 "ScatterNdUpdate",
                 "ScatterSub",
                 "ScatterUpdate",
                 "ResourceCountUpTo",
                 "ResourceScatterNdAdd",
                 "ResourceScatterNdMax",
                 "ResourceScatterNdMin",
                 "ResourceScatterNdSub",
                 "ResourceScatterNdUpdate",
                 "ResourceStridedSliceAssign",
                 "StridedSliceAssign"});
  Register("dtype", {"AssignAddVariableOp", "AssignSubVariableOp", "Empty", "ResourceGather",
                     "ResourceGatherNd", "ResourceScatterAdd", "ResourceScatterDiv",
                     "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul",
                     "ResourceScatterSub", "ResourceScatterUpdate"});
  return true;
}();

}  // namespace
}  // namespace troupe
