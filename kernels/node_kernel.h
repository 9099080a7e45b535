/// The kernel of a node of a graph.
#ifndef TROUPE_KERNELS_NODE_KERNEL_H_
#define TROUPE_KERNELS_NODE_KERNEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/device.h"
#include "graph/graph.h"
#include "kernels/kernel.h"

namespace troupe {

/// True for a node whose op is a function of its graph's library.
bool IsFunctionCall(const Node& node);

/// Makes the kernel of a node for a device.
absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const Node& node, Device* device);

/// Computes a node on host tensors, at once, on the calling thread: for constant folding and
/// constant inputs of shape functions. Unimplemented for asynchronous kernels.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor> inputs);

}  // namespace troupe

#endif  // TROUPE_KERNELS_NODE_KERNEL_H_
