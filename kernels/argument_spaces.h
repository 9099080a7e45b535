/// Where the arguments of a kernel live on a device that has a memory of its own.
#ifndef TROUPE_KERNELS_ARGUMENT_SPACES_H_
#define TROUPE_KERNELS_ARGUMENT_SPACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/allocator.h"
#include "graph/attr_reader.h"

namespace troupe {

class OpDef;

/// Per input and output. Empty lists: all are on the host.
struct ArgumentSpaces {
  std::vector<MemorySpace> inputs, outputs;

  MemorySpace input(int i) const { return inputs.empty() ? MemorySpace::kHost : inputs[i]; }
  MemorySpace output(int i) const { return outputs.empty() ? MemorySpace::kHost : outputs[i]; }
  bool AnyOnDevice() const;
};

/// On the host is what the kernel's registration says (`KernelSpec::HostMemory`), references and
/// what is no plain bytes; the rest in the device's memory. InvalidArgument: attributes that do not
/// fit the op.
absl::StatusOr<ArgumentSpaces> FindArgumentSpaces(const OpDef& op, const AttrReader& attrs,
                                                  const std::vector<std::string>& host_arguments);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARGUMENT_SPACES_H_
