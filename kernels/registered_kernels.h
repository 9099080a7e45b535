/// Which devices have the kernels that nodes need, as this process knows kernels.
#ifndef TROUPE_KERNELS_REGISTERED_KERNELS_H_
#define TROUPE_KERNELS_REGISTERED_KERNELS_H_

#include <functional>
#include <string>

#include "graph/graph.h"

namespace troupe {

/// For `PlacementInput::lacks_kernel`, in steps of `graph`, which must outlive it. State stays on
/// the device where a first step puts it, which knows nothing of later ones: where one node of the
/// graph lacks a kernel, all that must be with it lack one, if any of them is stateful. These are
/// what references, handles and colocations join. The bodies of calls count that take handles; all
/// other functions run everywhere. Nodes of lowered graphs are known by their names.
std::function<const Node*(const Node& node, const std::string& device_type)> RegisteredKernels(
    const Graph& graph);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REGISTERED_KERNELS_H_
