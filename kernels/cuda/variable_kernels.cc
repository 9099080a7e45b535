// The ops that compute with the elements of variables, on cards. Variables of int32 are on the
// host.
#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/updates.h"
#include "kernels/state/element_ops.h"

namespace troupe {

absl::Status AddElements(KernelContext& ctx, bool subtract, const Tensor& a, const Tensor& b,
                         void* to) {
  TROUPE_ASSIGN_OR_RETURN(const cuda::Number type, cuda::NumberOf(a.type()));
  return cuda::CudaStatus(cuda::LaunchAssignUpdate(subtract, type, a.raw_data(), b.raw_data(), to,
                                                   a.num_elements(), cuda::StreamOf(ctx)),
                          "an update of a variable");
}

namespace cuda {
namespace {

bool IsSliceAssign(const std::string& op) { return op.ends_with("SliceAssign"); }

/// Whether cards have the op for this type, if the CPU does.
bool HasThere(const std::string& op, ElementType type) {
  if (op.ends_with("Gather") || op.ends_with("GatherNd") || op.ends_with("Update")) return true;
  if (IsSliceAssign(op)) return true;
  if (type == ElementType::kBool) return false;
  // Complex numbers are combined as pairs of real ones.
  const bool complex = type == ElementType::kComplex64 || type == ElementType::kComplex128;
  return !complex || !(op.ends_with("Mul") || op.ends_with("Div"));
}

}  // namespace

void RegisterVariables(Extension& extension) {
  const std::vector<ElementType> moved = MovedTypes();
  const UseKernel use = [&](KernelSpec spec, KernelFactory factory) {
    std::erase_if(spec.constraints[0].second, [&](ElementType type) {
      return std::find(moved.begin(), moved.end(), type) == moved.end() || !HasThere(spec.op, type);
    });
    if (IsSliceAssign(spec.op)) {
      for (const char* bound : {"begin", "end", "strides"}) spec.HostMemory(bound);
    }
    extension.Kernel(spec.Device("GPU"), factory);
  };
  ForEachAssignUpdate(use);
  ForEachScatterOp(use);
  ForEachGatherOp(use);
  ForEachSliceAssign(use);
}

}  // namespace cuda
}  // namespace troupe
