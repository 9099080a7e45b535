/// The ops that compute with the elements of variables, for every type of device: AssignAdd and
/// AssignSub, scattered updates, gathers, slices that are replaced, by reference and by handle.
/// What they take and what they refuse is the same everywhere; `array/indexing_engine.h`,
/// `common/strided_copy.h` and `AddElements` do the rest.
#ifndef TROUPE_KERNELS_STATE_ELEMENT_OPS_H_
#define TROUPE_KERNELS_STATE_ELEMENT_OPS_H_

#include <functional>

#include "absl/status/status.h"
#include "kernels/kernel_registry.h"

namespace troupe {

/// Takes the specification of an op's kernel, for the CPU, with the types that it has there.
using UseKernel = std::function<void(KernelSpec spec, KernelFactory factory)>;
void ForEachAssignUpdate(const UseKernel& use);
void ForEachScatterOp(const UseKernel& use);
void ForEachGatherOp(const UseKernel& use);
void ForEachSliceAssign(const UseKernel& use);

/// to[i] = a[i] + b[i], or the difference, of tensors of numbers of one shape; `to` may be the
/// elements of `a`. Each type of devices has its own definition.
absl::Status AddElements(KernelContext& ctx, bool subtract, const Tensor& a, const Tensor& b,
                         void* to);

}  // namespace troupe

#endif  // TROUPE_KERNELS_STATE_ELEMENT_OPS_H_
