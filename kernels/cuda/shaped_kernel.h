/// Base of kernels of GPUs whose outputs have the shapes that their op's shape function says.
#ifndef TROUPE_KERNELS_CUDA_SHAPED_KERNEL_H_
#define TROUPE_KERNELS_CUDA_SHAPED_KERNEL_H_

#include "absl/container/inlined_vector.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

class ShapedKernel : public Kernel {
 protected:
  /// Keeps what the shape function needs; its error, or OK, goes to `status`.
  ShapedKernel(KernelConstruction& construction, absl::Status* status);

  /// What the op's shape function says for these inputs, of which it knows the shapes and, of those
  /// on the host, the values. Errors: the function's own, mostly InvalidArgument; Internal if it
  /// needs values that only the device has.
  absl::StatusOr<absl::InlinedVector<Shape, 2>> OutputShapes(const KernelContext& ctx) const;

 private:
  const NodeDef def_;
  const OpRegistration* op_ = nullptr;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SHAPED_KERNEL_H_
