/// Where the arguments of a kernel live on a device that has a memory of its own.
#ifndef TROUPE_KERNELS_ARGUMENT_SPACES_H_
#define TROUPE_KERNELS_ARGUMENT_SPACES_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/allocator.h"
#include "devices/element_type.h"
#include "graph/attr_reader.h"
#include "kernels/kernel_registry.h"

namespace troupe {

class OpDef;

/// Per input and output. Empty lists: all are on the host.
struct ArgumentSpaces {
  std::vector<MemorySpace> inputs, outputs;

  MemorySpace input(int i) const { return inputs.empty() ? MemorySpace::kHost : inputs[i]; }
  MemorySpace output(int i) const { return outputs.empty() ? MemorySpace::kHost : outputs[i]; }
  bool AnyOnDevice() const;
};

/// The type of device under which kernels are registered that serve every type without a kernel of
/// its own: they look at no element in a device's memory.
inline constexpr std::string_view kAnyDeviceType = "DEFAULT";
/// The host argument that stands for all.
inline constexpr char kAllArguments[] = "*";

/// Of kernels that serve any type of device, arguments of a type that is no plain bytes, or int32
/// (sizes, counters), are on the host. So are variables.
constexpr bool LivesOnDevice(ElementType type) {
  return IsPlain(RemoveRef(type)) && RemoveRef(type) != ElementType::kInt32;
}

/// The same, and variants, which hold such tensors.
constexpr bool MayBeOnDevice(ElementType type) {
  return LivesOnDevice(type) || RemoveRef(type) == ElementType::kVariant;
}

/// On the host is what is no plain bytes, what the registration says (`KernelSpec::HostMemory`),
/// and what `LivesOnDevice` says if it is for any type of device; the rest in the device's memory.
/// Kernels for any type of device have variants there as well: the variants are on the host, the
/// tensors in their lists and optionals may be in the device's memory.
/// The space of a reference is that of the variable's value. InvalidArgument: attributes that do
/// not fit the op.
absl::StatusOr<ArgumentSpaces> FindArgumentSpaces(const OpDef& op, const AttrReader& attrs,
                                                  const KernelSpec& kernel);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARGUMENT_SPACES_H_
